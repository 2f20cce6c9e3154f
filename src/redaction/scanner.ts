import type { Automaton } from './automaton.ts'
import type { Patterns } from './patterns.ts'
import { BYTES_JOIN, INCOMPLETE, NOTHING, SEPARATOR, unitFor, UnitReader } from './unit-reader.ts'

/** A stretch of a text that contains secrets; overlapping stretches are joined. */
export interface Span {
  /** The owner of the longest span that was joined into it. */
  owner: number
  length: number
  start: number
  end: number
}

/** A line break is ignored after this many units of a pattern: base64 is written in lines. */
const WRAPPED = 16

/** Two lines of bytes are joined after this many units of a pattern: shorter matches occur by chance. */
const MIN_JOINED = 3
const LETTER_B = 0x62

/** Characters that are read at a time. */
const CHUNK = 8192
/** Shorter texts are copied faster character by character. */
const SHORT = 64

/** The kinds of characters: plain characters are their own units, and idle characters begin no pattern. */
const OTHER = 0
const PLAIN = 1
const IDLE = 2
/** Idle while no pattern is open, else like OTHER. */
const IDLE_ALONE = 3
/** Mask that keeps the count of units a small integer; the count is only an index into the ring. */
const COUNT = 0x3fffffff

/** Reads a text, in pieces or at once, and finds the positions of secrets, relative to the beginning of the text. */
export class Scanner {
  /** In order, without overlaps. */
  spans: Span[] = []
  readonly #automaton: Automaton
  readonly #reader: UnitReader = new UnitReader()
  readonly #codes: Uint16Array<ArrayBuffer> = new Uint16Array(CHUNK)
  readonly #bytes: Buffer = Buffer.from(this.#codes.buffer)
  /** The kind of each ASCII character. */
  readonly #kinds: Uint8Array
  /** The starts of the last units: a ring. */
  readonly #starts: Float64Array
  readonly #mask: number
  #state = 0
  #count = 0
  /** The end of the last unit. */
  #end = 0
  /** A run of separators is one unit. The state of the current run. */
  #separators: 'none' | 'counted' | 'skipped' = 'none'
  /** The state before that run. */
  #stateBefore = 0
  /** The start of characters before the next unit that stand for no unit; -1 if there are none. */
  #from = -1

  constructor({ automaton, longest }: Patterns) {
    this.#automaton = automaton
    this.#kinds = Uint8Array.from({ length: 128 }, (_, code) => {
      if (isEscape(code)) return OTHER
      const unit = unitFor(code)
      if (automaton.step(0, unit) === 0) return unit === code && unit !== SEPARATOR ? IDLE : IDLE_ALONE
      return unit === code && unit !== SEPARATOR ? PLAIN : OTHER
    })
    const room = 2 ** Math.ceil(Math.log2(longest + 1))
    this.#starts = new Float64Array(room)
    this.#mask = room - 1
  }

  /** Prepares for another text. */
  reset(): void {
    if (this.spans.length > 0) this.spans = []
    this.#reader.reset()
    this.#state = 0
    this.#separators = 'none'
    this.#from = -1
  }

  /**
   * Reads the next piece of the text.
   * @param offset the position of the piece in the text.
   * @param isWhole true for the last piece.
   * @returns the number of characters read: the rest may be the beginning of an escape.
   */
  scan(text: string, offset: number, isWhole: boolean): number {
    for (let at = 0; ;) {
      const length = this.#load(text, at)
      const isLast = at + length === text.length
      at += this.#scanLoaded(length, offset + at, isWhole && isLast)
      if (isLast) return at
    }
  }

  /** Copies a chunk of a text, because reading single characters of a string takes longer. Returns its length. */
  #load(text: string, from: number): number {
    const length = Math.min(CHUNK, text.length - from)
    if (length > SHORT) this.#bytes.write(text.slice(from, from + length), 'utf16le')
    else for (let at = 0; at < length; at += 1) this.#codes[at] = text.charCodeAt(from + at)
    return length
  }

  #scanLoaded(length: number, offset: number, isWhole: boolean): number {
    const reader = this.#reader
    let at = 0
    for (;;) {
      if (this.#from === -1) at = this.#scanPlain(length, at, offset)
      if (at >= length) return at
      const unit = reader.read(this.#codes, length, at, isWhole, this.#separators !== 'none')
      if (unit === INCOMPLETE) return at
      if (this.#from === -1) this.#from = offset + at
      at = reader.end
      if (unit === BYTES_JOIN) this.#joinBytes()
      if (unit === NOTHING || unit === BYTES_JOIN) continue
      this.#takeUnit(unit, this.#from, offset + at)
      this.#from = -1
    }
  }

  /** Reads characters that stand for themselves, which are most of every text, in a fast loop. Returns the index after them. */
  #scanPlain(length: number, from: number, offset: number): number {
    const automaton = this.#automaton
    const codes = this.#codes
    const kinds = this.#kinds
    let state = this.#state
    let at = from
    if (this.#mayJoin && (codes[at] === LETTER_B || unitFor(codes[at] ?? 0) === SEPARATOR)) return at
    for (; at < length; at += 1) {
      const code = codes[at] ?? 0
      const kind = code < 128 ? (kinds[code] ?? OTHER) : isOwnUnit(code) ? PLAIN : OTHER
      if (state === 0 && kind >= IDLE) continue
      if (kind === OTHER || kind === IDLE_ALONE) break
      state = automaton.step(state, code)
      if (state !== 0) this.#note(state, offset + at, offset + at + 1)
    }
    if (at > from) this.#separators = 'none'
    this.#state = state
    return at
  }

  /** The first position at which an incomplete secret may begin; infinite if there is none. */
  get open(): number {
    const { start } = this.#openPart()
    return this.#from === -1 ? start : Math.min(start, this.#from)
  }

  /**
   * Ends a text that was cut: its longest suffix that is a prefix of a secret counts as a secret. A suffix of fewer units
   * than `minUnits` is ignored, because ordinary texts have such suffixes, too.
   * @param rest the text that {@link scan} left unread.
   */
  finish(rest: string, offset: number, minUnits: number): void {
    const end = offset + rest.length
    const open = [this.#findBeginning(offset, end)]
    if (rest !== '') {
      this.scan(rest, offset, true)
      open.push(this.#findBeginning(end, end))
    }
    for (const span of open) if (span.length >= minUnits) this.add(span)
  }

  /** Finds the secret that begins at the end of the text. It ends with the last unit, or with the text if characters are left over. */
  #findBeginning(read: number, to: number): Span {
    const { state, start } = this.#openPart()
    const end = read < to || this.#from !== -1 ? to : this.#end
    return { owner: this.#automaton.ownerAhead(state), length: this.#automaton.depth(state), start, end }
  }

  /** The part of a secret that the last units match, or matched before separators that may join two lines of bytes. */
  #openPart(): { readonly state: number; readonly start: number } {
    const automaton = this.#automaton
    const state = automaton.open(this.#state)
    const length = automaton.depth(state)
    const before = this.#mayJoin ? automaton.open(this.#stateBefore) : 0
    const lengthBefore = automaton.depth(before)
    if (lengthBefore <= length) return { state, start: this.#startOf(length) }
    return { state: before, start: this.#startOf(lengthBefore + (this.#separators === 'counted' ? 1 : 0)) }
  }

  /** Adds a span that does not begin before the last one. */
  add(span: Span): void {
    let { owner, length, start, end } = span
    for (let last = this.spans.at(-1); last !== undefined && start < last.end; last = this.spans.at(-1)) {
      if (last.length >= length) ({ owner, length } = last)
      start = Math.min(start, last.start)
      end = Math.max(end, last.end)
      this.spans.pop()
    }
    this.spans.push({ owner, length, start, end })
  }

  #takeUnit(unit: number, start: number, end: number): void {
    const automaton = this.#automaton
    if (unit !== SEPARATOR) this.#separators = 'none'
    else if (this.#separators === 'none') {
      this.#stateBefore = this.#state
      const skips = automaton.depth(this.#state) >= WRAPPED && !automaton.continues(this.#state, unit)
      this.#separators = skips ? 'skipped' : 'counted'
      if (skips) return
    } else {
      // The last separator of a run may belong to the following text.
      if (this.#separators === 'counted') this.#starts[(this.#count - 1) & this.#mask] = start
      return
    }
    this.#state = automaton.step(this.#state, unit)
    this.#note(this.#state, start, end)
  }

  /** True between separators after which the rest of a secret may follow. */
  get #mayJoin(): boolean {
    return this.#separators !== 'none' && this.#automaton.depth(this.#stateBefore) >= MIN_JOINED
  }

  /** Forgets the separators between two lines of bytes, unless the secret has one there. */
  #joinBytes(): void {
    const automaton = this.#automaton
    const isCounted = this.#separators === 'counted' && this.#mayJoin
    if (!isCounted || automaton.depth(this.#state) > automaton.depth(this.#stateBefore)) return
    this.#state = this.#stateBefore
    this.#count = (this.#count - 1) & COUNT
    this.#separators = 'skipped'
  }

  /** Notes the position of a unit, and the pattern that ends with it. */
  #note(state: number, start: number, end: number): void {
    this.#starts[this.#count & this.#mask] = start
    this.#end = end
    this.#count = (this.#count + 1) & COUNT
    const length = this.#automaton.findLength(state)
    if (length > 0) this.add({ owner: this.#automaton.owner(state), length, start: this.#startOf(length), end })
  }

  /** The start of the last `length` units. */
  #startOf(length: number): number {
    return length === 0 ? Number.POSITIVE_INFINITY : (this.#starts[(this.#count - length) & this.#mask] ?? 0)
  }
}

/** True for most characters of most writing systems: they are neither blanks nor surrogates. */

function isOwnUnit(code: number): boolean {
  return (code > 0xa0 && code < 0x1680) || (code > 0x3000 && code < 0xd800)
}

function isEscape(code: number): boolean {
  return '\\%&'.includes(String.fromCharCode(code))
}
