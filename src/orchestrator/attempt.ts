import { rejectionText } from '../checkers.ts'
import { messageOf } from '../errors/index.ts'
import type { ExecutionResult } from '../executor/index.ts'
import type { AttemptStatus, Place, Repetition } from '../journal/index.ts'
import type { Lease } from '../pool/index.ts'
import { type Failure, scriptIn } from '../script/index.ts'
import { typed } from '../typed-result.ts'
import type { Job } from './job.ts'
import type { Leftovers } from './leftovers.ts'
import { RunOver } from './run-over.ts'
import { rounded, type ScriptGround, type Session } from './session.ts'
import type { Stagnation } from './stagnation.ts'

/** What came of one attempt. */
export type Attempted =
  | { readonly kind: 'answered'; readonly data: unknown }
  | { readonly kind: 'stepped'; readonly script: string; readonly emitted: ExecutionResult['intermediates'] }
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
  readonly stagnation: Stagnation
  readonly leftovers: Leftovers
  /** Lends the sandbox; asked only for a script that may run. */
  lease(): Promise<{ readonly lease: Lease; readonly giveBack: () => void }>
  /** Why what a step emitted is not enough, or undefined. */
  missing(result: ExecutionResult): string | undefined
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
export async function attempt(session: Session, plan: AttemptPlan): Promise<Attempted> {
  await session.assertGoingOn(plan.script.tools !== undefined)
  const started = performance.now()
  const end = (status: AttemptStatus, error: string | null, repetition: Repetition | null): void => {
    const durationMs = rounded(performance.now() - started)
    session.journal.write({ type: 'attempt_ended', ...plan.place, status, error, repetition, duration_ms: durationMs })
  }
  try {
    const { status, attempted } = await made(session, plan)
    if (attempted.kind === 'failed') end(status, attempted.failure.error, attempted.repetition)
    else end(status, null, null)
    return attempted
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

async function made(session: Session, plan: AttemptPlan): Promise<Round> {
  const { place, prompt, script: ground } = plan
  const answer = await session.generate(place, prompt)
  const found = scriptIn(answer.text)
  const script = 'script' in found ? found.script : null
  session.generated(place, answer, script)
  if (script === null) {
    const error = PROBLEMS['problem' in found ? found.problem : 'no-code']
    return failedRound('no-script', { script, error }, session, plan)
  }
  const violations = await session.check(place, script, ground)
  const foreign = violations.find(({ code }) => code === 'preamble_error')
  // No script can mend what stands around it.
  if (foreign !== undefined) throw new RunOver('infrastructure', foreign.message)
  if (violations.length > 0) {
    return failedRound('rejected', { script, error: rejectionText(violations), violations }, session, plan)
  }
  // Before anything has an effect: no script runs whose record cannot be kept.
  await session.assertKept()
  const { lease, giveBack } = await plan.lease()
  try {
    return await judged(await session.run(place, script, lease, ground), session, plan, script)
  } finally {
    giveBack()
  }
}

async function judged(ran: ExecutionResult, session: Session, plan: AttemptPlan, script: string): Promise<Round> {
  session.took(ran.toolCalls)
  plan.leftovers.keepEmitted(ran.intermediates)
  if (ran.hasResult) plan.leftovers.keepResult(ran.finalData)
  if (ran.status === 'cancelled') session.signal.throwIfAborted()
  const result = await session.unlessOver(matched(ran, session.job.output))
  if (result.success) return { status: 'completed', attempted: { kind: 'answered', data: result.finalData } }
  const missing = result.status === 'step-done' ? plan.missing(result) : undefined
  if (result.status === 'step-done' && missing === undefined) {
    return { status: 'step-done', attempted: { kind: 'stepped', script, emitted: result.intermediates } }
  }
  const { traceback, stdout, stderr, toolCalls } = result
  const failedCalls = toolCalls.flatMap(({ name, error }) => (error === null ? [] : [{ name, ...error }]))
  const error = missing ?? result.error ?? result.status
  const status = missing === undefined ? result.status : 'no-data'
  return failedRound(status, { script, error, traceback, stdout, stderr, failedCalls }, session, plan)
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
  { writes }: Session,
  { stagnation }: AttemptPlan,
): Round {
  const repetition = stagnation.failed(told.script, told.error)
  const failure: Failure = {
    traceback: null,
    violations: [],
    stdout: '',
    stderr: '',
    failedCalls: [],
    writes: [...writes],
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
