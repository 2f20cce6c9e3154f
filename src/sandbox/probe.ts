import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox, SandboxReport, SandboxSpec } from './contract.ts'
import { resolveLimits, sandboxLimits } from './limits.ts'

/** How an engine is asked what is in force. */
export interface Probe<S extends Sandbox> {
  readonly engine: string
  /** Starts a sandbox with the production flags. */
  readonly create: (spec: SandboxSpec) => Promise<S>
  /** What was found in force there. */
  readonly found: (sandbox: S) => SandboxReport | Promise<SandboxReport>
  /** What to do about an error, by its code or errno. */
  readonly remedies: Readonly<Record<string, string>>
}

/** Starts a sandbox and tells what was found in force. Never throws for a missing part: the report says why. */
export async function reportOfProbe<S extends Sandbox>({
  engine,
  create,
  found,
  remedies,
}: Probe<S>): Promise<SandboxReport> {
  try {
    const sandbox = await create({ limits: sandboxLimits(resolveLimits()) })
    try {
      return await found(sandbox)
    } finally {
      await sandbox.destroy()
    }
  } catch (error) {
    return unusable(engine, error, remedies)
  }
}

/** What an engine reports that cannot make a sandbox here: nothing is in force, and the error says why. */
function unusable(engine: string, error: unknown, remedies: Readonly<Record<string, string>>): SandboxReport {
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
