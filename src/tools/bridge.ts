import { didYouMean, formatValue, memoryOf } from '../support/index.ts'
import type { Requester } from '../judge/index.ts'
import type { PythonToolSource, ToolCallFrame, ToolFailure, ToolSignature } from '../protocol/index.ts'
import { type Approver, approvalRuleOf, type CallDecision, mayWait } from './approver.ts'
import { CallLimits, type ToolLimits } from './call-limits.ts'
import { failureOf } from './failure.ts'
import type { PreparedTool } from './prepared-tool.ts'
import { resultJson } from './result-json.ts'
import { BY_DEFAULT, type ToolContext, type ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import type { ToolSet } from './tool-set.ts'

/** The run behind a bridge; the executor provides it. */
export interface BridgedRun {
  readonly executionId: string
  answer(id: string, answer: { readonly resultJson: string } | { readonly error: ToolFailure }): Promise<void>
  noteCall(call: ToolCallFrame, effect: ToolEffect | null): void
  /** Starts the time that does not count towards the script's timeout. Call the returned function once, when the call has ended. */
  noteExecution(id: string): () => void
  /** A call waits for approval. Call the returned function once, with the decision. */
  noteApproval(id: string, approvalId: string, args: unknown): (decision: CallDecision) => void
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
  /** A copy of a JSON value without the secrets of the run. */
  redactValue(value: unknown): unknown
}

/** The tools of a run for an executor. */
export interface BridgedTools {
  readonly signatures: readonly ToolSignature[]
  readonly sources: readonly PythonToolSource[]
  readonly requiredSecrets: readonly string[]
  /** True if calls may wait for approval. */
  readonly mayWait: boolean
  open(run: BridgedRun): Bridge
}

/**
 * Makes the tools of a run from a set and its limits.
 * @param approver asks about calls that need approval; without it, they are denied.
 */
export function bridgedTools(set: ToolSet, limits: ToolLimits = {}, approver?: Approver): BridgedTools {
  const { signatures, sources, requiredSecrets } = set
  return {
    signatures,
    sources,
    requiredSecrets,
    mayWait: mayWait(set, approver),
    open: (run) => new Bridge(set, run, new CallLimits(limits), approver),
  }
}

/** Copies of its arguments that a call may hold while it waits for approval: as received, shown, kept and executed. */
const WAITING_COPIES = 4
/** Maximum number of unknown names in one run for which a similar name is suggested: each search compares all tools. */
const MAX_HINTS = 20

/**
 * Answers the tool calls of one run. Only the bridge decides which tools may be called and which ids are used: names and ids come
 * from the script's process and prove nothing.
 */
export class Bridge implements Requester {
  readonly #set: ToolSet
  readonly #run: BridgedRun
  readonly #limits: CallLimits
  readonly #approver: Approver | undefined
  readonly #ids = new Set<string>()
  readonly #over = new AbortController()
  #unknownCalls = 0

  constructor(set: ToolSet, run: BridgedRun, limits: CallLimits, approver: Approver | undefined) {
    this.#set = set
    this.#run = run
    this.#limits = limits
    this.#approver = approver
  }

  /** True after {@link close}. */
  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** Accepts a call. Resolves when there is room for more. Never rejects. */
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
    const copies = approvalRuleOf(tool, this.#approver) === false ? 1 : WAITING_COPIES
    const release = this.#limits.enter(copies * memoryOf(call.args))
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
    let leave = await this.#limits.awaitTurn(tool)
    if (this.#over.signal.aborted) return leave()
    let started = performance.now()
    // Checks of arguments do not move the deadline, unlike approval and execution: a script can make them take long.
    let noteEnd: (() => void) | undefined
    const noteBegin = (): void => void (noteEnd = this.#run.noteExecution(call.id))
    let answer: { readonly resultJson: string } | { readonly error: ToolFailure }
    try {
      const rule = approvalRuleOf(tool, this.#approver)
      let { args } = call
      if (rule !== false && (await this.#needsApproval(tool, call, rule))) {
        // Other calls may run while a person decides.
        leave()
        leave = () => undefined
        const asked = performance.now()
        args = await this.#awaitApproval(tool, call).finally(() => (started += performance.now() - asked))
        leave = await this.#limits.awaitTurn(tool)
      }
      answer = {
        resultJson: await this.#within(tool, (signal) => this.#execute(tool, call.id, args, signal, noteBegin)),
      }
    } catch (thrown) {
      answer = { error: failureOf(tool, thrown, (text, isCut) => this.#run.redact(text, isCut)) }
    }
    noteEnd?.()
    await this.#answer(call.id, answer, performance.now() - started)
    // The answer stays in memory until it is sent, so the turn ends only now.
    leave()
  }

  /** True if a call, whose arguments are valid, must be approved. */
  #needsApproval(
    tool: PreparedTool,
    { id, args }: ToolCallFrame,
    rule: NonNullable<PreparedTool['approve']>,
  ): Promise<boolean> {
    return this.#within(tool, async (signal) => {
      const input = await tool.validateInput(args, this)
      signal.throwIfAborted()
      if (typeof rule !== 'function') return rule === true
      let needed: unknown
      try {
        needed = await rule(input, this.#contextOf(id, signal))
      } catch (error) {
        if (error instanceof ToolCallError && error.code === 'denied') throw deniedError(tool, error.message)
        throw deniedError(tool, `approve failed: ${failureOf(tool, error, (text) => text).message}`)
      }
      if (needed === BY_DEFAULT)
        return approvalRuleOf({ effect: tool.effect, approve: undefined }, this.#approver) === true
      if (typeof needed === 'boolean') return needed
      throw deniedError(tool, `approve returned ${formatValue(needed)}, which is neither true nor false`)
    })
  }

  /** Waits for the decision of a person; returns the arguments that it approves. */
  async #awaitApproval(tool: PreparedTool, call: ToolCallFrame): Promise<ToolCallFrame['args']> {
    if (this.#approver === undefined) throw deniedError(tool, 'nobody can be asked for approval in this run')
    // Nobody else holds this copy: what is shown is what executes.
    const args = structuredClone(call.args)
    const shown = this.#run.redactValue(structuredClone(args))
    let noteDecision: ((decision: CallDecision) => void) | undefined
    const decision = await this.#approver.ask({
      executionId: this.#run.executionId,
      tool: tool.name,
      effect: tool.effect,
      args: shown,
      line: call.line ?? null,
      signal: this.#over.signal,
      check: async (other) => void (await tool.validateInput(structuredClone(other), this)),
      onAsked: (id) => void (noteDecision = this.#run.noteApproval(call.id, id, shown)),
    })
    noteDecision?.(decision)
    if (!decision.approved) throw deniedError(tool, decision.reason)
    return decision.args === null ? args : structuredClone(decision.args)
  }

  /** Runs `act` within the time limit of the tool. Rejects at the end of the run. */
  async #within<T>(tool: PreparedTool, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const ended = Promise.withResolvers<never>()
    ended.promise.catch(() => undefined)
    const own = new AbortController()
    const stop = (reason: ToolCallError): void => {
      own.abort(reason)
      ended.reject(reason)
    }
    const onOver = (): void => stop(new ToolCallError('cancelled', `${tool.name}: the run is over`))
    if (this.#over.signal.aborted) onOver()
    const { timeoutMs } = tool
    const timer = setTimeout(
      () => stop(new ToolCallError('timed_out', `${tool.name}: no answer within ${timeoutMs} ms`)),
      timeoutMs,
    )
    this.#over.signal.addEventListener('abort', onOver, { once: true })
    try {
      own.signal.throwIfAborted()
      return await Promise.race([act(own.signal), ended.promise])
    } finally {
      clearTimeout(timer)
      this.#over.signal.removeEventListener('abort', onOver)
    }
  }

  async #execute(
    tool: PreparedTool,
    callId: string,
    args: ToolCallFrame['args'],
    signal: AbortSignal,
    noteBegin: () => void,
  ): Promise<string> {
    const input = await tool.validateInput(args, this)
    // The signal may have fired while the check waited for its turn.
    signal.throwIfAborted()
    noteBegin()
    const value = await tool.execute(input, this.#contextOf(callId, signal))
    return resultJson(tool.name, await tool.validateOutput(value, this))
  }

  #contextOf(callId: string, signal: AbortSignal): ToolContext {
    return { signal, callId, executionId: this.#run.executionId }
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

function deniedError({ name }: PreparedTool, reason: string): ToolCallError {
  return new ToolCallError('denied', `${name}: the call was denied: ${reason}`)
}
