import { ExecutionMode, type ExecutionResult, type SessionVariable } from '../executor/index.ts'
import type { CollectedItem, Failure } from '../script/index.ts'
import type { AttemptOutcome, Attempts } from './attempt.ts'
import { type NotedItem, SESSION_LABEL } from './cell-notes.ts'
import { EndTask } from './end-task.ts'
import type { Loan, ScriptHost } from './job.ts'
import type { Answer } from './plan.ts'
import type { Borrowed, ScriptRuns } from './script-runs.ts'

/** The label of the value that a step passes to the next one; items with this label are not collected. */
const STATE_LABEL = 'state'
/** The types of variables that hold no data for an answer. */
const TYPES_WITHOUT_DATA: readonly string[] = ['module', 'function', 'type']

/**
 * INTERACTIVE mode: one script for each step, all in one leased sandbox, until a script returns the result.
 * @throws EndTask
 */
export async function solveInSteps(attempts: Attempts): Promise<Answer> {
  const sandbox = new HeldLease(attempts.scripts)
  try {
    return await new Steps(attempts, sandbox).run()
  } finally {
    await sandbox.release()
  }
}

/** The outcome of a step: the answer, or the error of the step; null when it succeeded without an answer. */
type StepOutcome = Answer | { readonly error: string | null }

/** Runs the steps of one task, and passes the collected data and the state from each step to the next. */
class Steps {
  readonly #attempts: Attempts
  readonly #sandbox: HeldLease
  readonly #keepsState: boolean
  #collected: CollectedItem[] = []
  /** The collected items that are no data of a script. */
  readonly #notes = new Set<CollectedItem>()
  #state: unknown
  /** Steps and attempts in a row that repeated earlier ones. */
  #repetitions = 0
  /** True if the next step must output the answer from the data of earlier steps. */
  #forceFinish = false

  constructor(attempts: Attempts, sandbox: HeldLease) {
    this.#attempts = attempts
    this.#sandbox = sandbox
    const { state } = attempts.task.job
    this.#keepsState = state !== undefined
    this.#state = state?.initial ?? null
  }

  async run(): Promise<Answer> {
    const { job, journal, spending } = this.#attempts.task
    // A step that must finish is always the last, and does not count against `maxSteps`.
    for (let number = 1; number <= job.maxSteps || this.#forceFinish; number += 1) {
      // The tool calls are used up, so the answer must come from the data of earlier steps.
      if (spending.toolCallsLeft === 0 && (await this.#hasData())) this.#forceFinish = true
      journal.write({ type: 'step_started', step: number, force_finish: this.#forceFinish })
      const outcome = await this.#runAndRecord(number)
      if ('data' in outcome) return outcome
    }
    throw new EndTask('steps-spent', `${job.maxSteps} steps returned no result: none of them called emit_result`)
  }

  async #runAndRecord(step: number): Promise<StepOutcome> {
    const end = (error: string | null): void =>
      this.#attempts.task.journal.write({ type: 'step_ended', step, ok: error === null, error })
    try {
      const outcome = await this.#runStep(step)
      end('data' in outcome ? null : outcome.error)
      return outcome
    } catch (error) {
      if (error instanceof EndTask) end(error.message)
      throw error
    }
  }

  async #runStep(step: number): Promise<StepOutcome> {
    const { job } = this.#attempts.task
    const isLast = this.#forceFinish
    let failure: Failure | undefined
    for (let attempt = 1; attempt <= job.maxRetries + 1; attempt += 1) {
      const outcome = await this.#makeAttempt(step, attempt, failure)
      if (outcome.kind === 'answered') return outcome
      if (outcome.kind === 'stepped') {
        this.#keep(outcome.emitted, step, false)
        this.#note(outcome.notes, step)
        this.#findStagnation(outcome, step, attempt)
        return { error: null }
      }
      failure = outcome.failure
      this.#keep(outcome.emitted, step, true)
      if (outcome.repetition === null) continue
      this.#repetitions += 1
      const isEnough = this.#repetitions >= job.maxRepetitions || attempt > job.maxRetries
      // The attempts repeat each other, but the data of earlier steps may be enough for an answer.
      if (isEnough && !isLast && (await this.#hasData())) {
        this.#forceFinish = true
        return { error: failure.error }
      }
    }
    throw new EndTask(isLast ? 'stagnated' : 'retries-spent', failure?.error ?? 'no attempt was made')
  }

  async #makeAttempt(step: number, attempt: number, failure: Failure | undefined): Promise<AttemptOutcome> {
    const { job, redactor } = this.#attempts.task
    const { task, maxSteps, maxRepetitions, generator, tools, inputs } = job
    const variables = await this.#listVariables()
    this.#noteLoss(step, failure)
    const [collected, state, forceFinish] = [this.#collected, this.#state, this.#forceFinish]
    const repetitionsLeft = this.#repetitions === 0 ? undefined : maxRepetitions - this.#repetitions
    return this.#attempts.make({
      place: { step, attempt },
      prompt: generator.stepPrompt(task, {
        step,
        maxSteps,
        collected,
        failure,
        forceFinish,
        state: redactor.value(state),
        variables: redactor.value(variables ?? []) as typeof variables,
        repetitionsLeft,
      }),
      surroundings: {
        mode: forceFinish ? ExecutionMode.PLAN : ExecutionMode.INTERACTIVE,
        // A step that must finish has no tools.
        ...(forceFinish ? { tools: undefined, withheld: tools } : { tools }),
        inputs: { ...inputs, collected, ...(this.#keepsState ? { state } : {}) },
      },
      releaseSandbox: () => this.#sandbox.release(),
      lease: (host) => this.#sandbox.lease(host),
      findMissing: (result) => this.#findMissing(result),
    })
  }

  /** The variables that earlier steps made; undefined without a session. */
  async #listVariables(): Promise<readonly SessionVariable[] | undefined> {
    const { host, inputs } = this.#attempts.task.job
    const given = { ...inputs, collected: null }
    return (await host.variables?.())?.filter(({ name }) => !Object.hasOwn(given, name))
  }

  /** True if earlier steps emitted data or, in a session, left it in variables. */
  async #hasData(): Promise<boolean> {
    if (this.#collected.some((item) => !this.#notes.has(item))) return true
    const variables = (await this.#listVariables()) ?? []
    return variables.some(({ type }) => !TYPES_WITHOUT_DATA.includes(type))
  }

  /** Keeps, for the model, that the session was lost, unless the feedback on the script that lost it says so. */
  #noteLoss(step: number, failure: Failure | undefined): void {
    const { task, scripts } = this.#attempts
    const loss = task.job.host.takeLoss?.()
    if (loss === undefined || (failure !== undefined && scripts.cell?.state === 'lost')) return
    this.#note([{ label: SESSION_LABEL, data: task.redactor.text(loss) }], step)
  }

  /** Keeps items that are no data of a script. */
  #note(items: readonly NotedItem[], step: number): void {
    for (const { label, data } of items) {
      const note = { step, label, data }
      this.#notes.add(note)
      this.#collected.push(note)
    }
  }

  /** Keeps the items that a script emitted. They replace items of the same label that a failed script of this step emitted. */
  #keep(emitted: ExecutionResult['intermediates'], step: number, hasFailed: boolean): void {
    const labels = new Set(emitted.map(({ label }) => label))
    this.#collected = this.#collected.filter((item) => item.step !== step || !labels.has(item.label))
    for (const { label, data } of emitted) {
      if (!this.#keepsState || label !== STATE_LABEL) this.#collected.push({ step, label, data })
      else if (!hasFailed) this.#state = data
    }
    this.#attempts.partial.keepCollected(this.#collected)
  }

  #findStagnation(
    { script, emitted }: Extract<AttemptOutcome, { kind: 'stepped' }>,
    step: number,
    attempt: number,
  ): void {
    const repetition = this.#attempts.stagnation.addStep(script, emitted)
    if (repetition === null) {
      this.#repetitions = 0
      return
    }
    const { job, journal } = this.#attempts.task
    journal.write({ type: 'stagnation_found', step, attempt, repetition })
    this.#repetitions += 1
    this.#forceFinish = this.#repetitions >= job.maxRepetitions
  }

  #findMissing({ intermediates }: ExecutionResult): string | undefined {
    if (this.#attempts.task.job.host.variables !== undefined) return undefined
    if (intermediates.some(({ label }) => !this.#keepsState || label !== STATE_LABEL)) return undefined
    return 'the step emitted nothing: pass its data to emit_intermediate(label, data), or the answer to emit_result(data); printing is not enough'
  }
}

/**
 * The only sandbox of a task. It is replaced if it is lost, or if a script names other packages. A workspace keeps its files itself,
 * and lends its sandbox for each script.
 */
class HeldLease {
  readonly #scripts: ScriptRuns
  #held: Loan | undefined
  #host: ScriptHost | undefined
  #lost = false

  constructor(scripts: ScriptRuns) {
    this.#scripts = scripts
  }

  async lease(host: ScriptHost): Promise<Borrowed> {
    if (this.#lost || this.#host !== host) await this.release()
    if (this.#held === undefined) {
      this.#host = host
      this.#held = await this.#scripts.checkout(host)
      this.#lost = false
      void this.#held.sandbox.closed.then(() => {
        this.#lost = true
      })
    }
    // A loan with secrets blocks a workspace whose activities are not isolated, so it ends before the model is asked.
    return { lease: this.#held, giveBack: () => (host.keepsFiles === true ? this.release() : undefined) }
  }

  /** Returns the sandbox to the pool. */
  async release(): Promise<void> {
    const held = this.#held
    this.#held = undefined
    await held?.release()
  }
}
