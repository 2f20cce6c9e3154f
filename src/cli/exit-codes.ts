import { type ErrorKind, OUTCOMES } from '../outcomes/index.ts'

/** Exit codes that do not come from the outcome of a script. */
export const EXIT: Readonly<Record<'ok' | 'usage' | 'missing' | 'defect' | 'cancelled', number>> = {
  ok: OUTCOMES.completed.exitCode,
  usage: OUTCOMES.invalidRequest.exitCode,
  missing: OUTCOMES.unavailable.exitCode,
  defect: OUTCOMES.defect.exitCode,
  cancelled: OUTCOMES.cancelled.exitCode,
}

/** The exit code of `run` for a result. */
export function exitCodeOf(errorKind: ErrorKind | null): number {
  const row = Object.values(OUTCOMES).find((outcome) => outcome.errorKind === errorKind)
  return row?.exitCode ?? EXIT.defect
}
