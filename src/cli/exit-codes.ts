import type { ErrorKind } from '../executor/index.ts'
import type { RunStatus } from '../journal/index.ts'

/** Exit codes that do not come from the outcome of a script. */
export const EXIT = { ok: 0, usage: 2, missing: 8, defect: 70, cancelled: 130 } as const

/** The exit code of `run` for an outcome. */
export function exitCodeOf(errorKind: ErrorKind | null): number {
  switch (errorKind) {
    case null:
      return EXIT.ok
    case 'error':
    case 'crash':
      return 1
    case 'invalid_request':
      return EXIT.usage
    case 'validation':
      return 3
    case 'timeout':
      return 4
    case 'oom':
      return 5
    case 'output_limit':
      return 6
    case 'infrastructure':
      return 7
    case 'cancelled':
      return EXIT.cancelled
    case 'internal':
      return EXIT.defect
  }
}

/** The exit code of `solve` for what became of its run. */
export function exitCodeOfRun(status: RunStatus): number {
  switch (status) {
    case 'completed':
      return EXIT.ok
    case 'retries-spent':
    case 'steps-spent':
    case 'stagnated':
    case 'budget-spent':
      return 1
    case 'model-failed':
    case 'infrastructure':
    case 'unfinished':
      return exitCodeOf('infrastructure')
    case 'cancelled':
      return EXIT.cancelled
  }
}
