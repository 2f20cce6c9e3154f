import { type OutcomeRow, OUTCOMES, TASK_OUTCOMES, WARNING_CODES } from '../../src/outcomes/index.ts'
import { code, markdownTable } from './table.ts'

/** The table of outcomes of `run`. */
export function outcomes(): string {
  const all: readonly OutcomeRow[] = Object.values(OUTCOMES)
  const rows = all.map(({ status, meaning, errorKind, exitCode, causes, lateWarning }) => [
    code(status),
    meaning,
    errorKind === null ? 'null' : code(errorKind),
    String(exitCode),
    causes.map(code).join(', '),
    lateWarning === null ? '' : code(lateWarning),
  ])
  return markdownTable(['status', 'when', 'error_kind', 'exit code', 'ending.cause', 'late'], rows)
}

/** The table of exit codes of `solve`. */
export function taskOutcomes(): string {
  const rows = Object.entries(TASK_OUTCOMES).map(([status, { meaning, exitCode }]) => [
    code(status),
    meaning,
    String(exitCode),
  ])
  return markdownTable(['status', 'when', 'exit code'], rows)
}

/** The table of codes of warnings. */
export function warningCodes(): string {
  return markdownTable(
    ['code', 'says'],
    Object.entries(WARNING_CODES).map(([name, says]) => [code(name), says]),
  )
}
