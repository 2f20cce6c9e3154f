import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Channel } from './contract.ts'

/** Bytes of a key; the harness reads it from its channel before anything else. */
export const SEAL_KEY_BYTES = 32

const LENGTH_BYTES = 4
const HEADER_BYTES = LENGTH_BYTES + 16
const MAX_PIECE_BYTES = 65_536

/** The sequence numbers of the host's pieces begin here, so that none is valid as one of the harness. */
const FIRST_OF_HOST = 1n << 63n

/** A connection to the standard streams of a harness. */
export interface Attached {
  readonly channel: Channel
  /** The beginning of its stderr, and how the connection ended, for messages. */
  lastOutput(): string
  /** Settles when the connection has ended on either side. */
  readonly ended: Promise<void>
}

/**
 * Wraps a connection so that its channel passes only pieces with a valid tag (HMAC) of the harness: where a script can open
 * the broker's descriptors (gVisor), it could write frames of its own there. A piece without a valid tag ends the connection,
 * after the pieces before it were passed on. At most one incomplete piece is held.
 * @param bothWays adds tags to what is sent, too: a script could remove a part of it, so that the rest would be read as other
 * frames.
 */
export function unseal(attached: Attached, key: Uint8Array, bothWays: boolean = false): Attached {
  const { channel } = attached
  const opener = new Opener(key)
  const sealer = new Sealer(key)
  const pieces: Uint8Array[] = []
  let forged = false
  return {
    ...attached,
    lastOutput: () =>
      forged ? 'something in the sandbox wrote to the channel beside the harness' : attached.lastOutput(),
    channel: {
      close: () => channel.close(),
      send: (bytes) => channel.send(bothWays ? sealer.seal(bytes) : bytes),
      async receive() {
        while (pieces.length === 0 && !forged) {
          const chunk = await channel.receive()
          if (chunk === null) return null
          try {
            for (const piece of opener.push(chunk)) pieces.push(piece)
          } catch {
            forged = true
            channel.close()
          }
          channel.release?.() // the pieces are copies
        }
        return pieces.shift() ?? null
      },
    },
  }
}

/** Writes the format that `harness/sandglass_harness/broker/seal.py` reads. */
export class Sealer {
  readonly #key: Uint8Array
  #count = FIRST_OF_HOST

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** Returns the bytes as pieces with tags. They must be sent in the order of the calls. */
  seal(bytes: Uint8Array): Uint8Array {
    const pieces: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += MAX_PIECE_BYTES) {
      const piece = bytes.subarray(at, at + MAX_PIECE_BYTES)
      const length = Buffer.alloc(LENGTH_BYTES)
      length.writeUInt32BE(piece.length)
      pieces.push(length, computeTag(this.#key, this.#count, piece), piece)
      this.#count += 1n
    }
    return Buffer.concat(pieces)
  }
}

/** Reads the format that `harness/sandglass_harness/broker/seal.py` writes. */
export class Opener {
  readonly #key: Uint8Array
  #held: Buffer = Buffer.alloc(0)
  #count = 0n

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /**
   * Yields the pieces that `chunk` completes.
   * @throws Error at a piece with a wrong tag.
   */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    const data = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk])
    let at = 0
    while (data.length - at >= HEADER_BYTES) {
      const length = data.readUInt32BE(at)
      if (length > MAX_PIECE_BYTES)
        throw new Error(`a piece of ${length} bytes is longer than the limit of ${MAX_PIECE_BYTES}`)
      const end = at + HEADER_BYTES + length
      if (end > data.length) break
      const piece = data.subarray(at + HEADER_BYTES, end)
      if (!timingSafeEqual(data.subarray(at + LENGTH_BYTES, at + HEADER_BYTES), this.#computeTag(piece))) {
        throw new Error('a piece does not have a valid tag of the harness')
      }
      yield piece
      at = end
    }
    this.#held = data.subarray(at)
  }

  #computeTag(piece: Uint8Array): Uint8Array {
    const tag = computeTag(this.#key, this.#count, piece)
    this.#count += 1n
    return tag
  }
}

function computeTag(key: Uint8Array, count: bigint, piece: Uint8Array): Uint8Array {
  const number = Buffer.alloc(8)
  number.writeBigUInt64BE(count)
  const tag = createHmac('sha256', key).update(number).update(piece).digest()
  return tag.subarray(0, HEADER_BYTES - LENGTH_BYTES)
}
