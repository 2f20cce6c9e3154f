import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deflateSync } from 'node:zlib'
import type { SandboxLimits } from './limits.ts'

/** The directory of the harness in this package. */
export const HARNESS_DIR: string = fileURLToPath(new URL('../../harness', import.meta.url))

const PACKAGE = 'sandglass_harness'

/** Paths inside a sandbox, the same on every engine. */
export const INSIDE: {
  readonly harness: '/sandglass'
  readonly workspace: '/workspace'
  readonly packages: '/packages'
  readonly tools: '/tools'
  readonly inputs: '/inputs'
  readonly scratch: readonly string[]
} = {
  harness: '/sandglass',
  workspace: '/workspace',
  packages: '/packages',
  tools: '/tools',
  inputs: '/inputs',
  scratch: ['/workspace', '/tmp', '/var/tmp', '/dev/shm'],
}

/** Flags of the Python that runs the harness: no environment variables, no `site`, no byte code written. */
export const PYTHON_FLAGS: readonly string[] = ['-I', '-S', '-B', '-X', 'utf8']

/** The options of a harness. */
export interface HarnessOptions {
  readonly limits: SandboxLimits
  readonly packages: boolean
  readonly toolsDir: boolean
  readonly preload: readonly string[]
  /** True if the memory limit must apply to each process, because none applies to the sandbox as a whole. */
  readonly boundsAddressSpace: boolean
  /** True if the sandbox checks scripts and runs none. Default false. */
  readonly checker?: boolean
  /** True if it serves several activities at once, in a workspace. Default false. */
  readonly activities?: boolean
  /** True if scripts can import packages that are installed beside the sandbox's Python, after `packages`. Default false. */
  readonly installed?: boolean
  /** True if it authenticates all bytes that it sends (HMAC). The key is the first input on its channel. Default false. */
  readonly sealed?: boolean
}

/** The harness's only argument. Every process in the sandbox can read it, so it holds no secret. */
export function harnessConfig(options: HarnessOptions): string {
  const { limits, packages, toolsDir, preload, boundsAddressSpace } = options
  const { checker = false, activities = false, installed = false, sealed = false } = options
  return JSON.stringify({
    scratch: INSIDE.scratch,
    workspace: INSIDE.workspace,
    import_paths: packages ? [INSIDE.packages] : [],
    tools: toolsDir ? INSIDE.tools : null,
    preload,
    checker,
    activities,
    installed,
    sealed,
    rlimits: {
      RLIMIT_CORE: [0, 0],
      RLIMIT_NOFILE: [1024, 4096],
      RLIMIT_NPROC: [limits.pids, limits.pids],
      // Counted per uid of the host: without a limit one script could use up the slots of all sandboxes.
      RLIMIT_SIGPENDING: [512, 512],
      RLIMIT_MSGQUEUE: [0, 0],
      RLIMIT_MEMLOCK: [65_536, 65_536],
      ...(boundsAddressSpace ? { RLIMIT_AS: [limits.memoryBytes, limits.memoryBytes] } : {}),
    },
  })
}

/** The harness's Python files: path below {@link INSIDE}`.harness` to source, in the order of their paths. */
export function harnessSources(): Record<string, string> {
  const files = readdirSync(join(HARNESS_DIR, PACKAGE), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.py'))
    .map((name) => `${PACKAGE}/${name.replaceAll('\\', '/')}`) // Windows joins by a backslash
    .toSorted()
  return Object.fromEntries(files.map((path) => [path, readFileSync(join(HARNESS_DIR, path), 'utf8')]))
}

/** The harness, packed for a sandbox that does not have its files. */
export interface PackedHarness {
  /** The argument of `python3 -c`: a program that reads the harness from its standard input and starts it. */
  readonly program: string
  /** The first bytes on its standard input, before any frame. */
  readonly bytes: Uint8Array
}

/** Packs the harness of this package. */
export function packHarness(): PackedHarness {
  const packed = deflateSync(JSON.stringify(harnessSources()))
  return {
    program: readFileSync(join(HARNESS_DIR, 'deliver.py'), 'utf8'),
    bytes: Buffer.concat([Buffer.from(`${packed.length}\n`), packed]),
  }
}
