/** What came over a connection and nobody took yet, and the one who waits for more. Engines build channels with it. */
export class ChunkQueue {
  readonly #chunks: Uint8Array[] = []
  #waiting: ((chunk: Uint8Array | null) => void) | undefined
  #isOver = false

  /** Whether something lies here: its source is to pause, so that whoever floods fills his own pipe. */
  get holds(): boolean {
    return this.#chunks.length > 0
  }

  /** Whether somebody waits: its source is to go on. */
  get isAwaited(): boolean {
    return this.#waiting !== undefined
  }

  put(chunk: Uint8Array): void {
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#chunks.push(chunk)
      return
    }
    this.#waiting = undefined
    waiting(chunk)
  }

  /** Nothing more comes. What lies here can still be taken. */
  end(): void {
    this.#isOver = true
    this.#waiting?.(null)
    this.#waiting = undefined
  }

  /** The next chunk, or null behind the last one. One caller at a time. */
  take(): Promise<Uint8Array | null> {
    const chunk = this.#chunks.shift()
    if (chunk !== undefined || this.#isOver) return Promise.resolve(chunk ?? null)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }
}
