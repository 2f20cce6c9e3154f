import type { ReadyFrame } from '../../protocol/index.ts'
import type { EnforcedLimit, SandboxInfo } from '../../sandbox/index.ts'
import { OBSERVED, type Bubblewrap } from './bubblewrap.ts'

/** The checks that every instance must pass. A missing one counts as failed. */
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

/** Describes the checks that failed. */
export function failedInside(checks: ReadyFrame['checks'], { bwrap }: Bubblewrap): string[] {
  const failed = differences(checks, EXPECTED)
  if (bwrap === undefined) return failed
  const namespace = Number(checks['own_pid']) <= MAX_PID ? [] : ['it has no pid namespace of its own']
  return [...failed, ...differences(checks, EXPECTED_IN_BUBBLEWRAP), ...namespace]
}

/** The checks that an instance in bubblewrap must pass in addition. */
const EXPECTED_IN_BUBBLEWRAP: Readonly<Record<string, string | boolean>> = {
  hostname: OBSERVED.hostname,
  interfaces: 'lo',
  users_hidden: true,
}
/** Bubblewrap is the first process of its pid namespace. */
const MAX_PID = 3

/** The isolation level and the network access of instances that pass {@link failedInside}. */
export function isolationOf({ bwrap }: Bubblewrap): Pick<SandboxInfo, 'level' | 'network'> {
  return bwrap === undefined
    ? { level: 'language-only', network: 'language-only' }
    : { level: 'os-sandbox', network: 'none' }
}

function differences(
  checks: ReadyFrame['checks'],
  expected: Readonly<Record<string, string | number | boolean>>,
): string[] {
  return Object.entries(expected)
    .filter(([name, value]) => checks[name] !== value)
    .map(([name, value]) => `${name} is ${JSON.stringify(checks[name])} and must be ${JSON.stringify(value)}`)
}

/** The limits in force, as the instance probed them. */
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

/** For each limit that is not in force, the reason and a remedy. */
export const MISSING_LIMITS: Readonly<Partial<Record<EnforcedLimit, string>>> = {
  cpu: 'Node cannot limit a process to a share of a CPU; a script has one thread and uses at most one CPU; another engine can (docs/engines.md)',
}
