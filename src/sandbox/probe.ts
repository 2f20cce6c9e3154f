import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox, SandboxCapabilities, SandboxReport, SandboxSpec } from './contract.ts'
import { resolveLimits, sandboxLimits } from './limits.ts'

/** The functions that probe one engine. */
export interface Probe<S extends Sandbox> {
  readonly engine: string
  /** Starts a sandbox with the production flags. */
  readonly create: (spec: SandboxSpec) => Promise<S>
  /** Reports what is in force in that sandbox. */
  readonly found: (sandbox: S) => SandboxReport | Promise<SandboxReport>
  /** True to start the sandbox as one of a workspace: it then detects how activities can be kept apart. */
  readonly servesActivities?: boolean
  /** The remedies of errors, by code or errno. */
  readonly remedies: Readonly<Record<string, string>>
}

/** Starts a sandbox and reports what is in force. Never throws for a missing part: the report has the reason. */
export async function reportOfProbe<S extends Sandbox>({
  engine,
  create,
  found,
  servesActivities = false,
  remedies,
}: Probe<S>): Promise<SandboxReport> {
  try {
    const sandbox = await create({ limits: sandboxLimits(resolveLimits()), activities: servesActivities })
    try {
      return await found(sandbox)
    } finally {
      await sandbox.destroy()
    }
  } catch (error) {
    return makeUnusableReport(engine, error, remedies)
  }
}

/** Makes the report of an engine that cannot make sandboxes on this machine, with the error as its reason. */
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

/** The capabilities of an engine whose sandboxes run the harness as processes of Linux. */
export function harnessCapabilities(sandbox: Sandbox, uidPerSandbox: boolean): SandboxCapabilities {
  const { checks } = sandbox.ready
  return {
    processes: true,
    threads: true,
    preload: true,
    packages: true,
    toolsDir: true,
    systemCallFilter: checks['seccomp'] === true,
    uidPerSandbox,
    workspaces: true,
    concurrentActivities: checks['signal_scope'] !== 'serial',
    programs: true,
    sessions: checks['signal_scope'] === 'serial' ? 'cells' : 'checkpoints',
    lesserCpus: sandbox.lowerCpuLimit !== undefined,
  }
}

/**
 * The facts of a report about workspaces: well-known programs that scripts and `exec` find beside Python, and how the
 * sandbox of a workspace keeps activities apart: by `landlock`; by a `scan` for processes at the end of each; or by running one
 * at a time (`serial`).
 */
export function factsOfWorkspaces({ programs, signal_scope: apart }: Sandbox['ready']['checks']): {
  readonly programs: readonly string[]
  readonly activities_apart: string | null
} {
  return {
    programs: typeof programs === 'string' ? programs.split(',').filter((name) => name !== '') : [],
    activities_apart: typeof apart === 'string' ? apart : null,
  }
}
