import type { ReadyFrame } from '../../protocol/index.ts'
import type { SandboxLimits } from '../../sandbox/index.ts'
import type { Overhead } from './container-config.ts'

/** What a runtime needs of a container's limits for itself: `plain` ones nothing, gVisor the room of its own kernel. */
export type RuntimeKind = 'plain' | 'gvisor'

/** What is known of the daemon's runtime. It may be wrong until the first container was seen from inside. */
export interface RuntimeNeeds {
  kind: RuntimeKind
  /** Found with the first container that cannot see its own limit of CPU time. */
  cpu?: CpuLimit
}

/** A limit of CPU time, as the daemon sees it. */
export interface CpuLimit {
  /** Whether there is one that the container does not see. */
  readonly hasQuota: boolean
  /** Whether it can be changed while the container runs. */
  readonly canChange: boolean
}

/** Runtimes that share the daemon's kernel. Others get room first: without it gVisor would not even start. */
const PLAIN = /^(runc|crun|youki|io\.containerd\.runc\..*)$/

/** With which limits the first container is tried; what it says of itself then counts, not the name. */
export function expectedNeeds(runtime: string): RuntimeNeeds {
  return { kind: PLAIN.test(runtime) ? 'plain' : 'gvisor' }
}

/** What a container's runtime turned out to be. */
export function kindOf(checks: ReadyFrame['checks']): RuntimeKind {
  return checks['gvisor'] === true ? 'gvisor' : 'plain'
}

const MiB = 1024 * 1024

/**
 * What comes on top of a script's own limits. In gVisor a thread of a script is several of the machine's, so that the
 * control group cannot count them: its own kernel does (`RLIMIT_NPROC`), and the group only keeps the machine from harm.
 * Measured with runsc 20221219 on ptrace and 2 processors (docs/limitations/gvisor.md).
 */
export function overheadOf(kind: RuntimeKind, { pids }: SandboxLimits): Overhead {
  if (kind === 'plain') return { pids: 0, memoryBytes: 0 }
  return { pids: 256 + pids * 10, memoryBytes: 32 * MiB + (pids * MiB) / 4 }
}
