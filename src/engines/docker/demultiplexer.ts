/** The stream of the container to which a piece belongs. */
export type StreamName = 'stdout' | 'stderr'

/** A piece of one stream, as it was received. */
export interface Piece {
  readonly stream: StreamName
  readonly data: Uint8Array
}

const HEADER_BYTES = 8
const NAMES: readonly (StreamName | undefined)[] = [undefined, 'stdout', 'stderr']

/**
 * Splits the data of an attached connection: frames of an 8 byte header (stream, three zeros, length in
 * network order) and a payload. It keeps at most one unfinished header and copies no payload; a payload that arrives in
 * parts is returned in parts, so it allocates no memory for a claimed length.
 */
export class Demultiplexer {
  readonly #header = new Uint8Array(HEADER_BYTES)
  #have = 0
  #stream: StreamName = 'stdout'
  #left = 0

  /**
   * Splits a chunk into pieces, which are views of it, not copies.
   * @throws Error when the bytes are not a multiplexed stream.
   */
  push(chunk: Uint8Array): Piece[] {
    const pieces: Piece[] = []
    let at = 0
    while (at < chunk.length) {
      if (this.#left > 0) {
        const data = chunk.subarray(at, at + this.#left)
        pieces.push({ stream: this.#stream, data })
        this.#left -= data.length
        at += data.length
        continue
      }
      const head = chunk.subarray(at, at + HEADER_BYTES - this.#have)
      this.#header.set(head, this.#have)
      this.#have += head.length
      at += head.length
      if (this.#have === HEADER_BYTES) this.#begin()
    }
    return pieces
  }

  /** True if the stream may end here: not within a header or a payload. */
  get isWhole(): boolean {
    return this.#have === 0 && this.#left === 0
  }

  #begin(): void {
    this.#have = 0
    const [kind = 0, a, b, c] = this.#header
    const stream = NAMES[kind]
    if (stream === undefined || a !== 0 || b !== 0 || c !== 0) {
      throw new Error(`not a multiplexed stream: a header begins with ${[...this.#header.subarray(0, 4)].join(' ')}`)
    }
    this.#stream = stream
    this.#left = new DataView(this.#header.buffer).getUint32(4)
  }
}
