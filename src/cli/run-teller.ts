import type { ExecutionResult, RunEvent } from '../executor/index.ts'
import { type Context, isLively } from './context.ts'
import type { LiveLine } from './live-line.ts'
import type { Output } from './output.ts'
import { nameText } from './shown-text.ts'
import { forTerminal, inOurLine } from './terminal-text.ts'
import { violationsText } from './violations-text.ts'

/** Of a tool call's arguments. */
const MAX_SHOWN = 200

/** Tells a run to a person: the script's own output as it comes, everything else marked, the result last. */
export class RunTeller {
  readonly #context: Context
  readonly #live: LiveLine
  readonly #script: { readonly path: string; readonly text: string }
  readonly #calls = new Map<string, string>()
  /** Outputs whose last line the script left open. */
  readonly #unfinished = new Set<Output>()

  constructor(context: Context, live: LiveLine, script: { readonly path: string; readonly text: string }) {
    this.#script = script
    this.#context = context
    this.#live = live
  }

  async event(event: RunEvent): Promise<void> {
    const { stdout, stderr } = this.#context
    switch (event.type) {
      case 'stdout':
        return this.#pass(stdout, event.text)
      case 'stderr':
        return this.#pass(stderr, event.text)
      case 'log':
        return this.#mark(nameText(event.level), event.message)
      case 'intermediate':
        return this.#mark('intermediate', `${nameText(event.label)}: ${JSON.stringify(event.data)}`)
      case 'tool_call':
        this.#calls.set(event.callId, cut(JSON.stringify(event.args)))
        return undefined
      case 'tool_result': {
        const args = this.#calls.get(event.callId) ?? ''
        this.#calls.delete(event.callId)
        const outcome = event.error === null ? '' : `, ${event.error.code}: ${event.error.message}`
        return this.#mark('tool', `${event.name} ${args} ${event.ms.toFixed(1)} ms${outcome}`)
      }
      default:
        return undefined // the result tells it
    }
  }

  async result(result: ExecutionResult): Promise<void> {
    await this.#live.end()
    const { stdout, hasReaderLeft } = this.#context
    if (hasReaderLeft()) return
    for (const { code, message } of result.warnings) await this.#mark('warning', `${code}: ${message}`)
    if (result.violations.length > 0) await this.#tellViolations(result)
    if (result.traceback !== null) await this.#mark('traceback', result.traceback)
    if (result.errorKind !== null) await this.#mark(result.status, result.error ?? 'no reason is known')
    if (!result.hasResult) return
    const { finalData } = result
    const text = typeof finalData === 'string' ? finalData : JSON.stringify(finalData, null, 2)
    await this.#pass(stdout, `${this.#newLine(stdout)}${text}\n`)
  }

  end(): Promise<void> {
    return this.#live.end()
  }

  async #tellViolations({ violations }: ExecutionResult): Promise<void> {
    const { stderr } = this.#context
    const { path, text } = this.#script
    const coloured = stderr.isTerminal && isLively(this.#context)
    await this.#live.write(stderr, `${violationsText(path, text, violations, coloured)}\n`)
  }

  async #pass(output: Output, text: string): Promise<void> {
    if (text.endsWith('\n')) this.#unfinished.delete(output)
    else this.#unfinished.add(output)
    await this.#live.write(output, output.isTerminal ? forTerminal(text) : text)
  }

  async #mark(what: string, text: string): Promise<void> {
    const mark = isLively(this.#context) ? `\u001B[2m[${inOurLine(what)}]\u001B[22m` : `[${inOurLine(what)}]`
    const { stderr } = this.#context
    await this.#live.write(stderr, `${this.#newLine(stderr)}${mark} ${inOurLine(text.trimEnd())}\n`)
    this.#unfinished.delete(stderr)
  }

  #newLine(output: Output): string {
    return this.#unfinished.has(output) ? '\n' : ''
  }
}

function cut(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`
}
