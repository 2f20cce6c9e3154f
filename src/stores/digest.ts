import { createHash } from 'node:crypto'
import { digestInThread, type ThreadDigest } from './digest-thread.ts'

/** Content above this size is hashed in a worker thread, while the host's thread transfers it. */
const LARGE_BYTES = 4 * 1024 * 1024

/** The SHA-256 of content that arrives in pieces. A source may reuse the memory of a piece after {@link take}. */
export class Digest implements Disposable {
  readonly #hash = createHash('sha256')
  #thread: ThreadDigest | undefined
  #size = 0
  /** Copies of the pieces of small content. Undefined once the content is large. */
  #small: Uint8Array[] | undefined = []

  /**
   * Takes a piece, and yields copies of the content so far that can be written. Each copy stays valid until the second one after it
   * is requested.
   */
  async *take(piece: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
    this.#size += piece.byteLength
    const small = this.#small
    if (small !== undefined && this.#size <= LARGE_BYTES) {
      small.push(new Uint8Array(piece))
      return
    }
    if (small !== undefined) {
      this.#small = undefined
      this.#thread = await digestInThread()
      for (const one of small) yield* this.#hashPiece(one)
    }
    yield* this.#hashPiece(piece)
  }

  /** Yields the content that {@link take} has not yielded, after the last piece. */
  async *rest(): AsyncGenerator<Uint8Array, void, void> {
    if (this.#thread !== undefined) yield this.#thread.finish()
    else if (this.#small !== undefined) yield* this.#hashPiece(Buffer.concat(this.#small))
  }

  /** The digest in hexadecimal, after {@link rest}. */
  async end(): Promise<string> {
    return this.#thread === undefined ? this.#hash.digest('hex') : this.#thread.digest()
  }

  /** Releases the thread. The caller must not use the given pieces afterwards. */
  [Symbol.dispose](): void {
    this.#thread?.[Symbol.dispose]()
  }

  async *#hashPiece(piece: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
    if (this.#thread !== undefined) {
      yield* this.#thread.take(piece)
      return
    }
    this.#hash.update(piece)
    yield new Uint8Array(piece)
  }
}

/** A queue of pieces that returns them in order once they are hashed. */
export class HashedPieces implements Disposable {
  readonly #hash = createHash('sha256')
  #thread: ThreadDigest | undefined
  #size = 0
  /** Pieces that the thread does not have. Those of small content are not hashed before its end. */
  readonly #here: Uint8Array<ArrayBuffer>[] = []
  #isSmall = true
  #inThread = 0

  /** The number of pieces that {@link shift} can return: 0 until the content is large or has ended. */
  get length(): number {
    return this.#inThread + (this.#isSmall ? 0 : this.#here.length)
  }

  /** Appends a piece. Nothing else may use its memory. */
  async push(piece: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#size += piece.byteLength
    this.#here.push(piece)
    if (this.#size <= LARGE_BYTES) return
    if (this.#isSmall) {
      this.#thread = await digestInThread()
      if (this.#thread === undefined) this.#hashAll()
    } else if (this.#thread === undefined) this.#hash.update(piece)
    this.#isSmall = false
    if (this.#thread === undefined) return
    this.#inThread += this.#here.length
    for (const one of this.#here.splice(0)) this.#thread.pass(one)
  }

  /** Returns the next piece once it is hashed. @throws SandglassError `store_unusable` if the thread has ended. */
  async shift(): Promise<Uint8Array | undefined> {
    if (this.#inThread === 0) return this.#here.shift()
    this.#inThread -= 1
    return this.#thread?.takePassed()
  }

  /** Ends the content. Returns the digest in hexadecimal. */
  async end(): Promise<string> {
    if (this.#thread !== undefined) {
      this.#thread.finish()
      return this.#thread.digest()
    }
    if (this.#isSmall) this.#hashAll()
    this.#isSmall = false
    return this.#hash.digest('hex')
  }

  [Symbol.dispose](): void {
    this.#thread?.[Symbol.dispose]()
  }

  #hashAll(): void {
    for (const one of this.#here) this.#hash.update(one)
  }
}
