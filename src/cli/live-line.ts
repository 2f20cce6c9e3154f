import type { Output } from './output.ts'
import { escapeForMessage, escapeForTerminal, RESET_STYLE, styleLeftBy } from './terminal-text.ts'

const PERIOD_MS = 200
const DEFAULT_COLUMNS = 80
const CLEAR = '\r\u001B[2K'

/** The status lines of this process that are drawn, and the questions at its terminal. */
const drawn = new Set<LiveLine>()
let questions = 0
let unanswered = Promise.withResolvers<void>()

/**
 * Keeps the terminal to a question until its end: the status line would erase it, and a script could write another one below it.
 */
export async function holdTerminal(): Promise<Disposable> {
  if (questions === 0) unanswered = Promise.withResolvers()
  questions += 1
  await Promise.all([...drawn].map(async (line) => line.clear()))
  return {
    [Symbol.dispose]: () => {
      questions -= 1
      if (questions === 0) unanswered.resolve()
    },
  }
}

/** Waits until no question is open. */
async function untilAnswered(): Promise<void> {
  while (questions > 0) await unanswered.promise
}

/**
 * A status line at the bottom of the terminal. All other output is written through it, so that each line of Sandglass begins on
 * a line of its own and in the plain style, whatever a script wrote before.
 */
export class LiveLine implements Disposable {
  readonly #stderr: Output
  readonly #text: () => string | undefined
  #timer: NodeJS.Timeout | undefined
  #drawn = false
  /** Outputs whose last line is unfinished. */
  readonly #unfinished = new Set<Output>()
  /** Terminals on which a script left a style: colours, or text that cannot be seen. */
  readonly #styled = new Set<Output>()

  /**
   * @param enabled true on a terminal whose output no program reads.
   * @param text of the line; undefined while there is nothing to say.
   */
  constructor(stderr: Output, enabled: boolean, text: () => string | undefined) {
    this.#stderr = stderr
    this.#text = text
    if (!enabled) return
    this.#timer = setInterval(() => void this.#draw(), PERIOD_MS)
    this.#timer.unref()
  }

  /** Writes lines of Sandglass to an output that may be the same terminal. */
  async write(output: Output, text: string): Promise<void> {
    if (text === '') return
    await untilAnswered()
    await this.startLine(output)
    await output.write(text)
  }

  /** Writes text of a script, which keeps its colours and may end within a line. */
  async pass(output: Output, text: string): Promise<void> {
    if (text === '') return
    await untilAnswered()
    await this.clear()
    if (text.endsWith('\n')) this.#unfinished.delete(output)
    else this.#unfinished.add(output)
    if (!output.isTerminal) return output.write(text)
    const leavesStyle = styleLeftBy(text)
    if (leavesStyle === true) this.#styled.add(output)
    if (leavesStyle === false) this.#styled.delete(output)
    return output.write(escapeForTerminal(text))
  }

  /** Ends the line and the style that a script left. */
  async startLine(output: Output): Promise<void> {
    await this.clear()
    await this.#resetStyle()
    const unfinished = [...this.#unfinished].filter((one) => one === output || (one.isTerminal && output.isTerminal))
    for (const one of unfinished) this.#unfinished.delete(one)
    if (unfinished.length > 0) await output.write('\n')
  }

  /** Removes the status line, and the style that a script left. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.clear()
    await this.#resetStyle()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #draw(): Promise<void> {
    // It would erase a question, or an unfinished line of the script.
    if (questions > 0 || this.#timer === undefined || [...this.#unfinished].some((output) => output.isTerminal)) return
    const text = this.#text()
    if (text === undefined) return this.clear()
    this.#drawn = true
    drawn.add(this)
    // Written in one call, so that no output of the script comes in between.
    const line = `${CLEAR}${truncateToWidth(text, this.#stderr.columns)}`
    await Promise.all([this.#resetStyle(), this.#stderr.write(line)])
  }

  /** Removes what is drawn. */
  async clear(): Promise<void> {
    if (!this.#drawn) return
    this.#drawn = false
    drawn.delete(this)
    await this.#stderr.write(CLEAR)
  }

  async #resetStyle(): Promise<void> {
    const styled = [...this.#styled]
    this.#styled.clear()
    await Promise.all(styled.map((output) => output.write(RESET_STYLE)))
  }
}

/**
 * Shortens a line to the width of the terminal: a line that wraps cannot be removed, and a full line wraps on some terminals.
 */
export function truncateToWidth(text: string, columns: number | undefined): string {
  const line = escapeForMessage(text).replaceAll('\n', ' ')
  const max = (columns ?? 0) === 0 ? DEFAULT_COLUMNS - 1 : (columns ?? 0) - 1
  return line.length <= max ? line : `${line.slice(0, Math.max(0, max - 1))}…`
}
