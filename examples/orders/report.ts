import type { AttemptRecord, RunRecord } from '../../src/index.ts'

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

/** The outcome of each script that the model wrote. */
export function course({ attempts }: RunRecord): string {
  return `Attempts\n${attempts.map((attempt) => `  ${attempt.number}  ${attempt.status}${formatReason(attempt)}\n`).join('')}`
}

function formatReason({ violations, error, toolCalls }: AttemptRecord): string {
  const [first] = violations
  if (first !== undefined) return `: line ${first.line}: ${first.message}\n     hint: ${first.hint}`
  const calls = `${toolCalls.length} tool calls`
  return error === null ? `: ${calls}` : ` after ${calls}: ${error}`
}

/** The closing table. */
export function summary({ status, attempts, totalToolCalls, durationMs, runId }: RunRecord): string {
  const sandbox = attempts.at(-1)?.sandbox
  return [
    'Run',
    `  id          ${runId}`,
    `  status      ${status}`,
    `  attempts    ${attempts.length}`,
    `  tool calls  ${totalToolCalls}`,
    `  time        ${durationMs.toFixed(1)} ms`,
    `  sandbox     ${sandbox === null || sandbox === undefined ? 'none' : `${sandbox.engine}, level ${sandbox.level}, Python ${sandbox.python}`}`,
    '',
  ].join('\n')
}
