import type { ExecutionResult, RunEvent } from '../executor/index.ts'
import { CallLines } from './call-lines.ts'
import { type Context, markedLine, supportsAnsi } from './context.ts'
import { displayText } from './display-files.ts'
import type { LiveLine } from './live-line.ts'
import { dataText, nameText } from './foreign-text.ts'
import { violationsText } from './violations-text.ts'

/** Reports a run to a person: the output of the script as it arrives, everything else marked, the result last. */
export class RunReporter {
  readonly #context: Context
  readonly #live: LiveLine
  readonly #script: { readonly path: string; readonly text: string }
  readonly #calls: CallLines

  constructor(context: Context, live: LiveLine, script: { readonly path: string; readonly text: string }) {
    this.#script = script
    this.#context = context
    this.#live = live
    this.#calls = new CallLines(context)
  }

  async event(event: RunEvent): Promise<void> {
    const { stdout, stderr } = this.#context
    switch (event.type) {
      case 'stdout':
        return this.#live.pass(stdout, event.text)
      case 'stderr':
        return this.#live.pass(stderr, event.text)
      case 'log':
      case 'intermediate':
        return this.#live.write(stderr, emittedLine(this.#context, event))
      case 'display':
        return this.#mark('display', displayText(event))
      case 'tool_call':
      case 'tool_result':
        return this.#live.write(stderr, this.#calls.lineOf(event))
      default:
        return undefined // it is part of the result
    }
  }

  async result(result: ExecutionResult): Promise<void> {
    await this.#live.end()
    const { stdout, isStdoutClosed } = this.#context
    if (isStdoutClosed()) return
    for (const { code, message } of result.warnings) await this.#mark('warning', `${code}: ${message}`)
    if (result.violations.length > 0) await this.#reportViolations(result)
    if (result.traceback !== null) await this.#mark('traceback', result.traceback)
    if (result.errorKind !== null) await this.#mark(result.status, result.error ?? 'the reason is unknown')
    if (!result.hasResult) return
    await this.#live.startLine(stdout)
    await this.#live.pass(stdout, `${dataText(result.finalData)}\n`)
  }

  end(): Promise<void> {
    return this.#live.end()
  }

  async #reportViolations({ violations }: ExecutionResult): Promise<void> {
    const { stderr } = this.#context
    const { path, text } = this.#script
    const coloured = stderr.isTerminal && supportsAnsi(this.#context)
    await this.#live.write(stderr, `${violationsText(path, text, violations, coloured)}\n`)
  }

  async #mark(what: string, text: string): Promise<void> {
    await this.#live.write(this.#context.stderr, markedLine(this.#context, what, text))
  }
}

/** A log or an intermediate as a line for stderr. */
export function emittedLine(context: Context, event: Extract<RunEvent, { type: 'log' | 'intermediate' }>): string {
  if (event.type === 'log') return markedLine(context, nameText(event.level), event.message)
  return markedLine(context, 'intermediate', `${nameText(event.label)}: ${JSON.stringify(event.data)}`)
}
