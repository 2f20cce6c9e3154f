import type { ToolCallFrame } from '../protocol/index.ts'
import type { Redactor } from '../redaction/index.ts'
import { sizeUpTo } from '../support/index.ts'
import type { RunEvent, ToolCall } from './result.ts'
import type { ApprovalOutcome, EffectMark, ToolOutcome } from './tool-port.ts'

/** Maximum number of calls that a result, and a journal for each script, lists; further calls are only counted. */
export const MAX_LISTED_CALLS = 1000
/** Maximum length of the listed arguments of a call as JSON, approximately. */
const MAX_LISTED_BYTES = 16 * 1024

/** A call without an answer so far. */
interface OpenCall extends Pick<ToolCall, 'name' | 'effect' | 'args'> {
  /** False while the call waits for its turn, or its arguments are checked. */
  began: boolean
  /** True while a person decides about the call. */
  waits: boolean
  readonly since: number
}

/** The tool calls of one run, without secrets: for its result, and as events that wait for delivery. */
export class ToolLog {
  readonly #executionId: string
  readonly #redactor: Redactor
  readonly #open = new Map<string, OpenCall>()
  #news: RunEvent[] = []
  readonly #answered: ToolCall[] = []
  #count = 0

  constructor(executionId: string, redactor: Redactor) {
    this.#executionId = executionId
    this.#redactor = redactor
  }

  /** Adds a call that began. */
  noteCall({ id, name, args, line = null }: ToolCallFrame, effect: EffectMark | null): void {
    this.#count += 1
    const call = { name: this.#redactor.text(name), effect, args: this.#redactor.value(args) }
    this.#open.set(id, { ...call, args: boundArgs(call.args), began: false, waits: false, since: performance.now() })
    const callId = this.#redactor.text(id)
    this.#news.push({ type: 'tool_call', executionId: this.#executionId, callId, ...call, line })
  }

  /** Notes that the tool of a call executes: the call had its turn, and its arguments are valid. */
  noteExecution(id: string): void {
    const call = this.#open.get(id)
    if (call !== undefined) call.began = true
  }

  /** Notes that a call waits for approval. Call the returned function with the decision. @param args without secrets. */
  noteApproval(id: string, approvalId: string, args: unknown): (decision: ApprovalOutcome) => void {
    const call = this.#open.get(id)
    if (call === undefined) return () => undefined
    call.waits = true
    const since = performance.now()
    const of = { executionId: this.#executionId, callId: this.#redactor.text(id), approvalId, name: call.name }
    this.#news.push({ type: 'approval_requested', ...of, effect: call.effect, args })
    return (decision) => {
      call.waits = false
      const { approved, by } = decision
      this.#news.push({
        type: 'approval_decided',
        ...of,
        approved,
        reason: approved ? null : this.#redactor.text(decision.reason),
        by: by === null ? null : this.#redactor.text(by),
        args: approved && decision.args !== null ? this.#redactor.value(decision.args) : null,
        waitedMs: roundMs(performance.now() - since),
      })
    }
  }

  /** Adds the outcome of a call. Its event follows after the answer is redacted, which takes several turns of the event loop if it is long. */
  async noteEnd(id: string, { ms, error, resultJson: given }: ToolOutcome): Promise<void> {
    const call = this.#open.get(id)
    if (call === undefined) return
    this.#open.delete(id)
    const failure =
      error === undefined
        ? null
        : { code: this.#redactor.text(error.code), message: this.#redactor.text(error.message) }
    const outcome = { ok: failure === null, ms: roundMs(ms), error: failure }
    const { name, effect, args } = call
    if (this.#answered.length < MAX_LISTED_CALLS)
      this.#answered.push({ name, effect, args, state: failure === null ? 'answered' : 'failed', ...outcome })
    const callId = this.#redactor.text(id)
    const resultJson = given === undefined ? null : await this.#redactor.longText(given)
    const event = { executionId: this.#executionId, callId, name, ...outcome, resultJson }
    this.#news.push({ type: 'tool_result', ...event })
  }

  /** The number of calls that had no answer when the script ended. */
  get unanswered(): number {
    return this.#open.size
  }

  /** The calls of the run, those without an answer at the end. */
  get calls(): readonly ToolCall[] {
    const ended = performance.now()
    const room = MAX_LISTED_CALLS - this.#answered.length
    const open = [...this.#open.values()].slice(0, room).map(({ since, began, waits, ...call }) => ({
      ...call,
      state: 'unanswered' as const,
      ok: false,
      ms: roundMs(ended - since),
      error: waits ? NOT_APPROVED : began ? NO_ANSWER : NOT_CALLED,
    }))
    return [...this.#answered, ...open]
  }

  /** The number of calls that are not listed. */
  get leftOut(): number {
    return Math.max(0, this.#count - MAX_LISTED_CALLS)
  }

  /** The events since the last call. */
  takeNews(): readonly RunEvent[] {
    const news = this.#news
    if (news.length > 0) this.#news = []
    return news
  }
}

const NO_ANSWER = { code: 'cancelled', message: 'the run ended before the tool answered' }
const NOT_APPROVED = { code: 'approval_pending', message: 'the run ended while the call waited for approval' }
const NOT_CALLED = { code: 'not_called', message: 'the run ended before the tool was called' }

function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/** Replaces large arguments by a note, because they would stay in memory with the result or the journal. */
export function boundArgs(args: unknown): unknown {
  // An estimate, because the exact length needs the JSON text, another copy of megabytes for each call.
  const size = sizeUpTo(args, Number.POSITIVE_INFINITY)
  return size <= MAX_LISTED_BYTES ? args : { '…': `about ${Math.round(size / 1024)} KiB of JSON left out` }
}

/** True if the tool was called, whatever the result. */
export function wasCalled({ state, error }: ToolCall): boolean {
  return state !== 'unanswered' || (error?.code !== NOT_CALLED.code && error?.code !== NOT_APPROVED.code)
}
