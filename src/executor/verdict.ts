import type { Ending } from '../sandbox/index.ts'
import { endingOf } from './ending.ts'
import type { Evidence } from './evidence.ts'
import { type Fate, fateOf } from './fate.ts'
import { type Decision, LATE_ERROR_CODES, outputLimitMessage } from './gathered.ts'
import { type ErrorKind, ExecutionMode, type ExecutionStatus } from './result.ts'

/** The outcome of a run. */
export interface Verdict {
  readonly status: ExecutionStatus
  readonly errorKind: ErrorKind | null
  readonly error: string | null
  readonly traceback: string | null
  readonly ending: Ending
  /** What came after the outcome was decided. */
  readonly late: { readonly code: string; readonly message: string } | undefined
}

type Outcome = Omit<Verdict, 'ending' | 'late'>

const NO_RESULT = 'script finished without calling emit_result()'
/** Kinds of error frames that are not simply a failure of the script. */
const ERROR_KINDS: ReadonlyMap<string, { readonly status: ExecutionStatus; readonly errorKind: ErrorKind }> = new Map<
  string,
  { status: ExecutionStatus; errorKind: ErrorKind }
>([
  ['timeout', { status: 'timed-out', errorKind: 'timeout' }],
  ['output_limit', { status: 'output-limit', errorKind: 'output_limit' }],
  ['memory', { status: 'memory-limit', errorKind: 'oom' }],
  ['crash', { status: 'crashed', errorKind: 'crash' }],
  ['cancelled', { status: 'cancelled', errorKind: 'cancelled' }],
  ['request', { status: 'failed', errorKind: 'invalid_request' }],
])

/** Of error and result the first decides; without either the ending does (EX-04, EX-06). */
export function judge(evidence: Evidence): Verdict {
  const ending = endingOf(evidence)
  const fate = fateOf(evidence, ending)
  const { decision } = evidence
  switch (decision?.kind) {
    case 'result':
      return { ...ended('completed'), ending, late: lateAfterResult(fate, ending, evidence) }
    case 'error':
      return { ...failed(decision, evidence.maxOutputBytes), ending, late: lateAfterError(fate, evidence) }
    case 'callback':
      return { ...failure('failed', 'internal', decision.message), ending, late: lateAfterError(fate, evidence) }
    case undefined:
      return { ...undecided(fate, evidence.mode), ending, late: undefined }
  }
}

function undecided(fate: Fate | undefined, mode: ExecutionMode): Outcome {
  if (fate !== undefined) return failure(fate.status, fate.errorKind, fate.message)
  return mode === ExecutionMode.INTERACTIVE ? ended('step-done') : failure('failed', 'error', NO_RESULT)
}

function failed(error: Extract<Decision, { kind: 'error' }>, maxOutputBytes: number): Outcome {
  const { status, errorKind } = ERROR_KINDS.get(error.errorKind) ?? { status: 'failed', errorKind: 'error' }
  const unnamed = status === 'output-limit' && !error.message.includes(String(maxOutputBytes))
  const message = unnamed ? `${outputLimitMessage(maxOutputBytes)}: ${error.message}` : error.message
  return { ...failure(status, errorKind, message), traceback: error.traceback }
}

/** An exit code that a late error explains, or a limit that it already told, is not told twice. */
function lateAfterResult(fate: Fate | undefined, ending: Ending, { warnings }: Evidence): Fate | undefined {
  const codes = warnings.map(({ code }) => code)
  if (fate === undefined || codes.includes(fate.code)) return undefined
  const explained = ending.cause === 'exit' && codes.some((code) => LATE_ERROR_CODES.has(code))
  return explained ? undefined : fate
}

/** After a failure the way the script ended is no news; how the host lost the sandbox is. */
function lateAfterError(fate: Fate | undefined, { parting }: Evidence): Fate | undefined {
  return parting.kind === 'done' || parting.kind === 'cancelled' ? undefined : fate
}

function ended(status: 'completed' | 'step-done'): Outcome {
  return { status, errorKind: null, error: null, traceback: null }
}

function failure(status: ExecutionStatus, errorKind: ErrorKind, error: string): Outcome {
  return { status, errorKind, error, traceback: null }
}
