import type { Sandglass } from '../index.ts'
import type { PendingCall } from '../review/index.ts'
import type { CallApprover } from './call-approver.ts'
import { type Context, note } from './context.ts'
import { plural } from './figures.ts'
import { holdTerminal } from './live-line.ts'
import { ask, dropInput, userName } from './person.ts'
import { wrapText } from './rows.ts'

/** Maximum rows of the arguments of a call; a row has 70 characters. */
const MAX_ROWS = 1000
const NO_TERMINAL = 'it needs the approval of a person, and there is no terminal to ask at'

/** Asks about the calls of tools that need approval: the person at the terminal; without one, they are denied at once. */
export class CallApprovals implements CallApprover {
  readonly #context: Context
  readonly #asked = new Set<string>()
  #asking: Promise<void> = Promise.resolve()
  sandglass: CallApprover['sandglass']

  constructor(context: Context) {
    this.#context = context
  }

  /** An option of the library, which passes all calls that wait. Resolves when all of them are decided. */
  readonly onPending = async (calls: readonly PendingCall[]): Promise<void> => {
    const fresh = calls.filter(({ id }) => !this.#asked.has(id))
    for (const { id } of fresh) this.#asked.add(id)
    this.#asking = this.#asking.then(async () => {
      for (const call of fresh) if (!call.signal.aborted) await this.#decide(call)
    })
    await this.#asking
  }

  async #decide(call: PendingCall): Promise<void> {
    const { stderr, env, signal } = this.#context
    if (!process.stdin.isTTY || !stderr.isTerminal) {
      await note(this.#context, `${call.tool}: denied: ${NO_TERMINAL}`)
      return this.#answer(call, (sandglass) => sandglass.deny(call.id, NO_TERMINAL))
    }
    const by = userName(env)
    using _ = await holdTerminal()
    await stderr.write(callText(call))
    // Earlier input must not answer this call.
    await dropInput()
    try {
      await this.#put(call, by, AbortSignal.any([signal, call.signal]))
    } catch (error) {
      if (!call.signal.aborted) throw error
      await note(this.#context, `${call.tool}: the call no longer waits`)
    }
  }

  /** Asks until there is an answer. @throws the reason of the signal. */
  async #put(call: PendingCall, by: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const answer = (await ask(`Approve ${call.tool} (${call.effect})? [y/n] `, signal)).trim().toLowerCase()
      if (answer === 'y' || answer === 'yes')
        return this.#answer(call, (sandglass) => sandglass.approve(call.id, { by }))
      if (answer === 'n' || answer === 'no')
        return this.#answer(call, (sandglass) => sandglass.deny(call.id, undefined, { by }))
    }
  }

  /** Tells the person about an answer that comes too late: the call was denied by its timeout, or its run is over. */
  async #answer(
    call: PendingCall,
    answer: (sandglass: Pick<Sandglass, 'approve' | 'deny'>) => Promise<void>,
  ): Promise<void> {
    const { sandglass } = this
    if (sandglass !== undefined) await answer(sandglass).catch(() => note(this.#context, `${call.tool}: too late`))
  }
}

/** The arguments of a call, in rows that no terminal wraps: a wrapped row could look like a question. */
function callText({ tool, effect, args }: PendingCall): string {
  const rows = (JSON.stringify(args, null, 2) ?? 'null').split('\n').flatMap((line) => wrapText(line))
  const more = rows.length - MAX_ROWS
  const shown = more > 0 ? [...rows.slice(0, MAX_ROWS), `… ${plural(more, 'row')} more that you do not see`] : rows
  return `\n${tool} (${effect})\n${shown.map((row) => `  | ${row}`).join('\n')}\n`
}
