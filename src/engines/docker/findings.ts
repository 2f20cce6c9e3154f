import type { ReadyFrame } from '../../protocol/index.ts'
import type { EnforcedLimit, IsolationLevel, SandboxLimits } from '../../sandbox/index.ts'
import type { Overhead } from './container-config.ts'

/**
 * The isolation level, from the kernel that the harness sees. A sandbox with the daemon's kernel is only a container, even
 * if that kernel is gVisor's, and also if the daemon does not report its kernel (an empty name).
 */
export function levelOf(checks: ReadyFrame['checks'], daemonKernel: string): IsolationLevel {
  if (daemonKernel === '' || checks['kernel'] === daemonKernel) return 'container'
  return checks['gvisor'] === true ? 'gvisor' : 'vm'
}

/** The facts about the limits of one container. */
export interface Findings {
  readonly checks: ReadyFrame['checks']
  readonly overhead: Overhead
  /** True if the daemon sees a CPU limit that the container does not see. */
  readonly hasQuota: boolean
}

const ORDER: readonly EnforcedLimit[] = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']

/** The limits in force, as the kernel or the daemon reports them. */
export function enforcedLimits(limits: SandboxLimits, { checks, overhead, hasQuota }: Findings): EnforcedLimit[] {
  const held: Record<EnforcedLimit, boolean> = {
    memory: isNear(checks['memory_limit'], limits.memoryBytes + overhead.memoryBytes, PAGE_BYTES),
    pids: checks['pids_limit'] === limits.pids,
    cpu: isNear(checks['cpu_limit'], limits.cpus, CPU_STEP) || (checks['cpu_limit'] === null && hasQuota),
    disk: true,
    output: true,
    wall: true,
  }
  return ORDER.filter((limit) => held[limit])
}

/** The reason and the remedy for each limit that is not in force. No other limit replaces it. */
export function missingLimits(held: readonly EnforcedLimit[]): Partial<Record<EnforcedLimit, string>> {
  const missing = ORDER.filter((limit) => !held.includes(limit))
  return Object.fromEntries(missing.map((limit) => [limit, `${explainMissing([limit])}; ${MISSING_REMEDY}`]))
}

/** The reason why some limits are not in force. */
export function explainMissing(limits: readonly EnforcedLimit[]): string {
  return `no control group visible in the container limits ${limits.join(', ')}`
}

/** The remedy for limits that are not in force. */
export const MISSING_REMEDY =
  'enable the controller of each on the machine of the daemon (`docker info` warns about it), see docs/docker.md'

/** Kernels round memory to whole pages of up to this size. */
const PAGE_BYTES = 65_536
/** Kernels round a quota to microseconds in a period of a tenth of a second. */
const CPU_STEP = 0.000_02

function isNear(seen: unknown, wanted: number, step: number): boolean {
  return typeof seen === 'number' && Math.abs(seen - wanted) < step
}
