import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import type { SandboxReport } from './contract.ts'

/**
 * What an engine reports that cannot make a sandbox here: nothing is in force, and the error says why.
 * @param remedies what to do about an error, by its code or errno.
 */
export function unusableReport(
  engine: string,
  error: unknown,
  remedies: Readonly<Record<string, string>>,
): SandboxReport {
  const code = error instanceof SandglassError ? error.code : (errnoOf(error) ?? 'unknown')
  const remedy = Object.hasOwn(remedies, code) ? remedies[code] : undefined
  return {
    engine,
    usable: false,
    level: 'none',
    reasons: [{ severity: 'error', code, message: messageOf(error), remedy: remedy ?? 'see the message' }],
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
}
