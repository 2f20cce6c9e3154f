import type { SandglassError } from '../errors/index.ts'
import { ByteRing } from './byte-ring.ts'
import { checkWhole, invalid } from './failures.ts'
import { unfinishedCharacter } from './output-window.ts'
import type { ProgramOutput } from './program-options.ts'

/** A part of a program's output as text: stdout and stderr in the order of arrival. */
export interface ProgramText {
  /** `\r\n` is `\n`; bytes that are not UTF-8 are replaced. */
  readonly text: string
  /** The position of the text in the output, in bytes from its beginning. */
  readonly offset: number
  /** The position after it, at which the next `poll` continues. */
  readonly nextOffset: number
  /** Requested bytes before `offset` that are no longer kept. */
  readonly dropped: number
}

/** Options of {@link Program.poll}. */
export interface PollOptions {
  /** Bytes of output to return. Default 65,536, at least 16. */
  readonly maxBytes?: number
  /** Milliseconds to wait for a first byte, or for the end of the program. Default 0. */
  readonly waitMs?: number
  /** Continues until no output came for this many milliseconds, for at most ten times as long. Default 0. */
  readonly settleMs?: number
}

/** Options of {@link Program.log}. */
export interface LogOptions {
  /** Default: the first byte that is kept. */
  readonly offset?: number
  readonly maxBytes?: number
}

type Stream = ProgramOutput['stream']

const MAX_TEXT_BYTES = 64 * 1024
const MAX_PIECE_BYTES = 64 * 1024
const MAX_WAIT_MS = 3_600_000
const MAX_SETTLES = 10
/** Marks of smaller pieces are merged: for single bytes, they would take more memory than the output. */
const MARK_BYTES = 4096
const STDERR = 1
const [CR, LF] = [0x0d, 0x0a]

/**
 * The output of a program: its last bytes, a cursor, and a reader. Without a reader the program never waits, and the oldest
 * bytes are dropped. With a reader no byte is dropped, and the program waits for it.
 */
export class ProgramLog {
  readonly #bytes: ByteRing
  /** The stream of each byte. */
  readonly #streams: ByteRing
  readonly #credit: (stream: Stream, bytes: number) => void
  /** The beginning of a character that the next piece of the stream completes. */
  readonly #held: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
  /** Bytes to credit, by stream, when the reader has passed a position. */
  #marks: { stream: Stream; end: number; bytes: number }[] = []
  #cursor = 0
  #readAt: number | undefined
  #end: { readonly error?: SandglassError } | undefined
  #change: PromiseWithResolvers<void> | undefined

  constructor(capacity: number, credit: (stream: Stream, bytes: number) => void) {
    this.#bytes = new ByteRing(capacity)
    this.#streams = new ByteRing(capacity)
    this.#credit = credit
  }

  /** @param received the number of bytes that the sandbox sent; redaction changes their number. */
  push(stream: Stream, given: Uint8Array, received: number): void {
    const held = this.#held[stream]
    const whole = held.length === 0 ? Buffer.from(given) : Buffer.concat([held, given])
    const cut = whole.length - unfinishedCharacter(whole)
    this.#held[stream] = whole.subarray(cut)
    this.#append(stream, whole.subarray(0, cut), received)
  }

  /** Reports the end of the output. */
  close(error?: SandglassError): void {
    if (this.#end !== undefined) return
    for (const stream of ['stdout', 'stderr'] as const) this.#append(stream, this.#held[stream], 0)
    this.#end = error === undefined ? {} : { error }
    this.#wake()
  }

  /** Returns the output since the last call, and moves the cursor. */
  async poll({ maxBytes = MAX_TEXT_BYTES, waitMs = 0, settleMs = 0 }: PollOptions = {}): Promise<ProgramText> {
    const max = checkWhole('maxBytes', maxBytes, 16, Number.MAX_SAFE_INTEGER)
    await this.#waitFor(
      checkWhole('waitMs', waitMs, 0, MAX_WAIT_MS),
      () => this.#textFrom(this.#cursor, max).text !== '',
    )
    checkWhole('settleMs', settleMs, 0, MAX_WAIT_MS)
    const settled = performance.now() + settleMs * MAX_SETTLES
    for (let seen = -1; seen !== this.#bytes.end && settleMs > 0 && performance.now() < settled;) {
      seen = this.#bytes.end
      if (seen - this.#cursor >= max) break
      await this.#waitFor(settleMs, () => this.#bytes.end !== seen)
    }
    const text = this.#textFrom(this.#cursor, max)
    this.#cursor = text.nextOffset
    return text
  }

  /** Returns the kept output without moving the cursor. */
  look({ offset, maxBytes = Number.MAX_SAFE_INTEGER }: LogOptions = {}): ProgramText {
    const from = offset === undefined ? this.#bytes.start : checkWhole('offset', offset, 0, Number.MAX_SAFE_INTEGER)
    return this.#textFrom(from, checkWhole('maxBytes', maxBytes, 16, Number.MAX_SAFE_INTEGER))
  }

  /** Reads every byte from the first one that is kept. One reader at a time. */
  async *read(): AsyncGenerator<ProgramOutput, void, void> {
    if (this.#readAt !== undefined)
      throw invalid('output', 'another reader is reading it; the output has one reader at a time')
    this.#readAt = this.#bytes.start
    try {
      for (;;) {
        const change = this.#nextChange()
        const piece = this.#nextPiece(this.#readAt)
        if (piece !== undefined) {
          yield piece
          this.#readAt += piece.bytes.length
          this.#pass(this.#readAt)
        } else if (this.#end === undefined) {
          await change
        } else if (this.#end.error === undefined) {
          return
        } else {
          throw this.#end.error
        }
      }
    } finally {
      this.#readAt = undefined
      this.#pass(Number.POSITIVE_INFINITY)
    }
  }

  #append(stream: Stream, bytes: Buffer, received: number): void {
    this.#bytes.push(bytes)
    this.#streams.push(Buffer.alloc(bytes.length, stream === 'stderr' ? STDERR : 0))
    if (this.#readAt === undefined) this.#credit(stream, received)
    else this.#mark(stream, received)
    this.#wake()
  }

  #mark(stream: Stream, bytes: number): void {
    const { end } = this.#bytes
    const last = this.#marks.findLast((mark) => mark.stream === stream)
    if (last === undefined || last.bytes + bytes > MARK_BYTES || last !== this.#marks.at(-1))
      this.#marks.push({ stream, end, bytes })
    else Object.assign(last, { end, bytes: last.bytes + bytes })
  }

  /** Credits the bytes up to a position that the reader has passed. */
  #pass(position: number): void {
    const passed = this.#marks.findIndex(({ end }) => end > position)
    const gone = this.#marks.splice(0, passed === -1 ? this.#marks.length : passed)
    for (const { stream, bytes } of gone) this.#credit(stream, bytes)
  }

  #nextPiece(at: number): ProgramOutput | undefined {
    const { start, end } = this.#bytes
    if (at < start) throw invalid('maxLogBytes', 'output was dropped before it could be read; raise maxLogBytes')
    if (at >= end) return undefined
    const stream = this.#streams.at(at)
    let to = at + 1
    while (to < end && to - at < MAX_PIECE_BYTES && this.#streams.at(to) === stream) to += 1
    return { stream: stream === STDERR ? 'stderr' : 'stdout', bytes: this.#bytes.slice(at, to) }
  }

  #textFrom(wanted: number, maxBytes: number): ProgramText {
    const { start, end } = this.#bytes
    const from = Math.min(this.#beginOfCharacter(Math.max(wanted, start), start), end)
    let to = Math.min(end, from + maxBytes)
    to -= unfinishedCharacter(this.#bytes.slice(Math.max(from, to - 3), to)) * (to < end ? 1 : 0)
    // A line break of two bytes is not split: the second byte may still arrive.
    if (to > from && this.#bytes.at(to - 1) === CR && (to < end ? this.#bytes.at(to) === LF : this.#end === undefined))
      to -= 1
    const text = this.#bytes.slice(from, to).toString('utf8').replaceAll('\r\n', '\n')
    return { text, offset: from, nextOffset: Math.max(from, to), dropped: Math.max(0, from - wanted) }
  }

  /** Moves to the first whole character: the kept bytes may begin inside one. */
  #beginOfCharacter(from: number, start: number): number {
    if (start === 0 || from > start) return from
    let at = from
    while (at < this.#bytes.end && at - from < 3 && (this.#bytes.at(at) & 0xc0) === 0x80) at += 1
    return at
  }

  async #waitFor(ms: number, isThere: () => boolean): Promise<void> {
    const until = performance.now() + ms
    for (;;) {
      const left = until - performance.now()
      if (left <= 0 || this.#end !== undefined || isThere()) return
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, Math.ceil(left))
      await Promise.race([this.#nextChange(), late])
      clearTimeout(timer)
    }
  }

  #nextChange(): Promise<void> {
    this.#change ??= Promise.withResolvers<void>()
    return this.#change.promise
  }

  #wake(): void {
    this.#change?.resolve()
    this.#change = undefined
  }
}
