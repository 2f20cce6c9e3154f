import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SandglassError } from '../../errors/index.ts'
import { harnessSources, INSIDE, type SandboxSpec, scratchSizes } from '../../sandbox/index.ts'
import { type Bubblewrap, wrapInBubblewrap, type Contents, findBubblewrap } from './bubblewrap.ts'
import { type BundledFile, bundle, type FileBundle, filesBelow } from './directory-files.ts'
import { type GuestCommand, startGuest } from './guest-process.ts'
import { findInheritedDescriptors } from './inherited.ts'
import type { StartMessage } from './guest/wire.ts'
import type { PyodideEngineOptions } from './options.ts'
import { PYODIDE_VERSION, findPyodideDirectory } from './package-dir.ts'
import { defaultCacheDir, type Snapshot, SnapshotCache, snapshotKey } from './snapshot-cache.ts'
import type { StartGuest } from './spare.ts'
import { unpackWheels } from './wheels.ts'

/** Incremented if the content of snapshots changes for a reason that no digest shows. */
const RECIPE = 4
/** The heap of V8, for file names and JSON. Python's memory and files lie outside of it. */
const HEAP_MiB = 128
/** The first size of the space for new objects. An instance makes 20 MB of them while it starts, most of which V8 would copy. */
const NEW_SPACE_MiB = 24
const ENVIRONMENT = {
  HOME: '/tmp',
  LANG: 'C.UTF-8',
  USER: 'sandbox',
  LOGNAME: 'sandbox',
  PATH: '/usr/bin:/bin',
  MPLBACKEND: 'agg',
}

/** The directory of unpacked wheels inside an instance. */
const WHEELS = '/wheels'

/** The surroundings of the engine, found once at its first use. */
export interface EngineEnvironment {
  readonly pyodide: string
  /** The program in the child process. */
  readonly guest: string
  /** The package.json of the package that contains the program. */
  readonly packageFile: string
  /** Bubblewrap around instances; tried at the first use. */
  readonly bubblewrap: () => Promise<Bubblewrap>
  readonly cache: SnapshotCache
  readonly key: string
  readonly harness: readonly BundledFile[]
  /** Descriptors of this process that a child would inherit. */
  readonly inherited: readonly number[]
  /** The content of the wheels that the option `wheels` names, unpacked at the first use. */
  readonly wheels: () => Promise<readonly BundledFile[]>
}

/**
 * Finds the package and the path of its snapshot.
 * @throws SandglassError `pyodide_missing`, `platform_unsupported`.
 */
export function findEnvironment(options: PyodideEngineOptions): EngineEnvironment {
  if (process.versions['bun'] !== undefined || process.versions['deno'] !== undefined) {
    throw new SandglassError(
      'platform_unsupported',
      'the engine pyodide needs Node: its permission model is a part of the wall',
    )
  }
  const guest = fileURLToPath(new URL(`./guest/main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url))
  const sources = Object.entries(harnessSources())
  const pyodide = findPyodideDirectory()
  let wheels: Promise<readonly BundledFile[]> | undefined
  let bubblewrap: Promise<Bubblewrap> | undefined
  const environment: EngineEnvironment = {
    pyodide,
    guest,
    packageFile: fileURLToPath(new URL('../../../package.json', import.meta.url)),
    bubblewrap: () => {
      bubblewrap ??= findBubblewrap(options.bubblewrap ?? true, contentsFor(environment, undefined))
      bubblewrap.catch(() => (bubblewrap = undefined))
      return bubblewrap
    },
    cache: new SnapshotCache(options.cacheDir ?? defaultCacheDir()),
    key: snapshotKey([RECIPE, PYODIDE_VERSION, process.version, process.arch, digestOf(sources), guestDigest(guest)]),
    wheels: () => {
      wheels ??= options.wheels === undefined ? Promise.resolve([]) : unpackWheels(options.wheels, WHEELS)
      wheels.catch(() => (wheels = undefined)) // may be readable next time
      return wheels
    },
    harness: sources.map(([path, source]) => ({ path: `${INSIDE.harness}/${path}`, content: Buffer.from(source) })),
    inherited: findInheritedDescriptors(),
  }
  return environment
}

/**
 * Returns a function that starts instances for a spec. Their command lines contain the id of the sandbox.
 * @throws SandglassError `packages_unreadable`, or `sandbox_setup_failed` if the host is short of a resource.
 */
export async function starterFor(
  environment: EngineEnvironment,
  spec: SandboxSpec,
  snapshot: Snapshot,
  id: string,
): Promise<StartGuest> {
  const [bubblewrap, wheels] = await Promise.all([environment.bubblewrap(), environment.wheels()])
  const contents = [...wheels, ...(await filesFor(spec))] // the harness is in the snapshot
  const given = bundle(contents)
  const modules = digestsOfModules(contents)
  const sizes = scratchSizes(spec.limits.diskBytes)
  return (fatal) =>
    startGuest(
      commandFor(environment, bubblewrap, snapshot, id),
      { ...planFor(environment, spec, snapshot, given, sizes, fatal), modules },
      ...bytesAfterPlan(given, snapshot),
    )
}

/** The SHA-256 of each extension module: an instance compiles no other WebAssembly. */
function digestsOfModules(files: readonly BundledFile[]): string[] {
  return files
    .filter(({ path }) => path.endsWith('.so'))
    .map(({ content }) => createHash('sha256').update(content).digest('hex'))
}

function bytesAfterPlan(given: FileBundle, snapshot: Snapshot): Uint8Array[] {
  return 'bytes' in snapshot ? [given.bytes, snapshot.bytes] : [given.bytes]
}

async function filesFor({ packages, toolsDir }: SandboxSpec): Promise<BundledFile[]> {
  return [
    ...(packages === undefined ? [] : await filesBelow('packages', packages, INSIDE.packages)),
    ...(toolsDir === undefined ? [] : await filesBelow('toolsDir', toolsDir, INSIDE.tools)),
  ]
}

/** The first message to an instance of a spec. */
function planFor(
  environment: EngineEnvironment,
  spec: SandboxSpec,
  snapshot: Snapshot,
  { files, bytes }: FileBundle,
  sizes: ReturnType<typeof scratchSizes>,
  fatal: readonly string[],
): StartMessage {
  const [workspace, tmp, varTmp, shm] = INSIDE.scratch as [string, string, string, string]
  const scratch = { [workspace]: sizes.workspace, [tmp]: sizes.tmp, [varTmp]: sizes.varTmp, [shm]: sizes.shm }
  return {
    ...commonFields(environment),
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

/** The fields that all first messages have in common. */
export function commonFields({
  pyodide,
}: EngineEnvironment): Pick<StartMessage, 'type' | 'pyodide' | 'workspace' | 'harness'> {
  return { type: 'start', pyodide, workspace: INSIDE.workspace, harness: INSIDE.harness }
}

/** The command that starts an instance. */
export function commandFor(
  environment: EngineEnvironment,
  bubblewrap: Bubblewrap,
  snapshot: Snapshot | undefined,
  id = 'snapshot',
): GuestCommand {
  return { ...wrapInBubblewrap(bubblewrap, contentsFor(environment, snapshot, id)), covered: environment.inherited }
}

/** Node with a single permission: to read the program itself, Pyodide and the snapshot. */
function contentsFor(environment: EngineEnvironment, snapshot: Snapshot | undefined, id = 'snapshot'): Contents {
  const readable = [dirname(environment.guest) + sep, environment.pyodide]
  if (snapshot !== undefined && 'path' in snapshot) readable.push(snapshot.path)
  return {
    program: process.execPath,
    args: [
      '--permission',
      ...readable.map((path) => `--allow-fs-read=${path}`),
      '--allow-worker', // the watchdog, started before anything else, and the interrupts of a session
      '--disallow-code-generation-from-strings', // V8's other flags are set in the process, in guest/flags.ts
      `--max-old-space-size=${HEAP_MiB}`,
      `--min-semi-space-size=${NEW_SPACE_MiB}`,
      '--no-warnings',
      environment.guest,
      id, // identifies the owner of the process to outside observers
    ],
    readable: [...readable, environment.packageFile], // tells Node that the program is a module
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

function guestDigest(guest: string): string {
  const directory = dirname(guest)
  const names = readdirSync(directory).toSorted()
  return digestOf(names.map((name) => [name, readFileSync(join(directory, name), 'utf8')]))
}
