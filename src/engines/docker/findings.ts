import type { ReadyFrame } from '../../protocol/index.ts'
import type { EnforcedLimit, IsolationLevel, SandboxLimits } from '../../sandbox/index.ts'
import type { Overhead } from './container-config.ts'

/**
 * How strong the wall is, from what the harness saw of the kernel that it runs on. One that has the daemon's kernel is no
 * more than a container, also where that kernel is gVisor's, and where the daemon does not tell (an empty name).
 */
export function levelOf(checks: ReadyFrame['checks'], daemonKernel: string): IsolationLevel {
  if (daemonKernel === '' || checks['kernel'] === daemonKernel) return 'container'
  return checks['gvisor'] === true ? 'gvisor' : 'vm'
}

/**
 * What a script can do to the broker's descriptors, in words; empty when nothing. With them it could speak to the host in
 * the broker's name, and to the broker in the host's. A seal stands for the first alone.
 */
export function openDescriptors(checks: ReadyFrame['checks'], sealed: boolean): string[] {
  if (!sealed) return checks['descriptors_hidden'] === true ? [] : ["the broker's descriptors are open to scripts"]
  return checks['input_shut'] === true ? [] : ["what the broker reads the host's requests from is open to scripts"]
}

/** What was found of the limits of one container. */
export interface Findings {
  readonly checks: ReadyFrame['checks']
  readonly overhead: Overhead
  /** Whether the daemon sees a limit of CPU time that the container does not see. */
  readonly hasQuota: boolean
}

const ORDER: readonly EnforcedLimit[] = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']

/** The limits that are in force, as far as kernel and daemon show them. */
export function enforcedLimits(limits: SandboxLimits, { checks, overhead, hasQuota }: Findings): EnforcedLimit[] {
  const held: Record<EnforcedLimit, boolean> = {
    memory: isAbout(checks['memory_limit'], limits.memoryBytes + overhead.memoryBytes, PAGE_BYTES),
    pids: checks['pids_limit'] === limits.pids,
    cpu: isAbout(checks['cpu_limit'], limits.cpus, CPU_STEP) || (checks['cpu_limit'] === null && hasQuota),
    disk: true,
    output: true,
    wall: true,
  }
  return ORDER.filter((limit) => held[limit])
}

/** Why limits are not in force and what to do, for those that are not: nothing holds in their place. */
export function missingLimits(held: readonly EnforcedLimit[]): Partial<Record<EnforcedLimit, string>> {
  const missing = ORDER.filter((limit) => !held.includes(limit))
  return Object.fromEntries(missing.map((limit) => [limit, `${whyMissing([limit])}; ${MISSING_REMEDY}`]))
}

/** Why some limits are not in force, in words. */
export function whyMissing(limits: readonly EnforcedLimit[]): string {
  return `no control group seen in the container holds it to ${limits.join(', ')}`
}

/** What to do about it. */
export const MISSING_REMEDY =
  'enable the controller of each on the machine of the daemon (docker info warns of it), see docs/docker.md'

/** Kernels round to whole pages, of up to this size, */
const PAGE_BYTES = 65_536
/** and a quota to microseconds in a period of a tenth of a second. */
const CPU_STEP = 0.000_02

function isAbout(seen: unknown, wanted: number, step: number): boolean {
  return typeof seen === 'number' && Math.abs(seen - wanted) < step
}
