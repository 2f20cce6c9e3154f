import type { Readable } from 'node:stream'
import { type ErrorCode, SandglassError } from '../errors/index.ts'
import type { ExecutionMode, ExecutionResult, Policy } from '../executor/index.ts'
import type { Sandglass } from '../index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import type { ToolSet } from '../tools/index.ts'
import { formatValue } from '../support/index.ts'
import type { Answers, Refusal } from './answers.ts'
import { type Failure, failureOf, UsageError } from './failure.ts'
import { Progress } from './progress.ts'
import { type BatchRequest, checkRequest, parseLine, refuseHugeIntegers } from './request.ts'
import { type InputLine, inputLines } from './request-lines.ts'
import { refusalLine, resultLine } from './result-line.ts'
import { Schedule } from './schedule.ts'
import { reword } from './wording.ts'

const MAX_LINE_BYTES = 96 * 1024 * 1024
/** Requests that are read ahead for each running one, so that no sandbox waits for the input. */
const AHEAD = 4

/** Options of {@link BatchRun}. */
export interface BatchOptions {
  readonly sandglass: Sandglass
  readonly answers: Answers
  /** Writes a message for people. */
  readonly note: (text: string) => Promise<void>
  readonly concurrency: number
  /** The mode of requests without one. */
  readonly mode: ExecutionMode
  readonly limits: ResourceLimits
  /** The policy of requests without one. */
  readonly policy: Policy | undefined
  readonly tools: ToolSet | undefined
  /** Cancels the running requests and starts no others. */
  readonly signal: AbortSignal
}

/** One batch: reads ahead a little, runs a few at a time, answers in order of completion. */
export class BatchRun {
  readonly progress: Progress = new Progress()
  readonly #options: BatchOptions
  readonly #schedule = new Schedule<BatchRequest>()
  /** The sandbox of each answered request, for `same_sandbox_as`. */
  readonly #sandboxes = new Map<string, string>()
  readonly #notified = new Set<string>()
  readonly #stop = new AbortController()
  #running = 0
  #change = Promise.withResolvers<void>()
  #failure: { readonly error: unknown } | undefined

  constructor(options: BatchOptions) {
    this.#options = { ...options, signal: AbortSignal.any([options.signal, this.#stop.signal]) }
    this.#options.signal.addEventListener('abort', () => this.#announceChange(), { once: true })
  }

  /**
   * Resolves when every line has its answer, or after the signal when all runs have ended.
   * @throws the error of the input, or of an answer that could not be written. It is thrown when all requests were cancelled.
   */
  async serve(input: Readable): Promise<void> {
    try {
      await this.#read(input)
      // After a signal the rest of the input is unknown.
      if (!this.#options.signal.aborted) await this.#refuseUnresolvedDependencies()
      await this.#waitUntil(() => this.#schedule.ready + this.#schedule.waiting === 0)
    } catch (error) {
      this.#fail(error)
    }
    while (this.#running > 0) await this.#waitForChange()
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async #refuseUnresolvedDependencies(): Promise<void> {
    for (const { request, problem } of this.#schedule.end((id) => this.#options.answers.hasAnswerOrRefusal(id))) {
      await this.#refuse(request.line, request.id, makeUsageError(problem))
    }
  }

  async #read(input: Readable): Promise<void> {
    try {
      for await (const line of inputLines(input as AsyncIterable<Uint8Array>, MAX_LINE_BYTES)) {
        this.progress.countLine('text' in line ? Buffer.byteLength(line.text) + 1 : 0)
        await this.#accept(line)
        this.#startWaiting()
        await this.#waitUntil(() => this.#schedule.ready < AHEAD * this.#options.concurrency)
        if (this.#options.signal.aborted) return
      }
      this.progress.markInputEnd()
    } catch (error) {
      // A stream that is destroyed by the signal ends with an error.
      if (!this.#options.signal.aborted) throw error
    }
  }

  async #accept(line: InputLine): Promise<void> {
    const { mode, limits, answers } = this.#options
    let id: string | null = null
    let isDuplicate = false
    try {
      if ('problem' in line) throw makeUsageError(PROBLEMS[line.problem])
      const given = parseLine(line.text)
      id = given.id
      isDuplicate = this.#schedule.addId(id)
      if (isDuplicate) {
        const problem = 'is used more than once in this batch; give each request its own id'
        throw makeUsageError(`id: ${formatValue(id)} ${problem}`)
      }
      if (answers.hasAnswer(id)) {
        this.progress.skipped += 1
        this.#schedule.markAnswered(id)
        return
      }
      refuseHugeIntegers(line.text)
      const request = checkRequest(given, line.number, mode, limits)
      for (const before of request.after) if (answers.hasAnswer(before)) this.#schedule.markAnswered(before)
      for (const { request: stuck, problem } of this.#schedule.add(request)) {
        await this.#refuse(stuck.line, stuck.id, makeUsageError(problem))
      }
    } catch (error) {
      // The first request of an id is the one that others wait for.
      await this.#refuse(line.number, id, error, isDuplicate)
    }
  }

  async #refuse(line: number, id: string | null, error: unknown, isDuplicate = false): Promise<void> {
    const failure = failureOf(error)
    if (!(error instanceof SandglassError)) throw error
    await this.#write(line, id, failure)
    if (id !== null && !isDuplicate) this.#schedule.markAnswered(id)
  }

  async #write(line: number, id: string | null, failure: Failure): Promise<void> {
    const isRefusal = failure.errorKind === 'invalid_request'
    const refusal = isRefusal ? { id, line, error: failure.message } : undefined
    await this.#answer(failure.status, refusalLine(id, isRefusal ? line : null, failure), refusal)
  }

  #startWaiting(): void {
    const { concurrency, signal } = this.#options
    while (this.#running < concurrency && !signal.aborted) {
      const request = this.#schedule.take()
      if (request === undefined) return
      this.#running += 1
      void this.#run(request)
        .catch((error: unknown) => this.#fail(error))
        .finally(() => {
          this.#running -= 1
          this.#startWaiting()
          this.#announceChange()
        })
    }
  }

  async #run(request: BatchRequest): Promise<void> {
    const { sandglass, answers, policy, signal, tools } = this.#options
    const wanted = request.sameSandboxAs === undefined ? undefined : this.#sandboxes.get(request.sameSandboxAs)
    let result: ExecutionResult
    try {
      result = await sandglass.run(request.script, {
        ...(policy === undefined ? {} : { policy }),
        ...request.options,
        ...(tools === undefined ? {} : { tools }),
        ...(wanted === undefined ? {} : { sandboxId: wanted }),
        signal,
      })
    } catch (error) {
      const failure = failureOf(reword(error, 'keys'))
      // The request did not start, so it gets no answer, like the requests after it.
      if (failure.status === 'cancelled') return
      await this.#write(request.line, request.id, failure)
      this.#schedule.markAnswered(request.id)
      return
    }
    if (result.status === 'cancelled' && !answers.keepsCancelled) return
    await this.#reportToolFailures(result)
    const { id } = request
    const refusal = result.errorKind === 'invalid_request' ? { id, line: null, error: result.error } : undefined
    await this.#answer(result.status, resultLine(id, result), refusal)
    this.#sandboxes.set(request.id, result.sandbox.id)
    this.#schedule.markAnswered(request.id)
  }

  /** Writes an answer, unless it is a refusal that an earlier batch wrote. */
  async #answer(status: string, answer: Record<string, unknown>, refusal: Refusal | undefined): Promise<void> {
    const { answers } = this.#options
    if (refusal !== undefined && answers.hasRefusal(refusal)) {
      this.progress.skipped += 1
      return
    }
    this.progress.countAnswer(status)
    await answers.write(answer)
  }

  /** Reports files that could not be loaded once to the person who started the batch. Every result also has them as warnings. */
  async #reportToolFailures({ warnings }: ExecutionResult): Promise<void> {
    for (const { code, message } of warnings) {
      if (code !== 'tool_not_loaded' || this.#notified.has(message)) continue
      this.#notified.add(message)
      await this.#options.note(`--tools-dir: ${message}`)
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.#stop.abort()
    this.#announceChange()
  }

  async #waitUntil(isReached: () => boolean): Promise<void> {
    this.#startWaiting()
    while (!isReached() && !this.#options.signal.aborted) await this.#waitForChange()
  }

  #waitForChange(): Promise<void> {
    return this.#change.promise
  }

  #announceChange(): void {
    this.#change.resolve()
    this.#change = Promise.withResolvers()
  }
}

const PROBLEMS = {
  'too-long': `the line is longer than ${MAX_LINE_BYTES} bytes`,
  'not-utf8': 'the line is not UTF-8',
} as const

function makeUsageError(message: string, code: ErrorCode = 'invalid_request'): UsageError {
  return new UsageError(code, message)
}
