import { didYouMean } from '../support/index.ts'
import type { PythonToolSource, ToolCallFrame, ToolFailure, ToolSignature } from '../protocol/index.ts'
import { CallLimits, type ToolLimits } from './call-limits.ts'
import { failureOf } from './failure.ts'
import type { PreparedTool } from './prepared-tool.ts'
import { resultJson } from './result-json.ts'
import type { ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import type { ToolSet } from './tool-set.ts'

/** One run, as the bridge sees it; an executor brings it. */
export interface BridgedRun {
  readonly executionId: string
  answer(id: string, answer: { readonly resultJson: string } | { readonly error: ToolFailure }): Promise<void>
  began(call: ToolCallFrame, effect: ToolEffect | null): void
  ended(
    id: string,
    outcome: {
      readonly ms: number
      readonly error: ToolFailure | undefined
      readonly resultJson: string | undefined
    },
  ): void
  redact(text: string): string
}

/** The tools of a run, as an executor takes them. */
export interface BridgedTools {
  readonly signatures: readonly ToolSignature[]
  readonly sources: readonly PythonToolSource[]
  readonly requiredSecrets: readonly string[]
  open(run: BridgedRun): Bridge
}

/** Tools for an executor: a set, and how much one run may ask of it. */
export function bridgedTools(set: ToolSet, limits: ToolLimits = {}): BridgedTools {
  const { signatures, sources, requiredSecrets } = set
  return { signatures, sources, requiredSecrets, open: (run) => new Bridge(set, run, new CallLimits(limits)) }
}

/**
 * Answers the tool calls of one run. What may be called, and which ids were used, is known here alone: names and ids come
 * from the script's process and prove nothing.
 */
export class Bridge {
  readonly #set: ToolSet
  readonly #run: BridgedRun
  readonly #limits: CallLimits
  readonly #ids = new Set<string>()
  readonly #over = new AbortController()

  constructor(set: ToolSet, run: BridgedRun, limits: CallLimits) {
    this.#set = set
    this.#run = run
    this.#limits = limits
  }

  /** Takes a call. Resolves when there is room for more. Never rejects. */
  async take(call: ToolCallFrame): Promise<void> {
    if (this.#over.signal.aborted || this.#ids.has(call.id)) return
    const tool = this.#set.tools.get(call.name)
    const refusal = tool === undefined ? this.#unknown(call.name) : this.#limits.refusal(tool)
    this.#run.began(call, tool?.effect ?? null)
    if (tool === undefined || refusal !== undefined) {
      await this.#refuse(call, refusal ?? this.#unknown(call.name))
      return
    }
    // Of calls that are made alone, which are limited: a script may send others without end.
    this.#ids.add(call.id)
    const release = this.#limits.enter(JSON.stringify(call.args).length)
    void this.#serve(tool, call).finally(release)
    await this.#limits.room()
  }

  /** Aborts what runs; nothing is answered any more. Idempotent. */
  close(): void {
    if (this.#over.signal.aborted) return
    this.#over.abort(new ToolCallError('cancelled', 'the run is over'))
    this.#limits.close()
  }

  async #serve(tool: PreparedTool, call: ToolCallFrame): Promise<void> {
    const leave = await this.#limits.turn(tool)
    if (this.#over.signal.aborted) return leave()
    const started = performance.now()
    let answer: { readonly resultJson: string } | { readonly error: ToolFailure }
    try {
      answer = { resultJson: await this.#within(tool, call) }
    } catch (thrown) {
      answer = { error: failureOf(tool, thrown, (text) => this.#run.redact(text)) }
    }
    await this.#answer(call.id, answer, performance.now() - started)
    // Not earlier: answers that are on their way are held in memory.
    leave()
  }

  async #within(tool: PreparedTool, call: ToolCallFrame): Promise<string> {
    const ended = Promise.withResolvers<never>()
    ended.promise.catch(() => undefined)
    const own = new AbortController()
    const stop = (reason: ToolCallError): void => {
      own.abort(reason)
      ended.reject(reason)
    }
    const onOver = (): void => stop(new ToolCallError('cancelled', `${tool.name}: the run is over`))
    const { timeoutMs } = tool
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(
            () => stop(new ToolCallError('timed_out', `${tool.name}: no answer within ${timeoutMs} ms`)),
            timeoutMs,
          )
    this.#over.signal.addEventListener('abort', onOver, { once: true })
    try {
      return await Promise.race([this.#execute(tool, call, own.signal), ended.promise])
    } finally {
      clearTimeout(timer)
      this.#over.signal.removeEventListener('abort', onOver)
    }
  }

  async #execute(tool: PreparedTool, call: ToolCallFrame, signal: AbortSignal): Promise<string> {
    const input = await tool.validateInput(call.args)
    const { executionId } = this.#run
    const value = await tool.execute(input, { signal, callId: call.id, executionId })
    return resultJson(tool.name, await tool.validateOutput(value))
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
    this.#run.ended(id, {
      ms,
      error: 'error' in answer ? answer.error : undefined,
      resultJson: 'resultJson' in answer ? answer.resultJson : undefined,
    })
    // A peer that is gone shows at the reading side.
    await this.#run.answer(id, answer).catch(() => undefined)
  }

  #unknown(name: string): ToolFailure {
    const names = [...this.#set.tools.keys()]
    const shown = JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)
    return { code: 'unknown_tool', message: `no tool ${shown} in this run.${didYouMean(name, names)}` }
  }
}
