import { encodePayload, MAX_PAYLOAD_BYTES } from '../../../protocol/index.ts'
import type { Outbox } from '../outbox.ts'

/** The time after which an activity yields to other work of the host. */
const SLICE_MS = 20

/** The output of one activity. It respects the window, and yields to other work of the host. */
export class Flow {
  readonly #id: string
  readonly #outbox: Outbox
  #credit: number
  #more = Promise.withResolvers<void>()
  #isOver = false
  #sliceEnd = performance.now() + SLICE_MS

  constructor(id: string, outbox: Outbox, window: number) {
    this.#id = id
    this.#outbox = outbox
    this.#credit = window
  }

  /** True if nothing may be sent any more. */
  get isOver(): boolean {
    return this.#isOver
  }

  grant(bytes: number): void {
    this.#credit += bytes
    this.#more.resolve()
  }

  end(): void {
    this.#isOver = true
    this.#more.resolve()
  }

  /** Sends bytes of the stream `file`, as far as the window allows. Resolves to false if the activity is over. */
  async bytes(given: Uint8Array): Promise<boolean> {
    for (let at = 0; at < given.length; at += MAX_PAYLOAD_BYTES) {
      const piece = given.subarray(at, at + MAX_PAYLOAD_BYTES)
      if (!(await this.#hasRoom())) return false
      this.#credit -= piece.length
      this.#outbox.put(encodePayload({ type: 'output', execution_id: this.#id, stream: 'file' }, piece))
    }
    return !this.#isOver
  }

  /** Sends a frame that counts towards the window. */
  async frame({ type, ...fields }: { readonly type: string; readonly [field: string]: unknown }): Promise<boolean> {
    if (!(await this.#hasRoom())) return false
    const line = Buffer.from(`${JSON.stringify({ type, execution_id: this.#id, ...fields })}\n`)
    this.#credit -= line.length
    this.#outbox.put(line)
    return true
  }

  /** Yields if the time slice is used up. Resolves to false if the activity is over. */
  async pause(): Promise<boolean> {
    if (performance.now() > this.#sliceEnd) {
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
      this.#sliceEnd = performance.now() + SLICE_MS
    }
    return !this.#isOver
  }

  async #hasRoom(): Promise<boolean> {
    while (this.#credit <= 0 && !this.#isOver) {
      this.#more = Promise.withResolvers()
      await this.#more.promise
    }
    if (this.#isOver) return false
    await this.#outbox.room()
    return this.pause()
  }
}
