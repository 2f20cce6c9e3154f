import type { EngineFindings } from './engine-findings.ts'
import { inOurLine } from './terminal-text.ts'

const LABEL_WIDTH = 12

/** The findings for a person. */
export function doctorText(auto: string | null, engines: readonly EngineFindings[], coloured: boolean): string {
  const paint = (code: number, text: string): string => (coloured ? `\u001B[${code}m${text}\u001B[39m` : text)
  const blocks = engines.map((engine) => {
    const mark = engine.usable ? paint(32, '✓') : paint(31, '✗')
    return [`${mark} ${engine.name.padEnd(10)}${engine.usable ? engine.level : 'not usable'}`, ...details(engine)].join(
      '\n',
    )
  })
  const verdict =
    auto === null
      ? 'No engine is usable here: scripts cannot be run until one of the above is mended.'
      : `--engine auto takes ${auto}.`
  return `${[...blocks, verdict].join('\n\n')}\n`
}

function details(engine: EngineFindings): string[] {
  return [
    ...(engine.usable ? facts(engine) : []),
    ...engine.reasons.flatMap(({ severity, code, message, remedy }) => [
      row(severity === 'error' ? 'why' : 'warning', `${message} (${code})`),
      row('remedy', remedy),
    ]),
  ]
}

function facts({ probes, limits_enforced: limits, network, capabilities }: EngineFindings): string[] {
  const can = Object.entries(capabilities).flatMap(([name, has]) => (has ? [name.replaceAll('_', ' ')] : []))
  return [
    row(
      'python',
      `${String(probes['python_version'])} (${String(probes['python'] ?? probes['image'] ?? `pyodide ${String(probes['pyodide'])}`)})`,
    ),
    ...listed(probes['python_passed_over']).map((text) => row('passed over', text)),
    row('limits', limits.length === 0 ? 'none is enforced' : limits.join(', ')),
    row('network', String(network)),
    row('has', can.join(', ')),
    ...runtimes(probes),
    ...PLACES.filter(([, name]) => probes[name] !== undefined).map(([label, name]) => row(label, String(probes[name]))),
  ]
}

/** What an engine is made of, as far as it told. */
const PLACES = [
  ['bubblewrap', 'bwrap'],
  ['state', 'state_dir'],
  ['daemon', 'daemon'],
  ['version', 'daemon_version'],
  ['kernel', 'kernel'],
  ['snapshot', 'snapshot'],
] as const

/** Those that were tried with their level. */
function runtimes({
  runtimes: names,
  runtime_default: byDefault,
  runtime_levels: levels,
}: EngineFindings['probes']): string[] {
  if (listed(names).length === 0) return []
  const known = new Map(listed(levels).map((text) => text.split(': ', 2) as [string, string]))
  const texts = listed(names).map((name) => {
    const more = [...(name === byDefault ? ['default'] : []), ...(known.has(name) ? [known.get(name)] : [])]
    return more.length === 0 ? name : `${name} (${more.join(', ')})`
  })
  return [row('runtimes', texts.join(', '))]
}

function listed(value: EngineFindings['probes'][string] | undefined): readonly string[] {
  return Array.isArray(value) ? (value as readonly string[]) : []
}

function row(label: string, text: string): string {
  return `  ${label.padEnd(LABEL_WIDTH)}${inOurLine(text)}`
}
