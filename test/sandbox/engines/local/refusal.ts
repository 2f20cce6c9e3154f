import { expect } from 'vitest'
import type { SandboxReport } from '../../../../src/sandbox/index.ts'

const UNUSABLE: Omit<SandboxReport, 'reasons'> = {
  engine: 'local',
  usable: false,
  level: 'none',
  limitsEnforced: [],
  network: 'none',
  capabilities: {
    processes: false,
    threads: false,
    preload: false,
    packages: false,
    toolsDir: false,
    systemCallFilter: false,
    uidPerSandbox: false,
  },
  probes: {},
}

/** Checks that a report is of an unusable engine, and returns its only reason. */
export function refusal(report: SandboxReport): { code: string; message: string; remedy: string } {
  const { reasons, ...rest } = report
  expect(rest).toEqual(UNUSABLE)
  expect(reasons.map(({ severity }) => severity)).toEqual(['error'])
  const [{ code, message, remedy } = { code: '', message: '', remedy: '' }] = reasons
  return { code, message, remedy }
}
