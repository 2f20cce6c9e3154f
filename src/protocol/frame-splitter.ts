import { MAX_PAYLOAD_BYTES } from './host-activity-frames.ts'
import { LineTooLongError } from './lines.ts'

/** One frame: its line without `\n` and without the announcement of a payload, and the payload, if it has one. */
export interface SplitFrame {
  readonly line: Buffer
  readonly payload: Buffer | undefined
}

/** The peer announces a payload in an invalid form. The rest of the stream cannot be read. */
export class FramingError extends Error {
  override readonly name = 'FramingError'
}

const HEAD = '{"payload":'
const ANNOUNCEMENT = /^\{"payload":(0|[1-9]\d{0,4}),/
/** The longest announcement: head, five digits and a comma. */
const ANNOUNCEMENT_BYTES = HEAD.length + 6
/** A line in front of a payload holds a type, a stream and an execution id, whose characters may each be escaped. */
const MAX_HEADER_BYTES = 4096
const FIRST_CAPACITY = 4096

/**
 * Splits the byte stream of a workspace into lines and payloads. Takes linear time for chunks of any size, and keeps at most
 * one unfinished line or one unfinished payload.
 */
export class FrameSplitter {
  /** The bound of a line without a payload. A workspace raises it for a run that may send more. */
  maxLineBytes: number
  // One buffer that doubles: a peer that sends single bytes would grow a list of chunks to hundreds of times the bound.
  #pending: Buffer = Buffer.alloc(0)
  #length = 0
  /** The line whose payload is being read, and the size of the payload. */
  #open: { readonly line: Buffer; readonly size: number } | undefined

  constructor(maxLineBytes: number) {
    this.maxLineBytes = maxLineBytes
  }

  /** Bytes of an unfinished line or payload that are held. */
  get pendingBytes(): number {
    return this.#length
  }

  /**
   * Adds a chunk and yields the frames that it completes. They are valid until the chunk is overwritten.
   * @throws LineTooLongError or FramingError before more than the bound is kept.
   */
  *push(chunk: Uint8Array): Generator<SplitFrame, void, void> {
    let start = 0
    while (start < chunk.length || this.#open?.size === 0) {
      if (this.#open !== undefined) {
        const end = start + this.#open.size - this.#length
        if (end > chunk.length) break
        const { line } = this.#open
        this.#open = undefined
        yield { line, payload: this.#finish(chunk.subarray(start, end)) }
        start = end
        continue
      }
      const newline = chunk.indexOf(0x0a, start)
      if (newline === -1) break
      this.#refuseLong(newline - start, chunk, start)
      const line = this.#finish(chunk.subarray(start, newline))
      start = newline + 1
      const announced = sizeOf(line)
      if (announced === undefined) yield { line, payload: undefined }
      // Copied, because the payload may arrive with a later chunk, when this one may have been overwritten.
      else this.#open = { line: Buffer.from(withoutAnnouncement(line)), size: announced }
    }
    if (start >= chunk.length) return
    if (this.#open === undefined) this.#refuseLong(chunk.length - start, chunk, start)
    this.#hold(chunk.subarray(start))
  }

  /** @throws LineTooLongError for a line that has become too long. */
  #refuseLong(more: number, chunk: Uint8Array, start: number): void {
    const length = this.#length + more
    if (length <= MAX_HEADER_BYTES) return
    const max = this.#announces(chunk, start) ? MAX_HEADER_BYTES : this.maxLineBytes
    if (length <= max) return
    this.#forget()
    throw new LineTooLongError(`a line of more than ${max} bytes`)
  }

  /** True if the unfinished line, which ends with the chunk, begins like one with a payload. */
  #announces(chunk: Uint8Array, start: number): boolean {
    const held = this.#pending.subarray(0, Math.min(this.#length, HEAD.length))
    const rest = chunk.subarray(start, start + HEAD.length - held.length)
    return Buffer.concat([held, rest]).toString('latin1') === HEAD
  }

  #finish(tail: Uint8Array): Buffer {
    if (this.#length === 0) return Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength)
    this.#hold(tail)
    const bytes = this.#pending.subarray(0, this.#length)
    this.#forget()
    return bytes
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#length + bytes.length
    if (length > this.#pending.length) {
      const wanted = Math.max(length, this.#pending.length * 2, this.#open?.size ?? FIRST_CAPACITY)
      const grown = Buffer.allocUnsafeSlow(wanted)
      this.#pending.copy(grown, 0, 0, this.#length)
      this.#pending = grown
    }
    this.#pending.set(bytes, this.#length)
    this.#length = length
  }

  #forget(): void {
    this.#pending = Buffer.alloc(0)
    this.#length = 0
  }
}

/** Maximum bytes of a frame with its payload. */
export const MAX_FRAME_BYTES: number = MAX_HEADER_BYTES + MAX_PAYLOAD_BYTES

/**
 * Encodes a frame with its payload.
 * @param into a buffer to write the frame to, so that a transfer does not allocate one for each piece.
 * @throws RangeError for more than {@link MAX_PAYLOAD_BYTES}.
 */
export function encodePayload(frame: object, bytes: Uint8Array, into?: Buffer): Uint8Array {
  if (bytes.length > MAX_PAYLOAD_BYTES)
    throw new RangeError(`a payload of ${bytes.length} bytes; at most ${MAX_PAYLOAD_BYTES}`)
  const header = `${HEAD}${bytes.length},${JSON.stringify(frame).slice(1)}\n`
  if (into === undefined) return Buffer.concat([Buffer.from(header), bytes])
  const start = into.write(header)
  into.set(bytes, start)
  return into.subarray(0, start + bytes.length)
}

/** The size of the payload that a line announces, or undefined. @throws FramingError for an invalid announcement. */
function sizeOf(line: Buffer): number | undefined {
  const text = line.toString('latin1', 0, ANNOUNCEMENT_BYTES)
  if (!text.startsWith(HEAD)) return undefined
  const size = Number(ANNOUNCEMENT.exec(text)?.[1] ?? Number.NaN)
  if (size <= MAX_PAYLOAD_BYTES) return size
  throw new FramingError(`a payload is announced as ${JSON.stringify(text)}`)
}

function withoutAnnouncement(line: Buffer): Buffer {
  const comma = line.indexOf(0x2c, HEAD.length)
  return Buffer.concat([Buffer.from('{'), line.subarray(comma + 1)])
}
