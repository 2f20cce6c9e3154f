import type { ReadyFrame } from '../protocol/index.ts'

/** What the harness must find around itself, in every sandbox: default is closed. */
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

/** What is not as built, in words; empty when all is. */
export function failedChecks(checks: ReadyFrame['checks']): string[] {
  return Object.entries(EXPECTED)
    .filter(([name, value]) => checks[name] !== value)
    .map(([name, value]) => `${name} is ${JSON.stringify(checks[name])} and must be ${JSON.stringify(value)}`)
}
