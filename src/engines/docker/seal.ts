import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Attached } from './managed-container.ts'

/** Bytes of a key; the harness reads it from its channel before anything else. */
export const SEAL_KEY_BYTES = 32

const LENGTH_BYTES = 4
const HEADER_BYTES = LENGTH_BYTES + 16
const MAX_PIECE_BYTES = 65_536

/**
 * Makes a connection whose channel passes only data that the harness sealed with a key: where a script can open the
 * broker's descriptors (gVisor), it could write frames of its own there. Unsealed data ends the connection, after the data
 * before it was passed on. At most one unfinished piece is held.
 */
export function unseal(attached: Attached, key: Uint8Array): Attached {
  const { channel } = attached
  const opener = new Opener(key)
  const pieces: Uint8Array[] = []
  let forged = false
  return {
    ...attached,
    lastOutput: () =>
      forged ? 'something in the sandbox wrote to the channel beside the harness' : attached.lastOutput(),
    channel: {
      ...channel,
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
        }
        return pieces.shift() ?? null
      },
    },
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
   * The pieces that `chunk` completes.
   * @throws Error at one with a wrong seal.
   */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    const data = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk])
    let at = 0
    while (data.length - at >= HEADER_BYTES) {
      const length = data.readUInt32BE(at)
      if (length > MAX_PIECE_BYTES) throw new Error('a piece is longer than any of the harness')
      const end = at + HEADER_BYTES + length
      if (end > data.length) break
      const piece = data.subarray(at + HEADER_BYTES, end)
      if (!timingSafeEqual(data.subarray(at + LENGTH_BYTES, at + HEADER_BYTES), this.#markOf(piece))) {
        throw new Error('a piece does not have the mark of the harness')
      }
      yield piece
      at = end
    }
    this.#held = data.subarray(at)
  }

  #markOf(piece: Uint8Array): Uint8Array {
    const number = Buffer.alloc(8)
    number.writeBigUInt64BE(this.#count)
    this.#count += 1n
    const mark = createHmac('sha256', this.#key).update(number).update(piece).digest()
    return mark.subarray(0, HEADER_BYTES - LENGTH_BYTES)
  }
}
