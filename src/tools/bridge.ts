import { didYouMean, formatValue, memoryOf } from '../support/index.ts'
import type { Requester } from '../judge/index.ts'
import type { PythonToolSource, ToolCallFrame, ToolFailure, ToolSignature } from '../protocol/index.ts'
import { CallLimits, type ToolLimits } from './call-limits.ts'
import { failureOf } from './failure.ts'
import type { PreparedTool } from './prepared-tool.ts'
import { resultJson } from './result-json.ts'
import type { ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import type { ToolSet } from './tool-set.ts'

/** The run behind a bridge; the executor provides it. */
export interface BridgedRun {
  readonly executionId: string
  answer(id: string, answer: { readonly resultJson: string } | { readonly error: ToolFailure }): Promise<void>
  noteCall(call: ToolCallFrame, effect: ToolEffect | null): void
  /** Starts the time that is not the script's. Call the returned function once, when the call has ended. */
  noteExecution(id: string): () => void
  noteEnd(
    id: string,
    outcome: {
      readonly ms: number
      readonly error: ToolFailure | undefined
      readonly resultJson: string | undefined
    },
  ): Promise<void>
  /** @param isCut true if the text may end within a secret. */
  redact(text: string, isCut?: boolean): string
}

/** The tools of a run for an executor. */
export interface BridgedTools {
  readonly signatures: readonly ToolSignature[]
  readonly sources: readonly PythonToolSource[]
  readonly requiredSecrets: readonly string[]
  open(run: BridgedRun): Bridge
}

/** Makes the tools of a run from a set and its limits. */
export function bridgedTools(set: ToolSet, limits: ToolLimits = {}): BridgedTools {
  const { signatures, sources, requiredSecrets } = set
  return { signatures, sources, requiredSecrets, open: (run) => new Bridge(set, run, new CallLimits(limits)) }
}

/** Unknown names of one run for which a similar one is looked up, among hundreds of tools. */
const MAX_HINTS = 20

/**
 * Answers the tool calls of one run. Only the bridge decides which tools may be called and which ids are used: names and ids come
 * from the script's process and prove nothing.
 */
export class Bridge implements Requester {
  readonly #set: ToolSet
  readonly #run: BridgedRun
  readonly #limits: CallLimits
  readonly #ids = new Set<string>()
  readonly #over = new AbortController()
  #unknownCalls = 0

  constructor(set: ToolSet, run: BridgedRun, limits: CallLimits) {
    this.#set = set
    this.#run = run
    this.#limits = limits
  }

  /** True after {@link close}. */
  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** Takes a call. Resolves when there is room for more. Never rejects. */
  async take(call: ToolCallFrame): Promise<void> {
    if (this.#over.signal.aborted || this.#ids.has(call.id)) return
    const tool = this.#set.tools.get(call.name)
    const refusal = this.#limits.count(tool)
    this.#run.noteCall(call, tool?.effect ?? null)
    if (tool === undefined || refusal !== undefined) {
      await this.#refuse(call, refusal ?? this.#makeUnknownFailure(call.name))
      return
    }
    // Only accepted calls are kept, and their number is limited: a script can send refused ones endlessly.
    this.#ids.add(call.id)
    const release = this.#limits.enter(memoryOf(call.args))
    void this.#serve(tool, call).finally(release)
    await this.#limits.awaitRoom()
  }

  /** Aborts running calls; no further call is answered. Idempotent. */
  close(): void {
    if (this.#over.signal.aborted) return
    this.#over.abort(new ToolCallError('cancelled', 'the run is over'))
    this.#limits.close()
  }

  async #serve(tool: PreparedTool, call: ToolCallFrame): Promise<void> {
    const leave = await this.#limits.awaitTurn(tool)
    if (this.#over.signal.aborted) return leave()
    const started = performance.now()
    // Only a call that executes moves the deadline: a script can make checks of its arguments take long.
    let noteEnd: (() => void) | undefined
    const noteBegin = (): void => void (noteEnd = this.#run.noteExecution(call.id))
    let answer: { readonly resultJson: string } | { readonly error: ToolFailure }
    try {
      answer = { resultJson: await this.#within(tool, call, noteBegin) }
    } catch (thrown) {
      answer = { error: failureOf(tool, thrown, (text, isCut) => this.#run.redact(text, isCut)) }
    }
    noteEnd?.()
    await this.#answer(call.id, answer, performance.now() - started)
    // Only now: an answer stays in memory until it is sent.
    leave()
  }

  async #within(tool: PreparedTool, call: ToolCallFrame, noteBegin: () => void): Promise<string> {
    const ended = Promise.withResolvers<never>()
    ended.promise.catch(() => undefined)
    const own = new AbortController()
    const stop = (reason: ToolCallError): void => {
      own.abort(reason)
      ended.reject(reason)
    }
    const onOver = (): void => stop(new ToolCallError('cancelled', `${tool.name}: the run is over`))
    const { timeoutMs } = tool
    const timer = setTimeout(
      () => stop(new ToolCallError('timed_out', `${tool.name}: no answer within ${timeoutMs} ms`)),
      timeoutMs,
    )
    this.#over.signal.addEventListener('abort', onOver, { once: true })
    try {
      return await Promise.race([this.#execute(tool, call, own.signal, noteBegin), ended.promise])
    } finally {
      clearTimeout(timer)
      this.#over.signal.removeEventListener('abort', onOver)
    }
  }

  async #execute(tool: PreparedTool, call: ToolCallFrame, signal: AbortSignal, noteBegin: () => void): Promise<string> {
    const input = await tool.validateInput(call.args, this)
    // The check may have waited for its turn.
    signal.throwIfAborted()
    const { executionId } = this.#run
    noteBegin()
    const value = await tool.execute(input, { signal, callId: call.id, executionId })
    return resultJson(tool.name, await tool.validateOutput(value, this))
  }

  async #refuse(call: ToolCallFrame, error: ToolFailure): Promise<void> {
    await this.#answer(call.id, { error: { ...error, message: this.#run.redact(error.message) } }, 0)
  }

  async #answer(
    id: string,
    answer: { readonly resultJson: string } | { readonly error: ToolFailure },
    ms: number,
  ): Promise<void> {
    if (this.#over.signal.aborted) return
    await this.#run.noteEnd(id, {
      ms,
      error: 'error' in answer ? answer.error : undefined,
      resultJson: 'resultJson' in answer ? answer.resultJson : undefined,
    })
    // The reading side reports a peer that is gone.
    await this.#run.answer(id, answer).catch(() => undefined)
  }

  #makeUnknownFailure(name: string): ToolFailure {
    this.#unknownCalls += 1
    const hint = this.#unknownCalls > MAX_HINTS ? '' : didYouMean(name, this.#set.tools.keys())
    return { code: 'unknown_tool', message: `no tool ${formatValue(name)} in this run.${hint}` }
  }
}
