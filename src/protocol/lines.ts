/** A line longer than the bound was met; the stream cannot be followed any further. */
export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError'
}

/**
 * Cuts a byte stream at `\n`. Costs linear time whatever the chunks are, keeps at most `maxLineBytes` of an unfinished
 * line, and never decodes a part of a line, so that UTF-8 may be split anywhere.
 */
export class LineSplitter {
  readonly #maxLineBytes: number
  #parts: Uint8Array[] = []
  #length = 0

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes
  }

  /** Bytes of the unfinished line that are held. */
  get pendingBytes(): number {
    return this.#length
  }

  /**
   * Takes a chunk and yields the lines that it completes, without their `\n`.
   * @throws LineTooLongError before more than the bound is kept.
   */
  *push(chunk: Uint8Array): Generator<Buffer, void, void> {
    let start = 0
    for (;;) {
      const end = chunk.indexOf(0x0a, start)
      if (end === -1) break
      const tail = chunk.subarray(start, end)
      this.#refuseOver(this.#length + tail.length)
      yield this.#finish(tail)
      start = end + 1
    }
    const rest = chunk.subarray(start)
    this.#refuseOver(this.#length + rest.length)
    if (rest.length > 0) {
      this.#parts.push(rest)
      this.#length += rest.length
    }
  }

  #finish(tail: Uint8Array): Buffer {
    if (this.#length === 0) return Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength)
    const line = Buffer.concat([...this.#parts, tail], this.#length + tail.length)
    this.#parts = []
    this.#length = 0
    return line
  }

  #refuseOver(length: number): void {
    if (length <= this.#maxLineBytes) return
    this.#parts = []
    this.#length = 0
    throw new LineTooLongError(`a line of more than ${this.#maxLineBytes} bytes`)
  }
}
