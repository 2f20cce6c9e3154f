import type { ToolExecutionResult } from '../index.ts'
import type { JournalEvent, RunRecord } from '../journal/index.ts'
import { countText, truncate } from '../support/index.ts'
import { type Context, markedLine, supportsAnsi } from './context.ts'
import { msText, plural } from './figures.ts'
import { displayText } from './display-files.ts'
import { LiveLine } from './live-line.ts'
import { attemptsOf } from './solve-line.ts'
import { placeText, SolveProgress } from './solve-progress.ts'
import { dataText, moreText } from './foreign-text.ts'
import { escapeForMessage } from './terminal-text.ts'

const MAX_ERROR = 500
const MAX_PARTIAL = 2000
const MAX_FILES = 20

type TaskResult = Pick<ToolExecutionResult, 'record' | 'files' | 'displays'>

/** Reports the progress and the result of a task. */
export interface Reporter {
  event(event: JournalEvent): Promise<void>
  /** Shows a complete text to the person. */
  show(text: string): Promise<void>
  /** A file that a script left has come. */
  file(file: { readonly size: number }): void
  /**
   * @param problems why files were not saved.
   * @param isStored whether `sandglass show` finds the task.
   */
  result(result: TaskResult, problems: readonly string[], isStored: boolean): Promise<void>
  end(): Promise<void>
}

/** Reports to a person: a status line, a line for each attempt, the answer on stdout. */
export class SolveReporter implements Reporter {
  readonly #context: Context
  readonly #showFlags: string
  readonly #progress = new SolveProgress()
  readonly #live: LiveLine
  /** The reported error of the last attempt. */
  #reportedError: string | null = null

  /**
   * @param showFlags what `sandglass show ID` needs to find the task.
   * @param installText the status line while packages are installed, else undefined.
   */
  constructor(context: Context, showFlags: string, installText: () => string | undefined) {
    this.#context = context
    this.#showFlags = showFlags
    this.#live = new LiveLine(context.stderr, supportsAnsi(context), () => installText() ?? this.#progress.text())
  }

  async event(event: JournalEvent): Promise<void> {
    this.#progress.take(event)
    if (event.type !== 'attempt_ended') return
    const { status, error, duration_ms: ms } = event
    this.#reportedError = error
    const { calls } = this.#progress
    const facts = [msText(ms), ...(calls === 0 ? [] : [plural(calls, 'tool call')])].join(', ')
    const why = error === null ? '' : `: ${truncate(error, MAX_ERROR)}`
    await this.#mark(status, `${placeText(event)} (${facts})${why}`)
  }

  show(text: string): Promise<void> {
    return this.#live.write(this.#context.stderr, text)
  }

  file(file: { readonly size: number }): void {
    this.#progress.takeFile(file)
  }

  async result({ record, files, displays }: TaskResult, problems: readonly string[], isStored: boolean): Promise<void> {
    await this.#live.end()
    const { stdout, isStdoutClosed } = this.#context
    if (isStdoutClosed()) return
    const { success, finalData, error, partial, status } = record
    if (success) {
      await this.#live.pass(stdout, `${dataText(finalData)}\n`)
    } else {
      if (partial !== null) await this.#mark('partial', truncate(JSON.stringify(partial), MAX_PARTIAL))
      await this.#mark(status, this.#reasonOf(error))
    }
    for (const shown of displays.slice(0, MAX_FILES)) await this.#mark('display', displayText(shown))
    if (files.length > 0) {
      const named = files.slice(0, MAX_FILES).map(({ path, size }) => `${path} (${plural(size, 'byte')})`)
      await this.#mark('files', [...named, ...moreText(files.length - MAX_FILES)].join(', '))
    }
    for (const problem of problems) await this.#mark('not_saved', problem)
    const more = isStored ? `; more with: sandglass show ${record.runId}${this.#showFlags}` : ''
    await this.#say(`${costText(record)}${more}`)
  }

  end(): Promise<void> {
    return this.#live.end()
  }

  /** The reason for the missing answer, unless it was already reported with the last attempt. */
  #reasonOf(error: string | null): string {
    if (error === null) return 'the reason is unknown'
    return error === this.#reportedError ? 'no answer; the last attempt shows the reason' : truncate(error, MAX_ERROR)
  }

  async #mark(what: string, text: string): Promise<void> {
    await this.#live.write(this.#context.stderr, markedLine(this.#context, what, text))
  }

  async #say(text: string): Promise<void> {
    await this.#live.write(this.#context.stderr, `sandglass: ${escapeForMessage(text)}\n`)
  }
}

/** The cost of a task: `2 attempts, 932 tokens, 3 tool calls, 4.21 s`. */
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
