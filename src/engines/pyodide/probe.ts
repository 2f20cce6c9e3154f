import {
  reportOfProbe,
  type ReportReason,
  type Sandbox,
  type SandboxReport,
  type SandboxSpec,
} from '../../sandbox/index.ts'
import type { Box } from './box.ts'
import type { Ground } from './ground.ts'
import { PYODIDE_VERSION } from './package-dir.ts'
import type { Snapshot } from './snapshot-cache.ts'

/** Starts a sandbox with the production flags and tells what was found in force. Never throws for a missing part. */
export function probe(engine: {
  prepared: () => Ground
  create: (spec: SandboxSpec) => Promise<Sandbox>
  snapshot: () => Promise<Snapshot>
}): Promise<SandboxReport> {
  return reportOfProbe({
    engine: 'pyodide',
    create: engine.create,
    found: async (sandbox) => found(engine.prepared(), await engine.prepared().box(), await engine.snapshot(), sandbox),
    remedies: REMEDIES,
  })
}

function found(at: Ground, box: Box, { untrained }: Snapshot, { info, ready: { checks } }: Sandbox): SandboxReport {
  return {
    engine: 'pyodide',
    usable: true,
    level: info.level,
    reasons: box.bwrap === undefined ? [languageOnly(box.reason)] : [],
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
    },
    probes: {
      pyodide: PYODIDE_VERSION,
      node: process.version,
      python_version: info.python,
      snapshot: at.cache.pathOf(at.key),
      snapshot_cached: at.cache.has(at.key),
      ...checks,
      ...(untrained === undefined ? {} : { machine_code_missing: untrained }),
    },
  }
}

function languageOnly(reason: string): ReportReason {
  return {
    severity: 'warning',
    code: 'language_only',
    message:
      'scripts are held by WebAssembly and by Node alone: no namespace, no system call filter, no user of their own; ' +
      `who gets out of both has what this user has, the network included (${reason})`,
    remedy: 'for scripts that nobody trusts take the engine local (Linux, bubblewrap) or docker',
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
