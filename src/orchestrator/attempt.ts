import { messageOf } from '../errors/index.ts'
import type { ExecutionResult } from '../executor/index.ts'
import type { AttemptStatus, Place, Repetition } from '../journal/index.ts'
import type { Lease } from '../pool/index.ts'
import { type Failure, scriptIn } from '../script/index.ts'
import { typed } from '../typed-result.ts'
import type { Job } from './job.ts'
import { RunOver } from './run-over.ts'
import type { ScriptGround, Session } from './session.ts'
import type { Stagnation } from './stagnation.ts'

/** What came of one attempt. */
export type Attempted =
  | { readonly kind: 'answered'; readonly data: unknown }
  | { readonly kind: 'stepped'; readonly emitted: ExecutionResult['intermediates'] }
  | {
      readonly kind: 'failed'
      readonly failure: Failure
      readonly repetition: Repetition | null
    }

/** How an attempt is made. */
export interface AttemptPlan {
  readonly place: Place
  readonly prompt: string
  readonly script: ScriptGround
  /** Lends the sandbox; asked only for a script that may run. */
  lease(): Promise<{ readonly lease: Lease; readonly giveBack: () => void }>
  /** Why what a step emitted is not enough, or undefined. */
  missing(result: ExecutionResult): string | undefined
  /** Told what there is beside an answer, also of a script that was ended. */
  keep?(partial: unknown): void
}

const PROBLEMS = {
  empty: 'the answer was empty: there was no script to run',
  'no-code': 'the answer held no Python code: it must hold one whole script in a ```python block',
  'too-long': 'the answer was longer than 1,048,576 characters and was not looked at: write a short script',
} as const

/**
 * One LLM round: prompt, answer, script, check, run (requirement OR-02). Whatever the model writes is a value.
 * @throws RunOver when the run cannot go on.
 */
export async function attempt(session: Session, stagnation: Stagnation, plan: AttemptPlan): Promise<Attempted> {
  await session.assertGoingOn()
  const started = performance.now()
  const end = (status: AttemptStatus, error: string | null, repetition: Repetition | null): void => {
    const duration = Math.round((performance.now() - started) * 1000) / 1000
    session.journal.write({
      type: 'attempt_ended',
      ...plan.place,
      status,
      error,
      repetition,
      duration_ms: duration,
    })
  }
  try {
    const round = await made(session, stagnation, plan)
    if (round.attempted.kind === 'failed') end(round.status, round.attempted.failure.error, round.attempted.repetition)
    else end(round.status, null, null)
    return round.attempted
  } catch (error) {
    if (error instanceof RunOver) end(statusAtEnd(error), error.message, null)
    throw error
  }
}

function statusAtEnd({ status }: RunOver): AttemptStatus {
  return status === 'model-failed' || status === 'infrastructure' ? status : 'cancelled'
}

interface Round {
  readonly status: AttemptStatus
  readonly attempted: Attempted
}

async function made(session: Session, stagnation: Stagnation, plan: AttemptPlan): Promise<Round> {
  const { place, prompt, script: ground } = plan
  const answer = await session.generate(place, prompt)
  const found = scriptIn(answer.text)
  const script = 'script' in found ? found.script : null
  session.generated(place, answer, script)
  if (script === null) {
    const error = PROBLEMS['problem' in found ? found.problem : 'no-code']
    return failedRound('no-script', { script, error }, stagnation.error(error))
  }
  const repeated = stagnation.script(script)
  const violations = await session.check(place, script, ground)
  if (violations.length > 0) {
    const error = rejectionText(violations)
    return failedRound('rejected', { script, error, violations }, repeated ?? stagnation.error(error))
  }
  const { lease, giveBack } = await plan.lease()
  try {
    return await judged(await session.run(place, script, lease, ground), {
      session,
      stagnation,
      plan,
      script,
      repeated,
    })
  } finally {
    giveBack()
  }
}

async function judged(
  ran: ExecutionResult,
  given: {
    readonly session: Session
    readonly stagnation: Stagnation
    readonly plan: AttemptPlan
    readonly script: string
    readonly repeated: Repetition | null
  },
): Promise<Round> {
  const { session, stagnation, plan, script, repeated } = given
  const partial = ran.hasResult ? ran.finalData : ran.intermediates.length > 0 ? ran.intermediates : null
  if (partial !== null) plan.keep?.(partial)
  if (ran.status === 'cancelled') session.signal.throwIfAborted()
  const result = await matched(ran, session.job.output)
  if (result.success) return { status: 'completed', attempted: { kind: 'answered', data: result.finalData } }
  const missing = result.status === 'step-done' ? plan.missing(result) : undefined
  if (result.status === 'step-done' && missing === undefined) {
    return { status: 'step-done', attempted: { kind: 'stepped', emitted: result.intermediates } }
  }
  const error = missing ?? result.error ?? result.status
  const failed = {
    script,
    error,
    traceback: result.traceback,
    stdout: result.stdout,
    stderr: result.stderr,
    failedCalls: result.toolCalls.flatMap(({ name, error: why }) => (why === null ? [] : [{ name, ...why }])),
  }
  const status = missing === undefined ? result.status : 'no-data'
  return failedRound(status, failed, repeated ?? stagnation.error(error))
}

/** Data of a wrong shape may make a schema's own code throw: that is a mismatch, too. */
async function matched(ran: ExecutionResult, output: Job['output']): Promise<ExecutionResult> {
  try {
    return await typed(ran, output)
  } catch (error) {
    const message = `the result does not match \`output\`: ${messageOf(error)}`
    return { ...ran, status: 'failed', success: false, errorKind: 'error', finalData: null, error: message }
  }
}

function failedRound(
  status: AttemptStatus,
  told: Pick<Failure, 'script' | 'error'> & Partial<Failure>,
  repetition: Repetition | null,
): Round {
  const failure: Failure = {
    traceback: null,
    violations: [],
    stdout: '',
    stderr: '',
    failedCalls: [],
    repetition: repetition === null ? null : REPETITIONS[repetition],
    ...told,
  }
  return { status, attempted: { kind: 'failed', failure, repetition } }
}

const REPETITIONS: Readonly<Record<Repetition, string>> = {
  'same-result': 'This is the same result as that of the step before: it brings nothing new.',
  'same-script': 'This is the same script as before, and it fails in the same way. Write a different one.',
  'same-error': 'This is the same error as before: the last change did not mend it. Try another way.',
  cycle: 'You go back and forth between two mistakes: mending one brings the other back. Mend both at once.',
}

function rejectionText(violations: ExecutionResult['violations']): string {
  const [first] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  return `the script was rejected before it ran: line ${first?.line}: ${first?.message}${more}`
}
