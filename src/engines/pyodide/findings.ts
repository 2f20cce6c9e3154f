import type { ReadyFrame } from '../../protocol/index.ts'
import type { EnforcedLimit } from '../../sandbox/index.ts'

/** What an instance must find around itself: default is closed. */
const EXPECTED: Readonly<Record<string, string | number | boolean>> = {
  files_refused: true,
  processes_refused: true,
  code_from_text_refused: true,
  environment: 0,
  bridges: '',
  bridge_builtin: false,
  memory_by_address: false,
  threads: false,
  processes: false,
}

/** What is not as built, in words; empty when all is. */
export function failedInside(checks: ReadyFrame['checks']): string[] {
  return Object.entries(EXPECTED)
    .filter(([name, value]) => checks[name] !== value)
    .map(([name, value]) => `${name} is ${JSON.stringify(checks[name])} and must be ${JSON.stringify(value)}`)
}

/** The limits that are in force, as far as trying showed. */
export function enforcedLimits(checks: ReadyFrame['checks']): EnforcedLimit[] {
  const held: Record<EnforcedLimit, boolean> = {
    memory: checks['memory_limited'] === true,
    pids: checks['threads'] === false && checks['processes'] === false,
    cpu: false,
    disk: checks['disk_limited'] === true,
    output: true,
    wall: true,
  }
  return (Object.keys(held) as EnforcedLimit[]).filter((limit) => held[limit])
}

/** Why limits are not in force, and what to do. */
export const MISSING_LIMITS: Readonly<Partial<Record<EnforcedLimit, string>>> = {
  cpu: 'Node cannot hold a process to a share of a CPU; a script has one thread, so at most one CPU; take the engine local or docker',
}
