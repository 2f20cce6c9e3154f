import { createHash } from 'node:crypto'
import { digestInThread, type ThreadDigest } from './digest-thread.ts'

/** A thread hashes larger content, while the host's thread moves it. */
const LARGE_BYTES = 4 * 1024 * 1024

/** The SHA-256 of content that comes in pieces. A source may use the memory of a piece again once it was taken. */
export class Digest implements Disposable {
  readonly #hash = createHash('sha256')
  #thread: ThreadDigest | undefined
  #size = 0
  /** Copies of the pieces of small content. Undefined once the content is large. */
  #small: Uint8Array[] | undefined = []

  /** Takes a piece of content that nobody needs from here. */
  async update(piece: Uint8Array): Promise<void> {
    for await (const _ of this.take(piece)) continue
  }

  /**
   * Takes a piece, and gives what can be written of the content so far, in pieces of its own. Each of them stays as it is until the one
   * after the next is asked for.
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
      for (const one of small) yield* this.#hashed(one)
    }
    yield* this.#hashed(piece)
  }

  /** The content that {@link take} has not given yet, after the last piece. */
  async *rest(): AsyncGenerator<Uint8Array, void, void> {
    if (this.#thread !== undefined) yield this.#thread.finish()
    else if (this.#small !== undefined) yield* this.#hashed(Buffer.concat(this.#small))
  }

  /** The digest in hexadecimal, once the rest was given. */
  async end(): Promise<string> {
    return this.#thread === undefined ? this.#hash.digest('hex') : this.#thread.digest()
  }

  /** Nothing that was given may be needed any more. */
  [Symbol.dispose](): void {
    this.#thread?.[Symbol.dispose]()
  }

  async *#hashed(piece: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
    if (this.#thread !== undefined) {
      yield* this.#thread.take(piece)
      return
    }
    this.#hash.update(piece)
    yield new Uint8Array(piece)
  }
}
