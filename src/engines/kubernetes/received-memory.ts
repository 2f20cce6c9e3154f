import type { Readable } from 'node:stream'
import { promptGarbageCollection } from '../../support/index.ts'

/** The number of the stream, in front of each message. */
const STREAM_BYTES = 1

/**
 * Frees the buffers of a WebSocket as soon as nobody needs them. V8 frees them late: with a flood, the host would grow by 64 MiB and more.
 */
export class ReceivedMemory {
  /** Chunks of the connection that may hold a part of an incomplete message. */
  readonly #chunks: Uint8Array[] = []
  #lent: Uint8Array | undefined

  /** @param connection of a WebSocket that emits each message while the chunk that completes it is read. */
  constructor(connection: Readable) {
    connection.prependListener('data', (chunk: Uint8Array) => this.#chunks.push(chunk))
  }

  /** Returns the bytes of a message without the number of its stream, in memory of their own. What came before the current chunk is freed. */
  own(message: Uint8Array): Uint8Array {
    const bytes = message.subarray(STREAM_BYTES)
    const isShared = this.#chunks.some(({ buffer }) => buffer === message.buffer)
    const piece = isShared ? copyOf(bytes) : bytes
    for (const chunk of this.#chunks.splice(0, this.#chunks.length - 1)) free(chunk)
    return piece
  }

  /** Leaves the chunks so far to V8, so that the list of an idle connection does not grow. Not freed: a fragment may need them. */
  forget(): void {
    this.#chunks.length = 0
  }

  /** Notes which piece the reader has. */
  lend(piece: Uint8Array | null): void {
    this.#lent = piece ?? undefined
  }

  /** Frees the piece that the reader had. */
  release(): void {
    if (this.#lent !== undefined && !free(this.#lent)) promptGarbageCollection(this.#lent)
    this.#lent = undefined
  }
}

function copyOf(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** Frees the memory of bytes that have it to themselves, or returns false: small buffers of Node share theirs. */
function free({ buffer, byteOffset, byteLength }: Uint8Array): boolean {
  const isWhole = byteOffset <= STREAM_BYTES && byteOffset + byteLength === buffer.byteLength
  if (isWhole && buffer instanceof ArrayBuffer) buffer.transfer(0)
  return isWhole
}
