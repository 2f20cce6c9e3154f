import { ExecutionMode, type ExecutionResult } from '../executor/index.ts'
import type { Lease } from '../pool/index.ts'
import type { CollectedItem, Failure } from '../script/index.ts'
import { attempt } from './attempt.ts'
import type { Leftovers } from './leftovers.ts'
import type { Answer } from './plan.ts'
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
  const { job, journal, spending } = session
  const course: Course = {
    stagnation: new Stagnation(),
    leftovers,
    sandbox,
    collected: [],
    state: job.state?.initial ?? null,
    forceFinish: false,
  }
  // A step that is to finish the run comes beside those that were asked for: it is the last in any case.
  for (let number = 1; number <= job.maxSteps || course.forceFinish; number += 1) {
    // What was collected may do for an answer where nothing more can be fetched.
    if (spending.toolCallsLeft === 0 && course.collected.length > 0) course.forceFinish = true
    journal.write({ type: 'step_started', step: number, force_finish: course.forceFinish })
    const made = await endOf(session, number, async () => step(session, course, number))
    if ('data' in made) return made
  }
  throw new RunOver('steps-spent', `${job.maxSteps} steps brought no result: none of them called emit_result`)
}

/** Where a run stands between two steps. */
interface Course {
  readonly stagnation: Stagnation
  readonly leftovers: Leftovers
  readonly sandbox: HeldLease
  readonly collected: CollectedItem[]
  state: unknown
  forceFinish: boolean
}

/** What came of a step: the answer, or whether it brought something. */
type Stepped = Answer | { readonly error: string | null }

/** Works a step off and writes down how it ended. */
async function endOf(session: Session, step: number, work: () => Promise<Stepped>): Promise<Stepped> {
  const end = (error: string | null): void =>
    session.journal.write({ type: 'step_ended', step, ok: error === null, error })
  try {
    const made = await work()
    end('data' in made ? null : made.error)
    return made
  } catch (error) {
    if (error instanceof RunOver) end(error.message)
    throw error
  }
}

async function step(session: Session, course: Course, number: number): Promise<Stepped> {
  const { job } = session
  const keepsState = job.state !== undefined
  const { collected, state, forceFinish, stagnation, leftovers, sandbox } = course
  let failure: Failure | undefined
  for (let count = 1; count <= job.maxRetries + 1; count += 1) {
    const { maxSteps } = job
    const made = await attempt(session, {
      place: { step: number, attempt: count },
      prompt: job.generator.stepPrompt(job.task, {
        step: number,
        maxSteps,
        collected,
        failure,
        forceFinish,
        state,
      }),
      script: {
        mode: forceFinish ? ExecutionMode.PLAN : ExecutionMode.INTERACTIVE,
        // A step that is to finish the run has nothing to fetch.
        tools: forceFinish ? undefined : job.tools,
        inputs: { ...job.inputs, collected, ...(keepsState ? { state } : {}) },
      },
      stagnation,
      leftovers,
      lease: () => sandbox.lease(),
      missing: (result) => missing(result, keepsState),
    })
    if (made.kind === 'answered') return made
    if (made.kind === 'stepped') {
      take(course, made.emitted, number, keepsState)
      const repetition = stagnation.stepped(made.script, made.emitted)
      if (repetition !== null) {
        session.journal.write({ type: 'stagnation_found', step: number, attempt: count, repetition })
        course.forceFinish = true
      }
      return { error: null }
    }
    failure = made.failure
    // It goes in circles, and there is something to answer with.
    if (made.repetition !== null && collected.length > 0 && !forceFinish) {
      course.forceFinish = true
      return { error: failure.error }
    }
  }
  throw new RunOver(forceFinish ? 'stagnated' : 'retries-spent', failure?.error ?? 'no attempt was made')
}

function take(course: Course, emitted: ExecutionResult['intermediates'], step: number, keepsState: boolean): void {
  for (const { label, data } of emitted) {
    if (keepsState && label === STATE_LABEL) course.state = data
    else course.collected.push({ step, label, data })
  }
  course.leftovers.keepCollected(course.collected)
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
