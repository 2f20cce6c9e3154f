import type { ToolCallFrame } from '../protocol/index.ts'
import type { Redactor } from './redact.ts'
import type { RunEvent, ToolCall } from './result.ts'
import type { EffectMark, ToolOutcome } from './tool-port.ts'

/** Calls that a result lists; the others are counted. */
const MAX_LISTED = 1000
/** Of the arguments that a result lists, as JSON. */
const MAX_LISTED_BYTES = 16 * 1024

/** The tool calls of one run, without secrets: for its result, and as events that wait to be told. */
export class ToolLog {
  readonly #executionId: string
  readonly #redactor: Redactor
  readonly #open = new Map<string, Omit<ToolCall, 'ok' | 'ms' | 'error'>>()
  #news: RunEvent[] = []
  readonly calls: ToolCall[] = []
  count = 0

  constructor(executionId: string, redactor: Redactor) {
    this.#executionId = executionId
    this.#redactor = redactor
  }

  /** A call began. */
  began({ id, name, args, line = null }: ToolCallFrame, effect: EffectMark | null): void {
    this.count += 1
    const call = { name: this.#redactor.text(name), effect, args: this.#redactor.value(args) }
    this.#open.set(id, { ...call, args: bounded(call.args) })
    const callId = this.#redactor.text(id)
    this.#news.push({ type: 'tool_call', executionId: this.#executionId, callId, ...call, line })
  }

  /** A call came to its end. */
  ended(id: string, { ms, error, resultJson: given }: ToolOutcome): void {
    const call = this.#open.get(id)
    if (call === undefined) return
    this.#open.delete(id)
    const failure =
      error === undefined
        ? null
        : { code: this.#redactor.text(error.code), message: this.#redactor.text(error.message) }
    const outcome = { ok: failure === null, ms: Math.round(ms * 1000) / 1000, error: failure }
    if (this.calls.length < MAX_LISTED) this.calls.push({ ...call, ...outcome })
    const callId = this.#redactor.text(id)
    const resultJson = given === undefined ? null : this.#redactor.text(given)
    const told = { executionId: this.#executionId, callId, name: call.name, ...outcome, resultJson }
    this.#news.push({ type: 'tool_result', ...told })
  }

  /** Calls that the script made and that nobody answered before its end. */
  get unanswered(): number {
    return this.#open.size
  }

  /** How many calls are not listed. */
  get leftOut(): number {
    return this.count - this.#open.size - this.calls.length
  }

  /** What has not been told yet. */
  takeNews(): readonly RunEvent[] {
    const news = this.#news
    if (news.length > 0) this.#news = []
    return news
  }
}

/** Arguments as a result lists them: large ones would be kept in memory for as long as the result is. */
function bounded(args: unknown): unknown {
  const text = JSON.stringify(args)
  return text.length <= MAX_LISTED_BYTES ? args : { '…': `${text.length} characters of JSON left out` }
}
