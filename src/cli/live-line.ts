import type { Output } from './output.ts'
import { inOurLine } from './terminal-text.ts'

const PERIOD_MS = 200
const DEFAULT_COLUMNS = 80
const CLEAR = '\r\u001B[2K'

/** A line at the bottom of the terminal that tells how things stand. Other texts are written through it. */
export class LiveLine implements Disposable {
  readonly #stderr: Output
  readonly #text: () => string
  #timer: NodeJS.Timeout | undefined
  #drawn = false
  /** Whether the cursor is at the start of a line; a line of the script's own must not be wiped. */
  #atStart = true

  /** @param enabled only on a terminal, where nothing else is to be read by a program. */
  constructor(stderr: Output, enabled: boolean, text: () => string) {
    this.#stderr = stderr
    this.#text = text
    if (!enabled) return
    this.#timer = setInterval(() => void this.#draw(), PERIOD_MS)
    this.#timer.unref()
  }

  /** Writes to an output that may be the same terminal. */
  async write(output: Output, text: string): Promise<void> {
    if (text === '') return
    await this.#clear()
    if (output.isTerminal) this.#atStart = text.endsWith('\n')
    await output.write(text)
  }

  /** Takes the line away for good. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.#clear()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #draw(): Promise<void> {
    if (!this.#atStart || this.#timer === undefined) return
    this.#drawn = true
    await this.#stderr.write(`${CLEAR}${fitting(this.#text(), this.#stderr.columns)}`)
  }

  async #clear(): Promise<void> {
    if (!this.#drawn) return
    this.#drawn = false
    await this.#stderr.write(CLEAR)
  }
}

/**
 * A line as it fits on a terminal: one that wrapped could not be taken away again; a full one wraps on some terminals.
 */
export function fitting(text: string, columns: number | undefined): string {
  const line = inOurLine(text).replaceAll('\n', ' ')
  const most = (columns ?? 0) === 0 ? DEFAULT_COLUMNS - 1 : (columns ?? 0) - 1
  return line.length <= most ? line : `${line.slice(0, Math.max(0, most - 1))}…`
}
