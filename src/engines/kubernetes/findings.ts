import type { ReadyFrame } from '../../protocol/index.ts'
import type { EnforcedLimit, SandboxLimits } from '../../sandbox/index.ts'

const ORDER: readonly EnforcedLimit[] = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']
/** Kernels round memory to whole pages of up to this size. */
const PAGE_BYTES = 65_536
/** A pod's CPU limit has three decimals, and the kernel rounds the quota to microseconds. */
const CPU_STEP = 0.0011

/** The limits in force, as the kernel reports them from within the pod. `limits` are those that it must show. */
export function enforcedLimits(
  limits: Pick<SandboxLimits, 'memoryBytes' | 'cpus'>,
  checks: ReadyFrame['checks'],
): EnforcedLimit[] {
  const held: Record<EnforcedLimit, boolean> = {
    memory: isNear(checks['memory_limit'], limits.memoryBytes, PAGE_BYTES),
    // The harness sets the limit for its uid, which no other process of the node has; a pod in which the kernel does not count
    // them does not become ready (harness/join.py).
    pids: true,
    cpu: isNear(checks['cpu_limit'], limits.cpus, CPU_STEP),
    // A pod whose volumes are larger does not become ready either.
    disk: true,
    output: true,
    wall: true,
  }
  return ORDER.filter((limit) => held[limit])
}

/** The reason and the remedy for each limit that is not in force. */
export function missingLimits(held: readonly EnforcedLimit[]): Partial<Record<EnforcedLimit, string>> {
  const missing = ORDER.filter((limit) => !held.includes(limit))
  return Object.fromEntries(missing.map((limit) => [limit, explainMissing([limit])]))
}

/** The reason why some limits are not in force. */
export function explainMissing(limits: readonly EnforcedLimit[]): string {
  return `no control group visible in the pod limits ${limits.join(', ')} to what was asked for; see docs/kubernetes.md`
}

function isNear(seen: unknown, wanted: number, step: number): boolean {
  return typeof seen === 'number' && Math.abs(seen - wanted) < step
}
