import { jsonLine } from './json-line.ts'

/** Time that a reader that reads nothing may delay the exit after a signal. */
const PATIENCE_MS = 2000

/** An output of this process, written with back-pressure. It is not an error if the reader leaves. */
export class Output {
  readonly #stream: NodeJS.WriteStream
  readonly #signal: AbortSignal
  readonly #lost = Promise.withResolvers<void>()
  #open = true
  #stuck = false

  /**
   * @param signal after it fires, the output waits only briefly for a reader that reads nothing.
   * @param onLost called once, when the reader has left.
   */
  constructor(stream: NodeJS.WriteStream, signal: AbortSignal, onLost: () => void) {
    this.#stream = stream
    this.#signal = signal
    void this.#lost.promise.then(onLost)
    stream.on('error', () => this.#lose())
  }

  get isTerminal(): boolean {
    return this.#stream.isTTY
  }

  /** The current width of the terminal; undefined if it is unknown. */
  get columns(): number | undefined {
    return this.#stream.columns
  }

  /** True if some output will never be read, so that the process must not wait for it. */
  get stuck(): boolean {
    return this.#stuck
  }

  /** Resolves when the operating system has the text or the bytes, or the reader has left. */
  async write(text: string | Uint8Array): Promise<void> {
    if (!this.#open || text.length === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#stream.write(text, (error) => {
      if (error !== undefined && error !== null) this.#lose()
      resolve()
    })
    const impatience = this.#startPatience()
    await Promise.race([promise, this.#lost.promise, impatience.promise])
    impatience.end()
  }

  /** One value as one line of JSON. */
  async line(value: unknown): Promise<void> {
    await this.write(jsonLine(value))
  }

  #lose(): void {
    this.#open = false
    this.#lost.resolve()
  }

  #startPatience(): { promise: Promise<void>; end: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined
    const start = (): void => {
      timer = setTimeout(() => {
        this.#stuck = true
        this.#lose()
        resolve()
      }, PATIENCE_MS)
    }
    if (this.#signal.aborted) start()
    else this.#signal.addEventListener('abort', start, { once: true })
    return {
      promise,
      end: () => {
        clearTimeout(timer)
        this.#signal.removeEventListener('abort', start)
      },
    }
  }
}
