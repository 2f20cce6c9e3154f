import type { ReadyFrame } from '../../protocol/index.ts'
import { gvisorMemoryBytes, type SandboxLimits } from '../../sandbox/index.ts'
import type { Overhead } from './container-config.ts'

/** The kinds of runtimes: a `plain` one needs no share of a container's limits, gVisor needs one for its own kernel. */
export type RuntimeKind = 'plain' | 'gvisor'

/** The needs of the daemon's runtime. They are an assumption until the first container has reported. */
export interface RuntimeNeeds {
  kind: RuntimeKind
  /** Known after the first container that cannot see its own CPU limit. */
  cpu?: CpuLimit
}

/** A CPU limit, as the daemon sees it. */
export interface CpuLimit {
  /** True if there is one that the container does not see. */
  readonly hasQuota: boolean
  /** True if it can be changed while the container runs. */
  readonly canChange: boolean
}

/** Runtimes that share the daemon's kernel. Others get extra memory at first: without it gVisor would not start. */
const PLAIN = /^(runc|crun|youki|io\.containerd\.runc\..*)$/

/** Guesses the needs from the runtime's name, for the first container. Its report replaces the guess. */
export function guessNeeds(runtime: string): RuntimeNeeds {
  return { kind: PLAIN.test(runtime) ? 'plain' : 'gvisor' }
}

/** The kind of a container's runtime, from its report. */
export function kindOf(checks: ReadyFrame['checks']): RuntimeKind {
  return checks['gvisor'] === true ? 'gvisor' : 'plain'
}

/**
 * The amounts added to a script's own limits. In gVisor a thread of a script is several threads of the machine, so that
 * the control group cannot count them: gVisor's kernel does (`RLIMIT_NPROC`), and the group only protects the machine.
 * Measured with runsc 20221219 on ptrace and 2 processors (docs/limitations/gvisor.md).
 */
export function overheadOf(kind: RuntimeKind, limits: SandboxLimits): Overhead {
  if (kind === 'plain') return { pids: 0, memoryBytes: 0 }
  return { pids: 256 + limits.pids * 10, memoryBytes: gvisorMemoryBytes(limits) }
}
