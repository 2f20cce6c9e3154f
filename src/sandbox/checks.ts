import type { ReadyFrame } from '../protocol/index.ts'

/** The facts that the harness must report in every sandbox. A missing one counts as failed. */
const EXPECTED: Readonly<Record<string, string | number | boolean>> = {
  pid: 1,
  leaked_fds: 0,
  no_new_privs: true,
  seccomp: true,
  capabilities: '0000000000000000',
  root_read_only: true,
  dev_read_only: true,
  proc_sys_read_only: true,
  interfaces: 'lo',
  scratch_sized: true,
}

/** Describes each fact that is not as expected. */
export function failedChecks(checks: ReadyFrame['checks']): string[] {
  return Object.entries(EXPECTED)
    .filter(([name, value]) => checks[name] !== value)
    .map(([name, value]) => `${name} is ${JSON.stringify(checks[name])} and must be ${JSON.stringify(value)}`)
}

/**
 * Describes how a script can use the broker's descriptors; empty if it cannot. With them it could send to the host as the
 * broker, and to the broker as the host. Authenticated output prevents only the first.
 */
export function findOpenDescriptors(checks: ReadyFrame['checks'], sealed: boolean): string[] {
  if (!sealed) return checks['descriptors_hidden'] === true ? [] : ["the broker's descriptors are open to scripts"]
  return checks['input_protected'] === true ? [] : ["the broker's input is open to scripts"]
}
