import type { JournalEvent, RunRecord } from '../journal/index.ts'
import { type Context, isLively } from './context.ts'
import { countText, cutText, msText, plural } from './figures.ts'
import { LiveLine } from './live-line.ts'
import { attemptsOf } from './solve-line.ts'
import { placeText, SolveProgress } from './solve-progress.ts'
import { forTerminal, inOurLine } from './terminal-text.ts'

const MAX_ERROR = 500
const MAX_PARTIAL = 2000

/** Tells a task while it is worked off, and what became of it. */
export interface Teller {
  event(event: JournalEvent): Promise<void>
  result(record: RunRecord): Promise<void>
  end(): Promise<void>
}

/** Tells it to a person: a line that lives on a terminal, a line for each attempt, the answer on stdout. */
export class SolveTeller implements Teller {
  readonly #context: Context
  readonly #showFlags: string
  readonly #progress = new SolveProgress()
  readonly #live: LiveLine

  /** @param showFlags what `sandglass show ID` needs to find the run. */
  constructor(context: Context, showFlags: string) {
    this.#context = context
    this.#showFlags = showFlags
    this.#live = new LiveLine(context.stderr, isLively(context), () => this.#progress.text())
  }

  async event(event: JournalEvent): Promise<void> {
    this.#progress.take(event)
    if (event.type !== 'attempt_ended') return
    const { status, error, duration_ms: ms } = event
    const { calls } = this.#progress
    const facts = [msText(ms), ...(calls === 0 ? [] : [plural(calls, 'tool call')])].join(', ')
    const why = error === null ? '' : `: ${cutText(error, MAX_ERROR)}`
    await this.#mark(status, `${placeText(event)} (${facts})${why}`)
  }

  async result(record: RunRecord): Promise<void> {
    await this.#live.end()
    const { stdout, hasReaderLeft } = this.#context
    if (hasReaderLeft()) return
    const { success, finalData, error, partial, status } = record
    if (success) {
      const text = typeof finalData === 'string' ? finalData : JSON.stringify(finalData, null, 2)
      await stdout.write(`${stdout.isTerminal ? forTerminal(text) : text}\n`)
    } else {
      if (partial !== null) await this.#mark('partial', cutText(JSON.stringify(partial), MAX_PARTIAL))
      await this.#mark(status, error ?? 'no reason is known')
    }
    await this.#say(`${costText(record)}; more with: sandglass show ${record.runId}${this.#showFlags}`)
  }

  end(): Promise<void> {
    return this.#live.end()
  }

  async #mark(what: string, text: string): Promise<void> {
    const mark = isLively(this.#context) ? `\u001B[2m[${inOurLine(what)}]\u001B[22m` : `[${inOurLine(what)}]`
    await this.#live.write(this.#context.stderr, `${mark} ${inOurLine(text.trimEnd())}\n`)
  }

  async #say(text: string): Promise<void> {
    await this.#live.write(this.#context.stderr, `sandglass: ${inOurLine(text)}\n`)
  }
}

/** What a run took: `2 attempts, 932 tokens, 3 tool calls, 4.21 s`. */
function costText(record: RunRecord): string {
  const { steps, totalPromptTokens, totalCompletionTokens, totalToolCalls, durationMs } = record
  return [
    ...(steps.length === 0 ? [] : [plural(steps.length, 'step')]),
    plural(attemptsOf(record).length, 'attempt'),
    `${countText(totalPromptTokens + totalCompletionTokens)} tokens`,
    plural(totalToolCalls, 'tool call'),
    msText(durationMs),
  ].join(', ')
}
