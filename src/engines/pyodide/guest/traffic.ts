import { FDS, readExactly, readInput } from './wire.ts'

const HEAD_BYTES = 4

/**
 * The input and output on the descriptors of the script. Between two cells the host must know how many bytes the first one
 * wrote, and the rest of a message that it read in part must be dropped.
 */
export class Traffic {
  #written = [0, 0, 0]
  /** The received bytes of the length of a message. */
  #head: number[] = []
  /** The number of bytes of a message that have not been read yet. */
  #missing = 0

  noteWritten(fd: number, bytes: number): void {
    const at = fd - FDS.frames
    this.#written[at] = (this.#written[at] ?? 0) + bytes
  }

  /** The bytes that were written since the last call: frames, stdout, stderr. */
  takeWritten(): number[] {
    const written = this.#written
    this.#written = [0, 0, 0]
    return written
  }

  /** Waits for input of the script, and returns the number of bytes read. */
  read(into: Uint8Array, offset: number, length: number): number {
    const count = readInput(into, offset, length)
    this.#follow(into, offset, offset + count)
    return count
  }

  /** Drops the rest of a message that the script read in part. Returns false at the end of the input. */
  dropRest(): boolean {
    while (this.#head.length > 0 || this.#missing > 0) {
      const rest = readExactly(this.#head.length > 0 ? HEAD_BYTES - this.#head.length : this.#missing)
      if (rest === undefined) return false
      this.#follow(rest, 0, rest.length)
    }
    return true
  }

  #follow(bytes: Uint8Array, from: number, to: number): void {
    for (let at = from; at < to;) {
      if (this.#missing > 0) {
        const step = Math.min(this.#missing, to - at)
        this.#missing -= step
        at += step
        continue
      }
      this.#head.push((bytes[at] ?? 0) & 0xff) // Python's memory is an array of signed bytes
      at += 1
      if (this.#head.length < HEAD_BYTES) continue
      this.#missing = this.#head.reduceRight((sum, byte) => sum * 256 + byte, 0)
      this.#head = []
    }
  }
}
