import { messageOf, SandglassError } from '../errors/index.ts'
import { Journal, newRunId } from '../journal/index.ts'
import { Redactor } from '../redaction/index.ts'
import { MAX_TIMER_MS } from '../support/index.ts'
import { Spending, describeSpentBudget } from './budget.ts'
import { EndTask } from './end-task.ts'
import type { Job } from './job.ts'
import { publishEvent } from './publish-event.ts'
import { TaskDisplays } from './task-displays.ts'
import { TaskFiles } from './task-files.ts'

/** Time for the journal to store its events; shorter once the task is over. */
const STORE_MS = 10_000
const STORE_AT_END_MS = 1000

/** A task that is being solved: its journal, its budgets, and the signal that ends it. */
export class ActiveTask {
  readonly job: Job
  readonly journal: Journal
  readonly spending: Spending
  readonly redactor: Redactor
  readonly files: TaskFiles
  readonly displays: TaskDisplays = new TaskDisplays()
  /** Fires when the job is cancelled or its time is up. */
  readonly signal: AbortSignal
  readonly #started: number = performance.now()
  readonly #ended: AbortController = new AbortController()
  readonly #timer: NodeJS.Timeout | undefined
  readonly #onAbort: () => void

  constructor(job: Job) {
    this.job = job
    this.files = new TaskFiles(job.collectLimits)
    this.spending = new Spending(job.budget, job.pricing)
    this.signal = this.#ended.signal
    this.redactor = new Redactor(job.hide, job.secrets)
    this.journal = new Journal(newRunId(), job.journal, this.redactor, (event) => {
      // `run_ended` may still be replaced: `solve` publishes the final one.
      if (event.type !== 'run_ended') publishEvent(event, job.traceId)
      try {
        const returned: unknown = job.onEvent?.(event)
        if (returned instanceof Promise) returned.catch(() => undefined)
      } catch {
        // A listener that throws does not end the task.
      }
    })
    this.#onAbort = () => this.#ended.abort(new EndTask('cancelled', cancelReasonOf(job.signal?.reason)))
    if (job.signal?.aborted === true) this.#onAbort()
    else job.signal?.addEventListener('abort', this.#onAbort, { once: true })
    const { wallMs } = job.budget
    // A timer cannot wait longer than MAX_TIMER_MS, and no task lasts that long.
    if (wallMs !== undefined && wallMs <= MAX_TIMER_MS) {
      const spent = new EndTask('budget-spent', describeSpentBudget('wall_ms', job.budget))
      this.#timer = setTimeout(() => this.#ended.abort(spent), wallMs)
    }
  }

  /** Ends the task like its signal. */
  cancel(): void {
    this.#onAbort()
  }

  /** Milliseconds since the task began. */
  get elapsedMs(): number {
    return roundMs(performance.now() - this.#started)
  }

  /** @throws EndTask when the journal did not store every event, or takes too long. */
  async assertStored(): Promise<void> {
    const ms = this.signal.aborted ? STORE_AT_END_MS : STORE_MS
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error(`its store did not answer within ${ms} ms`)), ms)
    try {
      await Promise.race([this.journal.settle(), late.promise])
    } catch (error) {
      throw new EndTask('infrastructure', `the journal cannot be written: ${messageOf(error)}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Checks that another attempt may begin.
   * @param usesTools true if the attempt may call tools of the host.
   * @throws EndTask when the task was cancelled, a budget is spent, or the journal cannot be written.
   */
  async assertCanContinue(usesTools: boolean): Promise<void> {
    await this.orEnd(this.assertStored())
    const spent = this.spending.findSpent(usesTools)
    if (spent !== undefined) throw new EndTask('budget-spent', describeSpentBudget(spent, this.job.budget))
  }

  /** Waits for work, at most until the task ends. @throws EndTask, and any error of the work. */
  async orEnd<R>(work: Promise<R>): Promise<R> {
    work.catch(() => undefined) // if the task ends first, nobody else handles the rejection
    this.signal.throwIfAborted()
    const end = Promise.withResolvers<never>()
    const onAbort = (): void => end.reject(this.signal.reason)
    this.signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([work, end.promise])
    } finally {
      this.signal.removeEventListener('abort', onAbort)
    }
  }

  /** Runs a step that depends on sandboxes and packages: any error in it ends the task as `infrastructure`. @throws EndTask */
  async runInfrastructure<R>(act: () => Promise<R>): Promise<R> {
    try {
      return await act()
    } catch (error) {
      this.signal.throwIfAborted()
      const code = error instanceof SandglassError ? ` (${error.code})` : ''
      throw new EndTask('infrastructure', `${messageOf(error)}${code}`, { cause: error })
    }
  }

  /** Releases the timer and the listener. */
  dispose(): void {
    clearTimeout(this.#timer)
    this.job.signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** The reason of a cancellation, if it is an error of this library; any other could hold anything. */
function cancelReasonOf(reason: unknown): string {
  return reason instanceof SandglassError && reason.code === 'aborted' ? reason.message : 'the task was cancelled'
}

/** Milliseconds to three decimals, as the journal records them. */
export function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}
