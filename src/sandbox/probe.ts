import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox, SandboxReport, SandboxSpec } from './contract.ts'
import { resolveLimits, sandboxLimits } from './limits.ts'

/** The functions that probe one engine. */
export interface Probe<S extends Sandbox> {
  readonly engine: string
  /** Starts a sandbox with the production flags. */
  readonly create: (spec: SandboxSpec) => Promise<S>
  /** Reports what is in force in that sandbox. */
  readonly found: (sandbox: S) => SandboxReport | Promise<SandboxReport>
  /** The remedies of errors, by code or errno. */
  readonly remedies: Readonly<Record<string, string>>
}

/** Starts a sandbox and reports what is in force. Never throws for a missing part: the report has the reason. */
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
    return makeUnusableReport(engine, error, remedies)
  }
}

/** Makes the report of an engine that cannot make a sandbox here, with the error as its reason. */
function makeUnusableReport(engine: string, error: unknown, remedies: Readonly<Record<string, string>>): SandboxReport {
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

/** From this version on, Landlock keeps signals within a domain. */
const LANDLOCK_WITH_SIGNALS = 6

/**
 * The facts of a report about workspaces: well-known programs that scripts and `exec` find beside Python, and the way in which
 * activities are kept apart: by `landlock`, or not at all, so that their end must `scan` for processes. A workspace tries it
 * when it starts, and says so in `trust`.
 */
export function factsOfWorkspaces({ landlock_abi: abi, programs, gvisor }: Sandbox['ready']['checks']): {
  readonly programs: readonly string[]
  readonly activities_apart: 'landlock' | 'scan' | null
} {
  const apart = typeof abi === 'number' && abi >= LANDLOCK_WITH_SIGNALS ? 'landlock' : 'scan'
  return {
    programs: typeof programs === 'string' ? programs.split(',').filter((name) => name !== '') : [],
    activities_apart: gvisor === true ? null : apart,
  }
}
