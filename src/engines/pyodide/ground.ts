import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SandglassError } from '../../errors/index.ts'
import { harnessSources, INSIDE, type SandboxSpec, scratchSizes } from '../../sandbox/index.ts'
import { type Box, boxed, type Contents, findBox } from './box.ts'
import { type BundledFile, bundle, type FileBundle, filesBelow } from './directory-files.ts'
import { type GuestCommand, startGuest } from './guest-process.ts'
import { inheritedDescriptors } from './inherited.ts'
import type { StartMessage } from './guest/wire.ts'
import type { PyodideEngineOptions } from './options.ts'
import { PYODIDE_VERSION, pyodideDirectory } from './package-dir.ts'
import { defaultCacheDir, type Snapshot, SnapshotCache, snapshotKey } from './snapshot-cache.ts'
import type { StartGuest } from './spare.ts'
import { unpackWheels, type Wheels } from './wheels.ts'

/** Changes when what a snapshot holds changes for a reason that no digest shows. */
const RECIPE = 3
/** V8's own heap: names of files, JSON on its way. Python's memory and files lie outside of it. */
const HEAP_MiB = 128
const ENVIRONMENT = { HOME: '/tmp', LANG: 'C.UTF-8', USER: 'sandbox', LOGNAME: 'sandbox', PATH: '/usr/bin:/bin' }

const NO_WHEELS: Wheels = { files: [], modules: [] }
/** Where they lie inside. */
const WHEELS = '/wheels'

/** What the engine found once, at its first use. */
export interface Ground {
  readonly pyodide: string
  /** The program in the child process. */
  readonly guest: string
  /** The package.json of the package that it is in. */
  readonly packageFile: string
  /** What else holds instances; tried at the first use. */
  readonly box: () => Promise<Box>
  readonly cache: SnapshotCache
  readonly key: string
  readonly harness: readonly BundledFile[]
  /** Descriptors of this process that a child would have, too. */
  readonly inherited: readonly number[]
  /** What the option `wheels` names, unpacked at the first use. */
  readonly wheels: () => Promise<Wheels>
}

/**
 * Finds the package, and the place of its snapshot.
 * @throws SandglassError `pyodide_missing`, `platform_unsupported`.
 */
export function prepare(options: PyodideEngineOptions): Ground {
  if (process.versions['bun'] !== undefined || process.versions['deno'] !== undefined) {
    throw new SandglassError(
      'platform_unsupported',
      'the engine pyodide needs Node: its permission model is a part of the wall',
    )
  }
  const guest = fileURLToPath(new URL(`./guest/main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url))
  const sources = Object.entries(harnessSources()).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const pyodide = pyodideDirectory()
  let wheels: Promise<Wheels> | undefined
  let box: Promise<Box> | undefined
  const at: Ground = {
    pyodide,
    guest,
    packageFile: fileURLToPath(new URL('../../../package.json', import.meta.url)),
    box: () => {
      box ??= findBox(options.bubblewrap ?? true, contentsFor(at, undefined))
      box.catch(() => (box = undefined))
      return box
    },
    cache: new SnapshotCache(options.cacheDir ?? defaultCacheDir()),
    key: snapshotKey([RECIPE, PYODIDE_VERSION, process.version, process.arch, digestOf(sources), guestDigest(guest)]),
    wheels: () => {
      wheels ??= options.wheels === undefined ? Promise.resolve(NO_WHEELS) : unpackWheels(options.wheels, WHEELS)
      wheels.catch(() => (wheels = undefined)) // what cannot be read may be readable next time
      return wheels
    },
    harness: sources.map(([name, source]) => ({ path: fileOf(name), content: Buffer.from(source) })),
    inherited: inheritedDescriptors(),
  }
  return at
}

/**
 * What starts instances for a spec. The id of the sandbox stands in their command lines.
 * @throws SandglassError `packages_unreadable`, or `sandbox_setup_failed` when the host is too short of something to look.
 */
export async function starterFor(at: Ground, spec: SandboxSpec, snapshot: Snapshot, id: string): Promise<StartGuest> {
  const [box, wheels] = await Promise.all([at.box(), at.wheels()])
  const given = bundle([...wheels.files, ...(await filesFor(spec))]) // the harness is in the snapshot
  const sizes = scratchSizes(spec.limits.diskBytes)
  return (fatal) =>
    startGuest(
      commandFor(at, box, snapshot, id),
      { ...planFor(at, spec, snapshot, given, sizes, fatal), modules: wheels.modules },
      ...rest(given, snapshot),
    )
}

function rest(given: FileBundle, snapshot: Snapshot): Uint8Array[] {
  return 'bytes' in snapshot ? [given.bytes, snapshot.bytes] : [given.bytes]
}

async function filesFor({ packages, toolsDir }: SandboxSpec): Promise<BundledFile[]> {
  return [
    ...(packages === undefined ? [] : await filesBelow('packages', packages, INSIDE.packages)),
    ...(toolsDir === undefined ? [] : await filesBelow('toolsDir', toolsDir, INSIDE.tools)),
  ]
}

/** The first message to an instance of a spec. */
export function planFor(
  at: Ground,
  spec: SandboxSpec,
  snapshot: Snapshot,
  { files, bytes }: FileBundle,
  sizes: ReturnType<typeof scratchSizes>,
  fatal: readonly string[],
): StartMessage {
  const [workspace, tmp, varTmp, shm] = INSIDE.scratch as [string, string, string, string]
  const scratch = { [workspace]: sizes.workspace, [tmp]: sizes.tmp, [varTmp]: sizes.varTmp, [shm]: sizes.shm }
  return {
    ...common(at),
    task: 'serve',
    snapshot: 'path' in snapshot ? { path: snapshot.path } : { bytes: snapshot.bytes.length },
    files,
    fileBytes: bytes.length,
    limits: { memoryBytes: spec.limits.memoryBytes, scratch },
    config: {
      environment: ENVIRONMENT,
      workspace: INSIDE.workspace,
      import_paths: [...(spec.packages === undefined ? [] : [INSIDE.packages]), WHEELS],
      tools: spec.toolsDir === undefined ? null : INSIDE.tools,
      preload: spec.preload ?? [],
      fatal,
      memory_bytes: spec.limits.memoryBytes,
      scratch,
    },
    modules: [],
  }
}

/** What every first message says. */
export function common({ pyodide }: Ground): Pick<StartMessage, 'type' | 'pyodide' | 'workspace' | 'harness'> {
  return { type: 'start', pyodide, workspace: INSIDE.workspace, harness: INSIDE.harness }
}

/** The command of an instance. */
export function commandFor(at: Ground, box: Box, snapshot: Snapshot | undefined, id = 'snapshot'): GuestCommand {
  return { ...boxed(box, contentsFor(at, snapshot, id)), covered: at.inherited }
}

/** Node, with all of its permissions taken but for reading the program itself, Pyodide and the snapshot. */
function contentsFor(at: Ground, snapshot: Snapshot | undefined, id = 'snapshot'): Contents {
  const readable = [dirname(at.guest) + sep, at.pyodide]
  if (snapshot !== undefined && 'path' in snapshot) readable.push(snapshot.path)
  return {
    program: process.execPath,
    args: [
      '--permission',
      ...readable.map((path) => `--allow-fs-read=${path}`),
      '--allow-worker', // the watchdog, started before anything else
      '--disallow-code-generation-from-strings',
      '--wasm-lazy-validation', // of functions when they are called first: most never are
      `--max-old-space-size=${HEAP_MiB}`,
      '--no-warnings',
      at.guest,
      id, // whose process it is, for whoever looks from outside
    ],
    readable: [...readable, at.packageFile], // which tells Node that the program is a module
  }
}

function fileOf(module: string): string {
  const path = module === 'sandglass_harness' ? 'sandglass_harness/__init__' : module.replace('.', '/')
  return `${INSIDE.harness}/${path}.py`
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

function guestDigest(guest: string): string {
  const directory = dirname(guest)
  const names = readdirSync(directory).toSorted()
  return digestOf(names.map((name) => [name, readFileSync(join(directory, name), 'utf8')]))
}
