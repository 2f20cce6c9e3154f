import { messageOf, SandglassError } from '../errors/index.ts'
import { type ExecutionMode, type ExecutionResult, Redactor, ScriptExecutor } from '../executor/index.ts'
import { Journal, newRunId, type Place } from '../journal/index.ts'
import { callModel, digestOf, type ModelAnswer } from '../llm/index.ts'
import type { Lease } from '../pool/index.ts'
import { MAX_TIMER_MS } from '../support/index.ts'
import { bridgedTools, type ToolSet } from '../tools/index.ts'
import { Spending, spentText } from './budget.ts'
import type { Job } from './job.ts'
import { RunOver } from './run-over.ts'
import { ScriptNotes } from './script-notes.ts'
import { tell } from './tell.ts'

/** How much of an answer without a script is kept. */
const ANSWER_KEPT = 2000

/** How long the journal may take to keep what it was given; less where nobody waits any more. */
const KEEP_MS = 10_000
const KEEP_AT_END_MS = 1000

/** What one job stands on while it is worked off: its journal, its budgets, its signal. */
export class Session {
  readonly job: Job
  readonly journal: Journal
  readonly spending: Spending
  /** Calls of this task with the effect `write` that went through. */
  readonly writes: { readonly name: string; readonly args: unknown }[] = []
  /** Fires when the job is cancelled, or its time is over. */
  readonly signal: AbortSignal
  readonly #started: number = performance.now()
  readonly #ended: AbortController = new AbortController()
  readonly #timer: NodeJS.Timeout | undefined
  readonly #onAbort: () => void
  readonly #redactor: Redactor

  constructor(job: Job) {
    this.job = job
    this.spending = new Spending(job.budget)
    this.signal = this.#ended.signal
    this.#redactor = new Redactor({ ...job.hide, ...job.secrets })
    this.journal = new Journal(newRunId(), job.journal, this.#redactor, (event) => {
      // The end is told by whoever knows that it is the last word.
      if (event.type !== 'run_ended') tell(event, job.traceId)
      try {
        const heard: unknown = job.onEvent?.(event)
        if (heard instanceof Promise) heard.catch(() => undefined)
      } catch {
        // A listener that fails is no reason to end a run.
      }
    })
    this.#onAbort = () => this.#ended.abort(new RunOver('cancelled', 'the run was cancelled'))
    if (job.signal?.aborted === true) this.#onAbort()
    else job.signal?.addEventListener('abort', this.#onAbort, { once: true })
    const { wallMs } = job.budget
    // A timer cannot wait for longer; a run that does is over for other reasons.
    if (wallMs !== undefined && wallMs <= MAX_TIMER_MS) {
      const over = new RunOver('budget-spent', spentText('wall_ms', job.budget))
      this.#timer = setTimeout(() => this.#ended.abort(over), wallMs)
    }
  }

  /** Milliseconds since the job began. */
  get elapsedMs(): number {
    return rounded(performance.now() - this.#started)
  }

  /** @throws RunOver when the journal did not take all that was written, or takes too long. */
  async assertKept(): Promise<void> {
    const ms = this.signal.aborted ? KEEP_AT_END_MS : KEEP_MS
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error(`it did not answer within ${ms} ms`)), ms)
    try {
      await Promise.race([this.journal.settle(), late.promise])
    } catch (error) {
      throw new RunOver('infrastructure', `the journal cannot be written: ${messageOf(error)}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * @param usesTools whether what is to begin may call tools of the host.
   * @throws RunOver when nothing more may begin: cancelled, a budget spent, or a journal that cannot be written.
   */
  async assertGoingOn(usesTools: boolean): Promise<void> {
    await this.unlessOver(this.assertKept())
    const spent = this.spending.spent(usesTools)
    if (spent !== undefined) throw new RunOver('budget-spent', spentText(spent, this.job.budget))
  }

  /** Waits for something no longer than the run goes on. @throws RunOver, and what the work throws. */
  async unlessOver<R>(work: Promise<R>): Promise<R> {
    work.catch(() => undefined) // where the run is over first, nobody else listens
    this.signal.throwIfAborted()
    const over = Promise.withResolvers<never>()
    const onAbort = (): void => over.reject(this.signal.reason)
    this.signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([work, over.promise])
    } finally {
      this.signal.removeEventListener('abort', onAbort)
    }
  }

  /** Asks the model. What is hidden does not reach it, whatever a tool or a script said. @throws RunOver */
  async generate(place: Place, written: string): Promise<ModelAnswer> {
    const { llmCall, llmTimeoutMs, keepPrompts } = this.job
    const prompt = this.#redactor.text(written)
    const digest = digestOf(prompt)
    this.journal.write({
      type: 'prompt_written',
      ...place,
      digest,
      chars: prompt.length,
      text: keepPrompts ? prompt : null,
    })
    let answer: ModelAnswer
    try {
      answer = await callModel(llmCall, prompt, { signal: this.signal, timeoutMs: llmTimeoutMs })
    } catch (error) {
      this.signal.throwIfAborted()
      throw new RunOver('model-failed', messageOf(error), { cause: error })
    }
    const { promptTokens, completionTokens, text } = answer
    this.spending.answered(
      { tokens: promptTokens, chars: prompt.length },
      { tokens: completionTokens, chars: text.length },
    )
    return answer
  }

  /** Writes down what the model answered. */
  generated(place: Place, answer: ModelAnswer, script: string | null): void {
    const { model, promptTokens, completionTokens, latencyMs, text } = answer
    this.journal.write({
      type: 'script_generated',
      ...place,
      model,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      latency_ms: latencyMs,
      answer_chars: text.length,
      script,
      script_digest: script === null ? null : digestOf(script),
      // What is cut may end in the middle of a secret.
      answer: script === null ? this.#redactor.head(text.slice(0, ANSWER_KEPT), ANSWER_KEPT) : null,
    })
  }

  /** Looks for mistakes. @throws RunOver when the machinery fails. */
  async check(
    place: Place,
    script: string,
    { mode, tools, inputs }: ScriptGround,
  ): Promise<ExecutionResult['violations']> {
    const { policy, allowModules, ground } = this.job
    if (policy === 'off') return []
    const started = performance.now()
    const { ok, violations } = await this.#machinery(() =>
      ground.check(script, {
        ...this.job.generator.assemble(script),
        policy,
        mode,
        tools,
        inputs,
        allowModules,
        signal: this.signal,
      }),
    )
    const ms = rounded(performance.now() - started)
    this.journal.write({ type: 'script_checked', ...place, policy, ok, violations, ms })
    return violations
  }

  /** Borrows a sandbox. @throws RunOver when there is none (requirement PO-04). */
  async checkout(): Promise<Lease> {
    return this.#machinery(() => this.job.ground.checkout(this.signal))
  }

  /** Runs a script and writes down what it does. @throws RunOver when the machinery fails. */
  async run(
    place: Place,
    script: string,
    lease: Lease,
    { mode, tools, inputs }: ScriptGround,
  ): Promise<ExecutionResult> {
    const { sandbox } = lease
    const { engine } = sandbox.info
    this.journal.write({ type: 'sandbox_assigned', ...place, sandbox_id: sandbox.id, engine })
    const notes = new ScriptNotes(this.journal, place, this.#redactor)
    const executor = new ScriptExecutor({
      limits: this.job.limits,
      mode,
      onEvent: (event) => notes.take(event),
    })
    const left = this.spending.toolCallsLeft
    const { maxCalls, ...limits } = this.job.toolLimits
    const most = Math.min(maxCalls ?? Number.POSITIVE_INFINITY, left)
    const result = await this.#machinery(async () =>
      executor.run({
        ...this.job.generator.assemble(script),
        sandbox,
        inputs,
        secrets: this.job.secrets,
        signal: this.signal,
        ...(tools === undefined
          ? {}
          : { tools: bridgedTools(tools, { ...limits, ...(Number.isFinite(most) ? { maxCalls: most } : {}) }) }),
      }),
    )
    this.spending.toolCalls += Math.min(notes.calls, left)
    notes.end(result)
    return result
  }

  /** A script made these calls. */
  took(calls: ExecutionResult['toolCalls']): void {
    for (const { name, effect, args, ok } of calls) if (ok && effect === 'write') this.writes.push({ name, args })
  }

  /** Gives up what the session holds. */
  dispose(): void {
    clearTimeout(this.#timer)
    this.job.signal?.removeEventListener('abort', this.#onAbort)
  }

  async #machinery<R>(act: () => Promise<R>): Promise<R> {
    try {
      return await act()
    } catch (error) {
      this.signal.throwIfAborted()
      const code = error instanceof SandglassError ? ` (${error.code})` : ''
      throw new RunOver('infrastructure', `${messageOf(error)}${code}`, { cause: error })
    }
  }
}

/** What a script of a run has around it. */
export interface ScriptGround {
  readonly mode: ExecutionMode
  readonly tools: ToolSet | undefined
  readonly inputs: Readonly<Record<string, unknown>>
}

/** Milliseconds as they are told. */
export function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
}
