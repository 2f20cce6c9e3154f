const HIGH_WATER = 1024 * 1024
const LOW_WATER = 256 * 1024
/** As much as one chunk of a channel holds, about. */
const CHUNK_BYTES = 64 * 1024

/** Lines on their way to the host, and whether it keeps up: what they come from is paused while it does not. */
export class Outbox {
  readonly #onPressure: (paused: boolean) => void
  #lines: Uint8Array[] = []
  #bytes = 0
  #isOver = false
  #paused = false
  #waiting: ((chunk: Uint8Array | null) => void) | undefined
  readonly #wantRoom: (() => void)[] = []

  constructor(onPressure: (paused: boolean) => void) {
    this.#onPressure = onPressure
  }

  /** Resolves when the host keeps up. */
  room(): Promise<void> {
    if (!this.#paused || this.#isOver) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wantRoom.push(resolve)
    })
  }

  put(line: Uint8Array): void {
    if (this.#isOver) return
    const waiting = this.#waiting
    if (waiting !== undefined) {
      this.#waiting = undefined
      return waiting(line)
    }
    this.#lines.push(line)
    this.#bytes += line.length
    this.#weigh()
  }

  /** Nothing more comes. What lies here can still be taken. */
  end(): void {
    this.#isOver = true
    for (const go of this.#wantRoom.splice(0)) go()
    this.#waiting?.(null)
    this.#waiting = undefined
  }

  /** What is there, in pieces that are not small; null behind the last one. One caller at a time. */
  take(): Promise<Uint8Array | null> {
    if (this.#lines.length > 0) {
      let count = 0
      let bytes = 0
      while (count < this.#lines.length && bytes < CHUNK_BYTES) {
        bytes += this.#lines[count]?.length ?? 0
        count += 1
      }
      const taken = this.#lines.splice(0, count)
      this.#bytes -= bytes
      this.#weigh()
      return Promise.resolve(taken.length === 1 ? (taken[0] ?? null) : Buffer.concat(taken))
    }
    if (this.#isOver) return Promise.resolve(null)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  #weigh(): void {
    if (this.#paused ? this.#bytes > LOW_WATER : this.#bytes <= HIGH_WATER) return
    this.#paused = !this.#paused
    this.#onPressure(this.#paused)
    if (!this.#paused) for (const go of this.#wantRoom.splice(0)) go()
  }
}
