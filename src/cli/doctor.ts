import { dockerEngine, reportOtherRuntimes, type RuntimeReport } from '../engines/docker/index.ts'
import { localEngine } from '../engines/local/index.ts'
import { pyodideEngine } from '../engines/pyodide/index.ts'
import type { SandboxEngine } from '../sandbox/index.ts'
import type { Given } from './args.ts'
import { type Context, isLively } from './context.ts'
import { doctorText } from './doctor-text.ts'
import type { EngineFindings } from './engine-findings.ts'
import { EXIT } from './exit-codes.ts'

/** `sandglass doctor`: what is in force here, from probes. Resolves to the exit code. */
export async function doctor(given: Given, context: Context): Promise<number> {
  const engines = [
    await probed(localEngine(), context.signal),
    await docker(context.signal),
    await probed(pyodideEngine(), context.signal),
  ]
  context.signal.throwIfAborted()
  const auto = engines.find(({ usable }) => usable)?.name ?? null
  if (given.has('--json')) await context.stdout.line({ v: 1, auto, engines })
  else await context.stdout.write(doctorText(auto, engines, context.stdout.isTerminal && isLively(context)))
  return auto === null ? EXIT.missing : EXIT.ok
}

async function probed(engine: SandboxEngine, signal: AbortSignal): Promise<EngineFindings> {
  try {
    const report = await engine.report({ signal })
    return {
      name: report.engine,
      usable: report.usable,
      level: report.level,
      reasons: report.reasons,
      limits_enforced: report.limitsEnforced,
      network: report.usable ? report.network : null,
      capabilities: snakeCased(report.capabilities),
      probes: report.probes,
    }
  } finally {
    await engine.close()
  }
}

async function docker(signal: AbortSignal): Promise<EngineFindings> {
  const findings = await probed(dockerEngine(), signal)
  const others = findings.usable ? await reportOtherRuntimes(findings.probes, {}, signal) : []
  return {
    ...findings,
    reasons: [...findings.reasons, ...others.flatMap(unusableRuntime)],
    ...(others.length > 0 && {
      probes: {
        ...findings.probes,
        runtime_levels: others
          .filter(({ report }) => report.usable)
          .map(({ name, report }) => `${name}: ${report.level}`),
      },
    }),
  }
}

/** The engine works without it. */
function unusableRuntime({ name, report }: RuntimeReport): EngineFindings['reasons'] {
  if (report.usable) return []
  return report.reasons.map(({ code, message, remedy }) => ({
    severity: 'warning',
    code,
    message: `the runtime ${name}: ${message}`,
    remedy,
  }))
}

function snakeCased(given: object): Record<string, boolean> {
  const entries = Object.entries(given).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value === true,
  ])
  return Object.fromEntries(entries) as Record<string, boolean>
}
