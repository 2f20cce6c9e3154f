import { CAPS } from '../../protocol/index.ts'

/** The approximate size of one chunk of a channel. */
const CHUNK_BYTES = 64 * 1024

/** Receives the lines of a run. */
export interface RunOutbox {
  put(line: Uint8Array): void
  /** Resolves when there is room for more lines. */
  room(): Promise<void>
}

/** The queue of lines to the host. It asks its sources to pause while the host does not read fast enough. */
export class Outbox implements RunOutbox {
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

  /** Resolves when there is room for more lines. */
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
    this.#updatePressure()
  }

  /** Ends the input. Queued lines can still be taken. */
  end(): void {
    this.#isOver = true
    for (const go of this.#wantRoom.splice(0)) go()
    this.#waiting?.(null)
    this.#waiting = undefined
  }

  /** Returns the queued lines in chunks, and null after the last one. One caller at a time. */
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
      this.#updatePressure()
      return Promise.resolve(taken.length === 1 ? (taken[0] ?? null) : Buffer.concat(taken))
    }
    if (this.#isOver) return Promise.resolve(null)
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  #updatePressure(): void {
    if (this.#paused ? this.#bytes > CAPS.lowWaterBytes : this.#bytes <= CAPS.highWaterBytes) return
    this.#paused = !this.#paused
    this.#onPressure(this.#paused)
    if (!this.#paused) for (const go of this.#wantRoom.splice(0)) go()
  }
}
