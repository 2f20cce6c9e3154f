import type { ExecutionResult } from '../../src/index.ts'

/** A row of what the script of this example gives. */
export interface CustomerRow {
  readonly customer: string
  readonly late: number
  readonly worst: number
  readonly refunded: number
}

/** Rows with a title, in columns; `none` where there are no rows. */
export function table(title: string, rows: readonly object[]): string {
  const [first] = rows
  if (first === undefined) return `${title}\n  none\n`
  const heads = Object.keys(first)
  const cells = [heads, ...rows.map((row) => Object.values(row).map(String))]
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const lines = cells.map((row) =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  )
  return `${title}\n${lines.join('\n')}\n`
}

/** The closing table. */
export function summary({ status, toolCalls, durationMs, sandbox }: ExecutionResult): string {
  const names = [...new Set(toolCalls.map(({ name }) => name))]
  const calls = names.map((name) => `${name} ${toolCalls.filter((call) => call.name === name).length}`)
  return [
    'Run',
    `  status      ${status}`,
    `  tool calls  ${calls.join(', ')}`,
    `  refused     ${toolCalls.filter(({ ok }) => !ok).length}`,
    `  time        ${durationMs.toFixed(1)} ms`,
    `  sandbox     ${sandbox.engine}, level ${sandbox.level}, Python ${sandbox.python}`,
    '',
  ].join('\n')
}
