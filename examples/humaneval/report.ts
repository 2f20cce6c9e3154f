/** The part of a result line that the report uses. */
export interface Answer {
  readonly id?: string | null
  readonly success: boolean
  readonly status: string
  readonly error: string | null
  readonly duration_ms: number
  readonly sandbox: { readonly engine: string; readonly level: string; readonly python: string } | null
}

/** The closing table. */
export function report(answers: readonly Answer[], wallMs: number): string {
  const passed = answers.filter((answer) => answer.success)
  const times = answers.map((answer) => answer.duration_ms).toSorted((a, b) => a - b)
  const at = (share: number): string => `${(times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(1)} ms`
  const served = answers[0]?.sandbox
  const rows: [string, string][] = [
    ['passed', `${passed.length} of ${answers.length}`],
    ['run time p50', at(0.5)],
    ['run time p95', at(0.95)],
    ['runs per second', (answers.length / (wallMs / 1000)).toFixed(0)],
    ['wall time', `${(wallMs / 1000).toFixed(1)} s, start included`],
    [
      'sandbox',
      served === null || served === undefined
        ? 'none'
        : `${served.engine}, level ${served.level}, Python ${served.python}`,
    ],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const failures = answers
    .filter((answer) => !answer.success)
    .map((answer) => `  ${answer.id}: ${answer.status}: ${answer.error}\n`)
  return `\nHumanEval through sandglass batch\n${rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`).join('')}${failures.join('')}`
}
