import { createHash } from 'node:crypto'
import { digestInThread, type ThreadDigest } from './digest-thread.ts'

/** A thread hashes larger content, while the host's thread moves it. */
const LARGE_BYTES = 4 * 1024 * 1024

/** The SHA-256 of content that comes in pieces. */
export class Digest implements Disposable {
  readonly #hash = createHash('sha256')
  #thread: ThreadDigest | undefined
  #size = 0
  /** Copies of the pieces of small content, because a source may use its buffer again. Undefined once the content is large. */
  #small: Uint8Array[] | undefined = []

  async update(piece: Uint8Array): Promise<void> {
    this.#size += piece.byteLength
    if (this.#size > LARGE_BYTES) await this.#leaveSmall()
    if (this.#small === undefined) await this.#add(piece)
    else this.#small.push(new Uint8Array(piece))
  }

  /** The digest in hexadecimal. */
  async end(): Promise<string> {
    if (this.#thread !== undefined) return this.#thread.end()
    for (const piece of this.#small ?? []) this.#hash.update(piece)
    return this.#hash.digest('hex')
  }

  [Symbol.dispose](): void {
    this.#thread?.[Symbol.dispose]()
  }

  async #leaveSmall(): Promise<void> {
    const pieces = this.#small
    if (pieces === undefined) return
    this.#small = undefined
    this.#thread = await digestInThread()
    for (const piece of pieces) await this.#add(piece)
  }

  async #add(piece: Uint8Array): Promise<void> {
    if (this.#thread === undefined) this.#hash.update(piece)
    else await this.#thread.update(piece)
  }
}
