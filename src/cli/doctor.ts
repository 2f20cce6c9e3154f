import type { EngineModule, ReportLine, SandboxReport } from '../sandbox/index.ts'
import type { Given } from './args.ts'
import { type Context, supportsAnsi } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { enginesToAsk } from './options.ts'
import { escapeForMessage } from './terminal-text.ts'

const LABEL_WIDTH = 12

/** `sandglass doctor`: probes the engines and reports what is in force. Resolves to the exit code. */
export async function doctor(given: Given, context: Context): Promise<number> {
  const probed: Probed[] = []
  const asked = enginesToAsk(given, context.engines)
  for (const { row, options } of asked) {
    probed.push(await probe(await row.load(), options, context.signal))
  }
  context.signal.throwIfAborted()
  const usable = probed.find(({ report }) => report.usable)?.report.engine ?? null
  // One engine does not show which one `auto` takes.
  const named = (given.last('--engine') ?? 'auto') === 'auto' ? null : (asked[0]?.name ?? null)
  const auto = named === null ? usable : null
  if (given.has('--json')) {
    await context.stdout.line({ v: 1, auto, engines: probed.map(({ report }) => toLine(report)) })
  } else {
    await context.stdout.write(
      formatReports(verdictOn(usable, named), probed, context.stdout.isTerminal && supportsAnsi(context)),
    )
  }
  return usable === null ? EXIT.missing : EXIT.ok
}

/** A report, with the lines that its engine alone has. */
interface Probed {
  readonly report: SandboxReport
  readonly lines: readonly ReportLine[]
}

async function probe(module: EngineModule, options: object, signal: AbortSignal): Promise<Probed> {
  const engine = module.makeEngine(options)
  try {
    const own = await engine.report({ signal })
    const report = (await module.extendReport?.(own, signal)) ?? own
    return { report, lines: report.usable ? module.reportLines(report.probes) : [] }
  } finally {
    await engine.close()
  }
}

/** One engine in the JSON of `doctor`. */
interface EngineLine {
  readonly name: string
  readonly usable: boolean
  readonly level: SandboxReport['level']
  readonly reasons: SandboxReport['reasons']
  readonly limits_enforced: SandboxReport['limitsEnforced']
  readonly network: SandboxReport['network'] | null
  readonly capabilities: Readonly<Record<string, boolean>>
  readonly probes: SandboxReport['probes']
}

function toLine(report: SandboxReport): EngineLine {
  return {
    name: report.engine,
    usable: report.usable,
    level: report.level,
    reasons: report.reasons,
    limits_enforced: report.limitsEnforced,
    network: report.usable ? report.network : null,
    capabilities: toSnakeCase(report.capabilities),
    probes: report.probes,
  }
}

function toSnakeCase(given: object): Record<string, boolean> {
  const entries = Object.entries(given).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value === true,
  ])
  return Object.fromEntries(entries) as Record<string, boolean>
}

function verdictOn(usable: string | null, named: string | null): string {
  if (named !== null) return usable === null ? `The engine ${named} is not usable here.` : `--engine ${named} works.`
  return usable === null
    ? 'No engine is usable here: scripts cannot run until one of the above is fixed.'
    : `--engine auto takes ${usable}.`
}

/** The reports for a person. */
function formatReports(verdict: string, probed: readonly Probed[], coloured: boolean): string {
  const paint = (code: number, text: string): string => (coloured ? `\u001B[${code}m${text}\u001B[39m` : text)
  const blocks = probed.map(({ report, lines }) => {
    const mark = report.usable ? paint(32, '✓') : paint(31, '✗')
    const title = `${mark} ${`${report.engine} `.padEnd(10)}${report.usable ? report.level : 'not usable'}`
    return [title, ...[...factsOf(report, lines), ...reasonsOf(report)].map(formatLine)].join('\n')
  })
  return `${[...blocks, verdict].join('\n\n')}\n`
}

function factsOf(report: SandboxReport, lines: readonly ReportLine[]): ReportLine[] {
  if (!report.usable) return []
  const can = Object.entries(toSnakeCase(report.capabilities)).flatMap(([name, has]) =>
    has ? [name.replaceAll('_', ' ')] : [],
  )
  const limits = report.limitsEnforced
  return [
    ...lines,
    ['limits', limits.length === 0 ? 'none is enforced' : limits.join(', ')],
    ['network', report.network],
    ['has', can.join(', ')],
  ]
}

function reasonsOf({ reasons }: SandboxReport): ReportLine[] {
  return reasons.flatMap(({ severity, code, message, remedy }): ReportLine[] => [
    [severity === 'error' ? 'why' : 'warning', `${message} (${code})`],
    ['remedy', remedy],
  ])
}

function formatLine([label, text]: ReportLine): string {
  return `  ${label.padEnd(LABEL_WIDTH)}${escapeForMessage(text)}`
}
