import { createHash } from 'node:crypto'
import { messageOf, SandglassError } from '../errors/index.ts'
import { type ExecutionMode, type ExecutionResult, Redactor, type RunEvent, ScriptExecutor } from '../executor/index.ts'
import { Journal, newRunId, type Place } from '../journal/index.ts'
import { callModel, type ModelAnswer } from '../llm/index.ts'
import type { Lease } from '../pool/index.ts'
import { bridgedTools, type ToolSet } from '../tools/index.ts'
import { Spending, spentText } from './budget.ts'
import { CallKeys } from './call-keys.ts'
import type { Job } from './job.ts'
import { RunOver } from './run-over.ts'
import { tell } from './tell.ts'

/** How much of an answer without a script is kept. */
const ANSWER_KEPT = 2000
/** How much of a tool's answer is kept. */
const RESULT_KEPT = 16 * 1024

const MAX_TIMER_MS = 2 ** 31 - 1

/** What one job stands on while it is worked off: its journal, its budgets, its signal. */
export class Session {
  readonly job: Job
  readonly journal: Journal
  readonly spending: Spending
  /** Fires when the job is cancelled, or its time is over. */
  readonly signal: AbortSignal
  readonly #started: number = performance.now()
  readonly #ended: AbortController = new AbortController()
  readonly #timer: NodeJS.Timeout | undefined
  readonly #onAbort: () => void

  constructor(job: Job) {
    this.job = job
    this.spending = new Spending(job.budget)
    this.signal = this.#ended.signal
    const redactor = new Redactor({ ...job.hide, ...job.secrets })
    this.journal = new Journal(newRunId(), job.journal, redactor, (event) => {
      tell(event, job.traceId)
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

  /** @throws RunOver when the journal did not take all that was written. */
  async assertKept(): Promise<void> {
    try {
      await this.journal.settle()
    } catch (error) {
      throw new RunOver('infrastructure', `the journal cannot be written: ${messageOf(error)}`, { cause: error })
    }
  }

  /** @throws RunOver when nothing more may begin: cancelled, a budget spent, or a journal that cannot be written. */
  async assertGoingOn(): Promise<void> {
    await this.assertKept()
    this.signal.throwIfAborted()
    const { spent } = this.spending
    if (spent !== undefined) throw new RunOver('budget-spent', spentText(spent, this.job.budget))
  }

  /** Asks the model. @throws RunOver */
  async generate(place: Place, prompt: string): Promise<ModelAnswer> {
    const { llmCall, llmTimeoutMs, keepPrompts } = this.job
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
      answer: script === null ? text.slice(0, ANSWER_KEPT) : null,
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
    const keys = new CallKeys()
    const executor = new ScriptExecutor({
      limits: this.job.limits,
      mode,
      onEvent: (event) => this.#note(place, event, keys),
    })
    const left = this.spending.toolCallsLeft
    const { maxCalls, ...limits } = this.job.toolLimits
    const most = Math.min(maxCalls ?? Number.POSITIVE_INFINITY, left)
    const result = await this.#machinery(() =>
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
    this.spending.toolCalls += Math.min(keys.count, left)
    this.#executed(place, result, keys.count)
    return result
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

  #note(place: Place, event: RunEvent, keys: CallKeys): void {
    switch (event.type) {
      case 'intermediate':
        this.journal.write({ type: 'intermediate', ...place, label: event.label, data: event.data })
        return
      case 'log':
        this.journal.write({ type: 'log', ...place, level: event.level, message: event.message })
        return
      case 'tool_call': {
        const { callId, name, effect, args, line } = event
        const key = keys.began(callId, name, line)
        this.journal.write({ type: 'tool_called', ...place, key, line, name, effect, args: inOrder(args) })
        return
      }
      case 'tool_result': {
        const { name, ok, ms, error, resultJson } = event
        this.journal.write({
          type: 'tool_answered',
          ...place,
          key: keys.ended(event.callId),
          name,
          ok,
          ms,
          result_json: resultJson === null ? null : resultJson.slice(0, RESULT_KEPT),
          result_chars: resultJson?.length ?? 0,
          error,
        })
        return
      }
      default:
    }
  }

  #executed(place: Place, result: ExecutionResult, toolCalls: number): void {
    const { id, engine, level, python, use, limitsEnforced, network } = result.sandbox
    const { cause, exitCode, signal } = result.ending
    this.journal.write({
      type: 'script_executed',
      ...place,
      status: result.status,
      error_kind: result.errorKind,
      error: result.error,
      traceback: result.traceback,
      has_result: result.hasResult,
      final_data: result.finalData,
      stdout: result.stdout,
      stderr: result.stderr,
      warnings: result.warnings.map(({ code, message }) => ({ code, message })),
      tool_calls: toolCalls,
      duration_ms: result.durationMs,
      sandbox: { id, engine, level, python, use, limits_enforced: limitsEnforced, network },
      ending: { cause, exit_code: exitCode, signal },
    })
  }
}

/** What a script of a run has around it. */
export interface ScriptGround {
  readonly mode: ExecutionMode
  readonly tools: ToolSet | undefined
  readonly inputs: Readonly<Record<string, unknown>>
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** A JSON value with the keys of each object in order: equal arguments look equal. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(inOrder)
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, inOrder(item)]),
  )
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
}
