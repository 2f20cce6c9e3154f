/** A line exceeds the bound. The rest of the stream cannot be read. */
export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError'
}

const FIRST_CAPACITY = 4096

/**
 * Splits a byte stream at `\n`. Takes linear time for chunks of any size, keeps at most `maxLineBytes` of an unfinished
 * line, and never decodes a part of a line, so that UTF-8 may be split anywhere.
 */
export class LineSplitter {
  readonly #maxLineBytes: number
  readonly #reuses: boolean
  // One buffer that doubles, not a list of chunks: a peer that sends single bytes would grow a list to hundreds of
  // times the bound.
  #pending: Buffer = Buffer.alloc(0)
  #length = 0

  /** @param reuses true to keep the memory of a long line for the next one: V8 frees such buffers late. */
  constructor(maxLineBytes: number, reuses = false) {
    this.#maxLineBytes = maxLineBytes
    this.#reuses = reuses
  }

  /** The number of held bytes of an unfinished line. */
  get pendingBytes(): number {
    return this.#length
  }

  /**
   * Adds a chunk and yields the lines that it completes, without their `\n`. A line is valid until the chunk is
   * overwritten, with `reuses` until the next line is requested; no part of the chunk is held after the last line.
   * @throws LineTooLongError before more than the bound is kept.
   */
  *push(chunk: Uint8Array): Generator<Buffer, void, void> {
    let start = 0
    for (;;) {
      const end = chunk.indexOf(0x0a, start)
      if (end === -1) break
      yield this.#finish(chunk.subarray(start, end))
      start = end + 1
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start))
  }

  #finish(tail: Uint8Array): Buffer {
    if (this.#length === 0) {
      this.#refuseOver(tail.length)
      return Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength)
    }
    this.#hold(tail)
    const line = this.#pending.subarray(0, this.#length)
    if (this.#reuses) this.#length = 0
    else this.#forget()
    return line
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#length + bytes.length
    this.#refuseOver(length)
    if (length > this.#pending.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length, this.#pending.length * 2, FIRST_CAPACITY))
      this.#pending.copy(grown, 0, 0, this.#length)
      this.#pending = grown
    }
    this.#pending.set(bytes, this.#length)
    this.#length = length
  }

  #refuseOver(length: number): void {
    if (length <= this.#maxLineBytes) return
    this.#forget()
    throw new LineTooLongError(`a line of more than ${this.#maxLineBytes} bytes`)
  }

  #forget(): void {
    this.#pending = Buffer.alloc(0)
    this.#length = 0
  }
}
