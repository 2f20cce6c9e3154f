import type { RunEvent } from '../executor/index.ts'
import { truncate } from '../support/index.ts'
import { type Context, markedLine } from './context.ts'

/** Maximum characters of the arguments of a tool call. */
const MAX_ARGS = 200

type CallEvent = Extract<RunEvent, { type: 'tool_call' | 'tool_result' }>

/** The calls of tools of one run as lines for stderr, each written when the call has ended. */
export class CallLines {
  readonly #context: Context
  /** The arguments of the calls that have not ended, by their ids. */
  readonly #args = new Map<string, string>()

  constructor(context: Context) {
    this.#context = context
  }

  /** The line of a call that ends; empty for one that begins. */
  lineOf(event: CallEvent): string {
    if (event.type === 'tool_call') {
      this.#args.set(event.callId, truncate(JSON.stringify(event.args), MAX_ARGS))
      return ''
    }
    const args = this.#args.get(event.callId) ?? ''
    this.#args.delete(event.callId)
    const outcome = event.error === null ? '' : `, ${event.error.code}: ${event.error.message}`
    return markedLine(this.#context, 'tool', `${event.name} ${args} ${event.ms.toFixed(1)} ms${outcome}`)
  }
}
