/**
 * Holds the received chunks of a connection until they are taken, or the reader that waits for one. Engines build channels with
 * it.
 */
export class ChunkQueue {
  readonly #chunks: Uint8Array[] = []
  #waiting: ((chunk: Uint8Array | null) => void) | undefined
  #isOver = false

  /** True if it holds a chunk: the source must then pause. The back-pressure reaches a sandbox that floods. */
  get holds(): boolean {
    return this.#chunks.length > 0
  }

  /** True if a reader waits: the source must then resume. */
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

  /** Ends the queue. The chunks in it can still be taken. */
  end(): void {
    this.#isOver = true
    this.#waiting?.(null)
    this.#waiting = undefined
  }

  /** Takes the next chunk, or null after the last one. One caller at a time. */
  take(): Promise<Uint8Array | null> {
    const chunk = this.#chunks.shift()
    if (chunk !== undefined || this.#isOver) return Promise.resolve(chunk ?? null)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }
}
