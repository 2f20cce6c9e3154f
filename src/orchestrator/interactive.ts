import { ExecutionMode, type ExecutionResult } from '../executor/index.ts'
import type { Lease } from '../pool/index.ts'
import type { CollectedItem, Failure } from '../script/index.ts'
import { attempt, type Attempted } from './attempt.ts'
import type { Answer, Leftovers } from './plan.ts'
import { RunOver } from './run-over.ts'
import type { Session } from './session.ts'
import { Stagnation } from './stagnation.ts'

/** Labels that are not data: what a step hands to the next, where steps do. */
const STATE_LABEL = 'state'

/**
 * INTERACTIVE mode (requirements OR-03, OR-04): a script for each step, all of them in one leased sandbox, until one
 * gives the result.
 * @throws RunOver
 */
export async function interactive(session: Session, leftovers: Leftovers): Promise<Answer> {
  const sandbox = new HeldLease(session)
  try {
    return await steps(session, leftovers, sandbox)
  } finally {
    await sandbox.release()
  }
}

async function steps(session: Session, leftovers: Leftovers, sandbox: HeldLease): Promise<Answer> {
  const { job, journal } = session
  const stagnation = new Stagnation()
  const course: Course = { collected: [], state: job.state?.initial ?? null, forceFinish: false }
  for (let number = 1; number <= job.maxSteps; number += 1) {
    journal.write({ type: 'step_started', step: number, force_finish: course.forceFinish })
    try {
      const made = await step(session, stagnation, sandbox, course, number)
      journal.write({ type: 'step_ended', step: number, ok: true, error: null })
      if (made.kind === 'answered') return { data: made.data }
      leftovers.partial = course.collected.length > 0 ? course.collected : null
    } catch (error) {
      if (error instanceof RunOver) journal.write({ type: 'step_ended', step: number, ok: false, error: error.message })
      throw error
    }
  }
  throw new RunOver('steps-spent', `${job.maxSteps} steps brought no result: none of them called emit_result`)
}

/** Where a run stands between two steps. */
interface Course {
  readonly collected: CollectedItem[]
  state: unknown
  forceFinish: boolean
}

async function step(
  session: Session,
  stagnation: Stagnation,
  sandbox: HeldLease,
  course: Course,
  number: number,
): Promise<Exclude<Attempted, { kind: 'failed' }>> {
  const { job } = session
  const keepsState = job.state !== undefined
  let failure: Failure | undefined
  for (let count = 1; count <= job.maxRetries + 1; count += 1) {
    const { collected, state, forceFinish } = course
    const prompt = job.generator.stepPrompt(job.task, {
      step: number,
      maxSteps: job.maxSteps,
      collected,
      failure,
      forceFinish,
      state,
    })
    const made = await attempt(session, stagnation, {
      place: { step: number, attempt: count },
      prompt,
      script: {
        mode: forceFinish ? ExecutionMode.PLAN : ExecutionMode.INTERACTIVE,
        // A step that is to finish the run has nothing to fetch.
        tools: forceFinish ? undefined : job.tools,
        inputs: { ...job.inputs, collected, ...(keepsState ? { state } : {}) },
      },
      lease: () => sandbox.lease(),
      missing: (result) => missing(result, keepsState),
    })
    if (made.kind === 'answered') return made
    if (made.kind === 'stepped') {
      take(course, made.emitted, number, keepsState)
      course.forceFinish = repeats(stagnation, made.emitted, session, number, count)
      return made
    }
    failure = made.failure
    // It goes in circles, and there is something to answer with.
    if (made.repetition !== null && collected.length > 0) course.forceFinish = true
  }
  throw new RunOver(course.forceFinish ? 'stagnated' : 'retries-spent', failure?.error ?? 'no attempt was made')
}

function repeats(
  stagnation: Stagnation,
  emitted: ExecutionResult['intermediates'],
  session: Session,
  step: number,
  count: number,
): boolean {
  const repetition = stagnation.result(emitted)
  if (repetition === null) return false
  session.journal.write({ type: 'stagnation_found', step, attempt: count, repetition })
  return true
}

function take(course: Course, emitted: ExecutionResult['intermediates'], step: number, keepsState: boolean): void {
  for (const { label, data } of emitted) {
    if (keepsState && label === STATE_LABEL) course.state = data
    else course.collected.push({ step, label, data })
  }
}

function missing({ intermediates }: ExecutionResult, keepsState: boolean): string | undefined {
  if (intermediates.some(({ label }) => !keepsState || label !== STATE_LABEL)) return undefined
  return 'the step emitted nothing: hand what it found to emit_intermediate(label, data), or the answer to emit_result(data); printing is not enough'
}

/** The one sandbox of a run; another takes its place only when it is lost. */
class HeldLease {
  readonly #session: Session
  #held: Lease | undefined
  #lost = false

  constructor(session: Session) {
    this.#session = session
  }

  async lease(): Promise<{ lease: Lease; giveBack: () => void }> {
    if (this.#lost) await this.release()
    if (this.#held === undefined) {
      this.#held = await this.#session.checkout()
      this.#lost = false
      void this.#held.sandbox.closed.then(() => {
        this.#lost = true
      })
    }
    return { lease: this.#held, giveBack: () => {} }
  }

  /** Gives it back. */
  async release(): Promise<void> {
    const held = this.#held
    this.#held = undefined
    await held?.release()
  }
}
