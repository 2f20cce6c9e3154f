import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SandboxLimits } from './limits.ts'

/** The harness as it lies in this package. */
export const HARNESS_DIR: string = fileURLToPath(new URL('../../harness', import.meta.url))

/** Where things are inside a sandbox, whatever engine made it. */
export const INSIDE: {
  readonly harness: '/sandglass'
  readonly workspace: '/workspace'
  readonly packages: '/packages'
  readonly tools: '/tools'
  readonly scratch: readonly string[]
} = {
  harness: '/sandglass',
  workspace: '/workspace',
  packages: '/packages',
  tools: '/tools',
  scratch: ['/workspace', '/tmp', '/var/tmp', '/dev/shm'],
}

/** Flags of the Python that runs the harness: nothing of the environment, no `site`, no byte code written. */
export const PYTHON_FLAGS: readonly string[] = ['-I', '-S', '-B', '-X', 'utf8']

/** What decides how a harness sets its sandbox up. */
export interface HarnessOptions {
  readonly limits: SandboxLimits
  readonly packages: boolean
  readonly toolsDir: boolean
  readonly preload: readonly string[]
  /** Whether each process must be held to the memory limit, because nothing holds the sandbox as a whole. */
  readonly boundsAddressSpace: boolean
  /** Whether it is there to check scripts, not to run them. Default false. */
  readonly checker?: boolean
  /** Whether scripts can import what is installed beside the sandbox's Python, behind `packages`. Default false. */
  readonly installed?: boolean
  /** Whether it marks all that it sends with a key that comes first on its channel. Default false. */
  readonly sealed?: boolean
}

/** The harness's only argument. Every process inside can read it: nothing secret may be in it. */
export function harnessConfig(options: HarnessOptions): string {
  const { limits, packages, toolsDir, preload, boundsAddressSpace } = options
  const { checker = false, installed = false, sealed = false } = options
  return JSON.stringify({
    scratch: INSIDE.scratch,
    workspace: INSIDE.workspace,
    import_paths: packages ? [INSIDE.packages] : [],
    tools: toolsDir ? INSIDE.tools : null,
    preload,
    checker,
    installed,
    sealed,
    rlimits: {
      RLIMIT_CORE: [0, 0],
      RLIMIT_NOFILE: [1024, 4096],
      RLIMIT_NPROC: [limits.pids, limits.pids],
      // Counted per uid of the host: one script could take the slots of all.
      RLIMIT_SIGPENDING: [512, 512],
      RLIMIT_MSGQUEUE: [0, 0],
      RLIMIT_MEMLOCK: [65_536, 65_536],
      ...(boundsAddressSpace ? { RLIMIT_AS: [limits.memoryBytes, limits.memoryBytes] } : {}),
    },
  })
}

/** The modules of the harness: full name to source. */
export function harnessSources(): Record<string, string> {
  const directory = join(HARNESS_DIR, 'sandglass_harness')
  const files = readdirSync(directory).filter((name) => name.endsWith('.py'))
  return Object.fromEntries(files.map((name) => [moduleName(name), readFileSync(join(directory, name), 'utf8')]))
}

function moduleName(file: string): string {
  return file === '__init__.py' ? 'sandglass_harness' : `sandglass_harness.${file.slice(0, -'.py'.length)}`
}
