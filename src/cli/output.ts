import { jsonLine } from './json-line.ts'

/** How long a reader that takes nothing may hold up the end after a signal. */
const PATIENCE_MS = 2000

/** One of the process's own outputs, written with back-pressure. A reader that left is no error. */
export class Output {
  readonly #stream: NodeJS.WriteStream
  readonly #signal: AbortSignal
  readonly #lost = Promise.withResolvers<void>()
  #open = true
  #stuck = false

  /**
   * @param signal after it fired, a reader that takes nothing is waited for only briefly.
   * @param onLost called once when nobody reads any more.
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

  /** How wide the terminal is now; undefined where there is none, or it does not tell. */
  get columns(): number | undefined {
    return this.#stream.columns
  }

  /** Whether something that was written will never be read, so that the process must not wait for it. */
  get stuck(): boolean {
    return this.#stuck
  }

  /** Resolves when the text was handed to the operating system, or nobody reads. */
  async write(text: string): Promise<void> {
    if (!this.#open || text === '') return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#stream.write(text, (error) => {
      if (error !== undefined && error !== null) this.#lose()
      resolve()
    })
    const impatience = this.#impatience()
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

  #impatience(): { promise: Promise<void>; end: () => void } {
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
