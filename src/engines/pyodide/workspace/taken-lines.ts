import { FRAMES_WINDOW_BYTES } from '../../../protocol/index.ts'
import type { RunOutbox } from '../outbox.ts'

/** The output of one run. It counts the bytes that the host has not read, and pauses the run when they exceed the window. */
export class FlowControlledOutbox implements RunOutbox {
  readonly #outbox: RunOutbox
  readonly #onPressure: (isFull: boolean) => void
  #unread = 0
  #isOver = false
  #room = Promise.withResolvers<void>()

  constructor(outbox: RunOutbox, onPressure: (isFull: boolean) => void) {
    this.#outbox = outbox
    this.#onPressure = onPressure
  }

  get isFull(): boolean {
    return this.#unread > FRAMES_WINDOW_BYTES
  }

  put(line: Uint8Array): void {
    const wasFull = this.isFull
    this.#unread += line.length
    this.#outbox.put(line)
    if (!wasFull && this.isFull) this.#onPressure(true)
  }

  /** Credits bytes that the host has read. */
  credit(bytes: number): void {
    const wasFull = this.isFull
    this.#unread = Math.max(0, this.#unread - bytes)
    if (!wasFull || this.isFull) return
    this.#onPressure(false)
    this.#room.resolve()
    this.#room = Promise.withResolvers()
  }

  async room(): Promise<void> {
    while (this.isFull && !this.#isOver) await this.#room.promise
    await this.#outbox.room()
  }

  /** Ends the flow control, because no more lines are read. */
  end(): void {
    this.#isOver = true
    this.#room.resolve()
  }
}
