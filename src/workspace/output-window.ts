import { ByteRing } from './byte-ring.ts'

/** The marker between the head and the tail of a truncated text. */
export const TRUNCATED_MARKER = '\n...[output truncated]...\n'

/** A text that was cut to a size. */
export interface WindowedText {
  /** Bytes that are not UTF-8 are replaced. */
  readonly text: string
  readonly truncated: boolean
  /** The bytes of the whole stream, before the cut. */
  readonly totalBytes: number
}

/** Keeps the head and the tail of a stream of bytes, in at most twice their size, however long the stream is. */
export class OutputWindow {
  readonly #maxBytes: number
  readonly #headBytes: number
  readonly #tailBytes: number
  readonly #head: ByteRing
  readonly #tail: ByteRing
  #total = 0

  /** @param maxBytes of the text, the marker included. */
  constructor(maxBytes: number) {
    const room = maxBytes - TRUNCATED_MARKER.length
    this.#maxBytes = maxBytes
    this.#headBytes = room <= 0 ? maxBytes : Math.ceil(room / 2)
    this.#tailBytes = room <= 0 ? 0 : Math.floor(room / 2)
    // One byte more shows whether the head ends, and the tail begins, inside a character.
    this.#head = new ByteRing(maxBytes + 1)
    this.#tail = new ByteRing(this.#tailBytes + 1)
  }

  /** All bytes that were received. */
  get totalBytes(): number {
    return this.#total
  }

  push(bytes: Uint8Array): void {
    this.#total += bytes.length
    const room = this.#maxBytes + 1 - this.#head.end
    if (room > 0) this.#head.push(bytes.subarray(0, room))
    this.#tail.push(bytes)
  }

  result(): WindowedText {
    const totalBytes = this.#total
    if (totalBytes <= this.#maxBytes) {
      return { text: this.#head.slice(0, totalBytes).toString('utf8'), truncated: false, totalBytes }
    }
    const head = utf8Prefix(this.#head.slice(0, this.#maxBytes + 1), this.#headBytes).toString('utf8')
    if (this.#tailBytes === 0) return { text: head, truncated: true, totalBytes }
    const tail = utf8Suffix(this.#tail.slice(0, totalBytes), this.#tailBytes).toString('utf8')
    return { text: head + TRUNCATED_MARKER + tail, truncated: true, totalBytes }
  }
}

/** Truncates a text to a size: its head and its tail, cut between characters. */
export function windowOutput(bytes: Uint8Array, maxBytes: number): WindowedText {
  const window = new OutputWindow(maxBytes)
  window.push(bytes)
  return window.result()
}

/** Returns the longest prefix of at most `max` bytes that does not end inside a character. */
export function utf8Prefix(bytes: Buffer, max: number): Buffer {
  if (bytes.length <= max) return bytes
  let end = max
  // A character has at most four bytes: a longer sequence is not UTF-8.
  for (let steps = 0; steps < 3 && end > 0 && isContinuation(bytes[end]); steps += 1) end -= 1
  return bytes.subarray(0, isContinuation(bytes[end]) ? max : end)
}

/** Returns the longest suffix of at most `max` bytes that does not begin inside a character. */
export function utf8Suffix(bytes: Buffer, max: number): Buffer {
  let start = Math.max(0, bytes.length - max)
  if (start === 0) return bytes
  for (let steps = 0; steps < 3 && start < bytes.length && isContinuation(bytes[start]); steps += 1) start += 1
  return bytes.subarray(start)
}

/** Returns the number of bytes at the end that begin an incomplete character, 0 to 3. */
export function unfinishedCharacter(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    const needed = byte >= 0xf0 && byte < 0xf8 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
    return byte < 0xf8 && needed > back ? back : 0
  }
  return 0
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
