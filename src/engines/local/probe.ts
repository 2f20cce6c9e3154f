import {
  type EnforcedLimit,
  factsOfWorkspaces,
  harnessCapabilities,
  reportOfProbe,
  type ReportReason,
  type Sandbox,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import type { EngineEnvironment } from './environment.ts'

/** A sandbox with the facts that the host's kernel showed at its start. */
export interface LocalSandbox extends Sandbox {
  /** Limits that its control groups enforce, as the kernel confirms. */
  readonly held: readonly EnforcedLimit[]
  /** The namespaces that it does not share with the host. */
  readonly namespaces: readonly string[]
}

/** Starts a sandbox with the production flags and reports what is in force. Never throws for a missing part. */
export function probe(engine: {
  getEnvironment: () => Promise<EngineEnvironment>
  create: (spec: SandboxSpec) => Promise<LocalSandbox>
}): Promise<SandboxReport> {
  return reportOfProbe({
    engine: 'local',
    create: engine.create,
    found: async (sandbox) => makeReport(await engine.getEnvironment(), sandbox),
    servesActivities: true,
    remedies: REMEDIES,
  })
}

function makeReport(at: EngineEnvironment, sandbox: LocalSandbox): SandboxReport {
  const { checks } = sandbox.ready
  return {
    engine: 'local',
    usable: true,
    level: sandbox.info.level,
    reasons: findWarnings(at, sandbox.held),
    limitsEnforced: sandbox.info.limitsEnforced,
    network: checks['interfaces'] === 'lo' ? 'none' : 'open',
    capabilities: harnessCapabilities(sandbox, at.uids !== undefined),
    probes: {
      bwrap: at.bwrap,
      python: at.python.path,
      python_version: sandbox.info.python,
      python_passed_over: at.python.passedOver,
      state_dir: at.state.path,
      cgroup_version: at.cgroups.version,
      cgroup_problems: at.cgroups.problems,
      namespaces: sandbox.namespaces,
      ...checks,
      ...factsOfWorkspaces(checks),
    },
  }
}

function findWarnings(at: EngineEnvironment, held: readonly EnforcedLimit[]): ReportReason[] {
  const result: ReportReason[] = []
  const missing = (['memory', 'pids', 'cpu'] as const).filter((limit) => !held.includes(limit))
  const lost = missing.filter((limit) => at.cgroups.enforces.includes(limit))
  const problems = [
    ...at.cgroups.problems,
    ...(lost.length === 0
      ? []
      : [`the kernel reports that the sandbox is not in its control group for ${lost.join(', ')}`]),
  ]
  if (missing.length > 0) {
    result.push({
      severity: 'warning',
      code: 'no_cgroup',
      message: `no writable control group for ${missing.join(', ')}: ${problems.join('; ')}. Memory is then limited for each process alone (RLIMIT_AS), processes ${at.countsProcesses ? 'by RLIMIT_NPROC' : 'not at all (the kernel counts no processes of root)'}, CPU not at all`,
      remedy:
        'run as root, or give the user a delegated group (systemd: `systemd-run --user --scope -p Delegate=yes …`); see docs/running-in-a-container.md',
    })
  }
  if (at.uids === undefined) {
    result.push({
      severity: 'warning',
      code: 'one_uid',
      message:
        'all sandboxes run with the uid of this user, so per-uid kernel quotas are shared; RLIMIT_NPROC and RLIMIT_SIGPENDING are set low in each sandbox for that reason',
      remedy: 'run the host as root to give each sandbox a uid of its own',
    })
  }
  if (at.keptOrphans !== undefined) {
    result.push({
      severity: 'warning',
      code: 'orphans_kept',
      message: `orphans of dead hosts could not be removed: ${at.keptOrphans}`,
      remedy: 'run `sandglass prune`, which lists them',
    })
  }
  return result
}

const REMEDIES: Record<string, string> = {
  bubblewrap_missing: 'apt-get install bubblewrap (or the package of your distribution)',
  userns_forbidden:
    'Ubuntu 24.04: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap; elsewhere: sysctl -w user.max_user_namespaces=10000; in a container: docs/running-in-a-container.md',
  sandbox_setup_failed:
    'in a container, /proc must be mounted unmasked and mount(2) and pivot_root(2) be allowed: docs/running-in-a-container.md; elsewhere see the message',
  python_missing: 'install python3 of at least 3.10',
  python_unreachable: 'install python3 below /usr or /opt, or set the option python',
  state_dir_unusable: 'make the state directory writable, or set SANDGLASS_STATE_DIR',
  no_space: 'free space on the file system of the state directory',
  platform_unsupported: 'use Linux',
  architecture_unsupported: 'use x86_64 or aarch64',
}
