import {
  type ErrorKind,
  type ExecutionStatus,
  LATE_ERROR_CODES,
  OUTCOMES,
  outcomeOfWireKind,
  type RunOutcomeName,
  statusFields,
  type WarningCode,
} from '../outcomes/index.ts'
import type { Ending } from '../sandbox/index.ts'
import { type EndingFacts, endingOf } from './ending.ts'
import { type Outcome, type OutcomeFacts, outcomeOf } from './outcome.ts'
import { ExecutionMode, type RunWarning } from './result.ts'
import { type Decision, outputLimitMessage } from './run-transcript.ts'

/** The facts of a finished run. Texts are redacted. */
export interface Evidence extends EndingFacts, OutcomeFacts {
  readonly decision: Decision | undefined
  readonly mode: ExecutionMode
  readonly warnings: readonly RunWarning[]
}

/** The judged end of a run. */
export interface Verdict {
  readonly status: ExecutionStatus
  readonly errorKind: ErrorKind | null
  readonly error: string | null
  readonly setupFailed: boolean
  readonly traceback: string | null
  readonly ending: Ending
  /** An ending after the outcome was decided. */
  readonly late: LateEnding | undefined
}

interface LateEnding {
  readonly code: WarningCode
  readonly message: string
}

type Judgement = Omit<Verdict, 'ending' | 'late'>

const IN_SETUP = ', in the preamble or a Python tool: nothing of the script ran'
const NO_RESULT = 'script finished without calling emit_result()'

/** Judges a run: the first error or result decides; without either, the ending does. */
export function judge(evidence: Evidence): Verdict {
  const ending = endingOf(evidence)
  const outcome = outcomeOf(ending, evidence)
  const { decision } = evidence
  switch (decision?.kind) {
    case 'result':
      return { ...judgeAs('completed'), ending, late: lateAfterResult(outcome, ending, evidence) }
    case 'error':
      return {
        ...markSetupFailure(judgeError(decision, evidence.maxOutputBytes), evidence),
        ending,
        late: lateAfterError(outcome, evidence),
      }
    case 'callback':
      return { ...judgeAs('defect', decision.message), ending, late: lateAfterError(outcome, evidence) }
    case undefined:
      return { ...markSetupFailure(judgeUndecided(outcome, evidence.mode), evidence), ending, late: undefined }
  }
}

/** Marks a timeout or a crash during the set-up as not caused by the script. */
function markSetupFailure(judgement: Judgement, { end }: Evidence): Judgement {
  const { error, setupFailed } = judgement
  if (setupFailed || error === null || end.kind !== 'done' || end.frame.in_setup !== true) return judgement
  return { ...judgement, setupFailed: true, error: `${error}${IN_SETUP}` }
}

function judgeUndecided(outcome: Outcome | undefined, mode: ExecutionMode): Judgement {
  if (outcome !== undefined) return judgeAs(outcome.name, outcome.message)
  return mode === ExecutionMode.INTERACTIVE ? judgeAs('stepDone') : judgeAs('failed', NO_RESULT)
}

function judgeError(error: Extract<Decision, { kind: 'error' }>, maxOutputBytes: number): Judgement {
  const name = outcomeOfWireKind(error.errorKind)
  const isUnnamed = name === 'tooMuchOutput' && !error.message.includes(String(maxOutputBytes))
  const message = isUnnamed ? `${outputLimitMessage(maxOutputBytes)}: ${error.message}` : error.message
  return { ...judgeAs(name, message), traceback: error.traceback }
}

/** The late ending after a result, unless a late error explains the exit code or a warning already names the limit. */
function lateAfterResult(outcome: Outcome | undefined, ending: Ending, { warnings }: Evidence): LateEnding | undefined {
  const codes = warnings.map(({ code }) => code)
  const late = asWarning(outcome)
  if (late === undefined || codes.includes(late.code)) return undefined
  const isExplained = ending.cause === 'exit' && codes.some((code) => LATE_ERROR_CODES.has(code))
  return isExplained ? undefined : late
}

/** The late ending after a failure. The script's own ending adds no information; an ending by the host or the sandbox does. */
function lateAfterError(outcome: Outcome | undefined, { end }: Evidence): LateEnding | undefined {
  return end.kind === 'done' || end.kind === 'cancelled' ? undefined : asWarning(outcome)
}

function asWarning(outcome: Outcome | undefined): LateEnding | undefined {
  return outcome && { code: OUTCOMES[outcome.name].lateWarning, message: outcome.message }
}

function judgeAs(name: RunOutcomeName, error: string | null = null): Judgement {
  return { ...statusFields(name), error, setupFailed: name === 'setupFailed', traceback: null }
}
