const FIRST_CAPACITY = 4096

/** The last bytes of a stream, up to a capacity. Positions count from the start of the stream. */
export class ByteRing {
  readonly #capacity: number
  // Doubles up to the capacity, because most streams are short.
  #buffer: Buffer
  #end = 0
  #held = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#buffer = Buffer.alloc(Math.min(capacity, FIRST_CAPACITY))
  }

  /** The position of the first byte that is held. */
  get start(): number {
    return this.#end - this.#held
  }

  /** The position after the last byte. */
  get end(): number {
    return this.#end
  }

  push(given: Uint8Array): void {
    const bytes = given.length > this.#capacity ? given.subarray(given.length - this.#capacity) : given
    this.#end += given.length - bytes.length
    this.#held = given.length === bytes.length ? this.#held : 0
    this.#grow(this.#held + bytes.length)
    const size = this.#buffer.length
    const at = this.#end % size
    const first = bytes.subarray(0, size - at)
    this.#buffer.set(first, at)
    this.#buffer.set(bytes.subarray(first.length), 0)
    this.#end += bytes.length
    this.#held = Math.min(size, this.#held + bytes.length)
  }

  /** Copies the bytes between two positions, without those that are no longer held. */
  slice(from: number, to: number): Buffer {
    const [first, last] = [Math.max(from, this.start), Math.min(to, this.#end)]
    if (first >= last) return Buffer.alloc(0)
    const size = this.#buffer.length
    const at = first % size
    const length = last - first
    if (at + length <= size) return Buffer.from(this.#buffer.subarray(at, at + length))
    return Buffer.concat([this.#buffer.subarray(at), this.#buffer.subarray(0, at + length - size)])
  }

  /** Returns the byte at a position that is held. */
  at(position: number): number {
    return this.#buffer[position % this.#buffer.length] ?? 0
  }

  #grow(wanted: number): void {
    const size = this.#buffer.length
    if (wanted <= size || size === this.#capacity) return
    const held = this.slice(this.start, this.#end)
    const grown = Buffer.alloc(Math.min(this.#capacity, Math.max(wanted, size * 2)))
    const at = this.start % grown.length
    const first = held.subarray(0, grown.length - at)
    grown.set(first, at)
    grown.set(held.subarray(first.length), 0)
    this.#buffer = grown
  }
}
