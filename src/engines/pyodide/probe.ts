import {
  reportOfProbe,
  type ReportReason,
  type Sandbox,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import type { Bubblewrap } from './bubblewrap.ts'
import type { EngineEnvironment } from './environment.ts'
import { PYODIDE_VERSION } from './package-dir.ts'

/** Starts a sandbox with the production flags and reports what is in force. Never throws for a missing part. */
export function probe(engine: {
  getEnvironment: () => EngineEnvironment
  create: (spec: SandboxSpec) => Promise<Sandbox>
}): Promise<SandboxReport> {
  return reportOfProbe({
    engine: 'pyodide',
    create: engine.create,
    found: async (sandbox) => makeReport(engine.getEnvironment(), await engine.getEnvironment().bubblewrap(), sandbox),
    remedies: REMEDIES,
  })
}

function makeReport(
  environment: EngineEnvironment,
  bubblewrap: Bubblewrap,
  { info, ready: { checks } }: Sandbox,
): SandboxReport {
  return {
    engine: 'pyodide',
    usable: true,
    level: info.level,
    reasons: bubblewrap.bwrap === undefined ? [warnLanguageOnly(bubblewrap.reason)] : [],
    limitsEnforced: info.limitsEnforced,
    network: info.network,
    capabilities: {
      processes: false,
      threads: false,
      preload: true,
      packages: true,
      toolsDir: true,
      systemCallFilter: false,
      uidPerSandbox: false,
      workspaces: true,
      concurrentActivities: false,
      programs: false,
      sessions: 'cells',
      lesserCpus: false,
    },
    probes: {
      pyodide: PYODIDE_VERSION,
      node: process.version,
      python_version: info.python,
      snapshot: environment.cache.pathOf(environment.key),
      snapshot_cached: environment.cache.has(environment.key),
      ...checks,
    },
  }
}

function warnLanguageOnly(reason: string): ReportReason {
  return {
    severity: 'warning',
    code: 'language_only',
    message:
      'only WebAssembly and Node isolate scripts: no namespace, no system call filter, no user of their own; ' +
      `a script that escapes from both has the rights of this user, including the network (${reason})`,
    remedy: 'for untrusted scripts, use the engine local (Linux, bubblewrap) or docker',
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  pyodide_missing: `npm install pyodide@${PYODIDE_VERSION}`,
  harness_start_failed:
    'see the message; free memory, raise pyodide.startTimeoutMs on a slow machine, or set pyodide.bubblewrap to false',
  sandbox_setup_failed:
    'use a Node of the versions that package.json names, without flags that weaken its permissions; or set pyodide.bubblewrap to false',
  platform_unsupported: 'use Node',
}
