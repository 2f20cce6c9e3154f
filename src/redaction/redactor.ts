import { setImmediate } from 'node:timers/promises'
import { type Cuts, findEndOfSecret, splitAtGaps, type Stretch } from './cuts.ts'
import { markerOf, MIN_LENGTH, type Patterns, patternsOf } from './patterns.ts'
import { Scanner, type Span } from './scanner.ts'

/** Bytes of a file that are searched at a time. */
const SEARCH_BYTES = 64 * 1024
/** Characters of a long text that are read in one turn of the event loop. */
const TURN_CHARS = 1024 * 1024
/** Characters of a text that are searched and redacted at a time. */
const PIECE_CHARS = 64 * 1024
/** Number of parts that are joined at a time: a string that grows by `+` keeps an object for each part, which takes many times its size. */
const JOINED_PARTS = 2048

/**
 * Replaces the values of secrets by `[redacted:NAME]` in all text that leaves a run: plain, with any escapes that
 * {@link UnitReader} reads, in hexadecimal, and in base64, also within longer data. Numbers are not searched, and a
 * script that encodes a value in another way leaks it: this guards against accidents, not against malice. At a cut of a text,
 * a piece of a value counts as the value.
 */
export class Redactor {
  /** Names of secrets that are too short to search for. */
  readonly tooShort: readonly string[]
  /** Every marker that a text may contain. */
  readonly markers: readonly string[]
  readonly #patterns: Patterns
  #scanner: Scanner | undefined

  /** @param secrets values by name; if objects have different values for a name, all of them are redacted. */
  constructor(...secrets: readonly Readonly<Record<string, string>>[]) {
    const { patterns, tooShort } = patternsOf(secrets)
    this.#patterns = patterns
    this.tooShort = tooShort
    this.markers = patterns.names.map(markerOf)
  }

  /**
   * Redacts a text. Gaps that the harness left in it count as cuts.
   * @param cuts further ends at which the text may have been cut.
   */
  text(text: string, cuts: Cuts = {}): string {
    if (text.length < MIN_LENGTH || this.#isIdle) return text
    const stretches = splitAtGaps(text, cuts)
    const [only] = stretches
    if (stretches.length === 1 && text.length > PIECE_CHARS && only?.start !== true) {
      return this.#inPieces(text, only?.end === true)
    }
    const spans =
      stretches.length === 1 && only !== undefined
        ? this.#findIn(text, only)
        : stretches.flatMap((stretch) => this.#findIn(text, stretch))
    return spans.length === 0 ? text : replaceSpans(text, spans, this.#patterns.names)
  }

  /** Redacts a text of some MiB as {@link text} does, and lets the event loop run in between. */
  async longText(text: string): Promise<string> {
    if (text.length <= TURN_CHARS || this.#isIdle) return this.text(text)
    const scanner = new Scanner(this.#patterns)
    for (let read = 0, to = TURN_CHARS; read < text.length; to += TURN_CHARS) {
      read += scanner.scan(text.slice(read, to), read, to >= text.length)
      await setImmediate()
    }
    return scanner.spans.length === 0 ? text : replaceSpans(text, scanner.spans, this.#patterns.names)
  }

  /** Redacts a text that was cut at `max` characters: a text of that length may end within a secret. */
  head(text: string, max: number): string {
    return this.text(text, { end: text.length >= max })
  }

  /**
   * Redacts the strings and keys of a JSON value (keys that become equal are numbered); returns the same object if it holds no
   * secret. Recursion is safe, because the decoder bounds the depth.
   */
  value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null || this.#isIdle) return value
    return Array.isArray(value) ? this.#list(value) : this.#object(value)
  }

  /** Searches one file, which arrives in pieces, for the values of secrets. */
  search(): SecretSearch {
    return new SecretSearch(this.#patterns)
  }

  /** Redacts one stream of text, which arrives in pieces that may split a secret. */
  stream(): TextRedactor {
    return new TextRedactor(this.#patterns)
  }

  get #isIdle(): boolean {
    return this.#patterns.names.length === 0
  }

  /** Redacts a large text in pieces, because the places of many secrets would take many times its size. */
  #inPieces(text: string, isCut: boolean): string {
    const redactor = new TextRedactor(this.#patterns)
    let safe = ''
    for (let at = 0; at < text.length; at += PIECE_CHARS) safe += redactor.push(text.slice(at, at + PIECE_CHARS))
    return safe + redactor.flush(isCut)
  }

  #findIn(text: string, { from, to, start = false, end = false }: Stretch): readonly Span[] {
    const part = from === 0 && to === text.length ? text : text.slice(from, to)
    // Created on first use, because it takes some time and most runs have no secret.
    const scanner = (this.#scanner ??= new Scanner(this.#patterns))
    scanner.reset()
    const read = scanner.scan(part, 0, !end)
    if (end) scanner.finish(part.slice(read), read, MIN_LENGTH)
    const piece = start ? findEndOfSecret(part, this.#patterns) : undefined
    const spans = piece === undefined ? scanner.spans : joinFirst(piece, scanner.spans)
    return from === 0 ? spans : spans.map((span) => ({ ...span, start: from + span.start, end: from + span.end }))
  }

  #list(list: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | undefined
    for (const [index, item] of list.entries()) {
      const redacted = this.value(item)
      if (redacted === item) continue
      copy ??= [...list]
      copy[index] = redacted
    }
    return copy ?? list
  }

  #object(value: object): object {
    const entries = Object.entries(value)
    const redacted = entries.map(([key, item]: [string, unknown]) => [this.text(key), this.value(item)] as const)
    if (redacted.every(([key, item], index) => key === entries[index]?.[0] && item === entries[index][1])) return value
    const keys = makeDistinct(
      entries.map(([key]) => key),
      redacted.map(([key]) => key),
    )
    // fromEntries defines own properties, so that a key `__proto__` stays data.
    return Object.fromEntries(redacted.map(([key, item], index) => [keys[index] ?? key, item]))
  }
}

/** Numbers keys that redaction made equal, so that no value is lost; unchanged keys stay. */
function makeDistinct(keys: readonly string[], redacted: readonly string[]): readonly string[] {
  const taken = new Set(redacted.filter((key, index) => key === keys[index]))
  if (taken.size === keys.length) return keys
  const counts = new Map<string, number>()
  return redacted.map((key, index) => {
    if (key === keys[index]) return key
    let count = counts.get(key) ?? 0
    let own: string
    do {
      count += 1
      own = count === 1 ? key : `${key}#${count}`
    } while (taken.has(own))
    counts.set(key, count)
    taken.add(own)
    return own
  })
}

/** Redacts a text that arrives in pieces. The concatenated result does not depend on how the text is split. */
export class TextRedactor {
  readonly #names: readonly string[]
  readonly #scanner: Scanner | undefined
  /** The text that has not been passed on, and its position in the stream. */
  #held = ''
  #from = 0
  /** The end of this text that the scanner has not read. */
  #unread = ''
  #read = 0

  constructor(patterns: Patterns) {
    this.#names = patterns.names
    this.#scanner = makeScanner(patterns)
  }

  /** Adds a piece and returns the text that is safe to pass on; a possible beginning of a secret is held back. */
  push(piece: string): string {
    const scanner = this.#scanner
    if (scanner === undefined) return piece
    this.#take(scanner, piece)
    let cut = Math.min(this.#read, scanner.open)
    // The text after the cut may lengthen a span.
    const last = scanner.spans.at(-1)
    if (last !== undefined && last.end > cut) cut = Math.min(cut, last.start)
    return this.#release(scanner, cut)
  }

  /** Returns the rest. By default the stream counts as cut, because a limit or a kill may have ended it. */
  flush(isCut: boolean = true): string {
    const scanner = this.#scanner
    if (scanner === undefined || this.#held === '') return ''
    if (isCut) scanner.finish(this.#unread, this.#read, MIN_LENGTH)
    else scanner.scan(this.#unread, this.#read, true)
    this.#unread = ''
    return this.#release(scanner, this.#from + this.#held.length)
  }

  #take(scanner: Scanner, piece: string): void {
    const text = this.#unread + piece
    this.#held += piece
    const length = scanner.scan(text, this.#read, false)
    this.#read += length
    this.#unread = text.slice(length)
  }

  #release(scanner: Scanner, cut: number): string {
    const text = this.#held.slice(0, cut - this.#from)
    const ready = scanner.spans.filter(({ end }) => end <= cut)
    const safe = replaceSpans(text, ready, this.#names, this.#from)
    scanner.spans = scanner.spans.slice(ready.length)
    this.#held = this.#held.slice(text.length)
    this.#from = cut
    return safe
  }
}

/**
 * Searches bytes for the values of secrets, piece by piece: a file of some MiB at once would block the event loop, and a file full of
 * secrets would take memory for each of them.
 */
export class SecretSearch {
  readonly #scanner: Scanner | undefined
  /** The end of the last piece that the scanner has not read, and its position in the file. */
  #unread = ''
  #read = 0

  constructor(patterns: Patterns) {
    this.#scanner = makeScanner(patterns)
  }

  push(piece: Uint8Array): void {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    for (let at = 0; at < bytes.length; at += SEARCH_BYTES) {
      this.#scan(bytes.toString('latin1', at, at + SEARCH_BYTES), false)
    }
  }

  /** Ends the file. Returns true if it contains a value. */
  finish(): boolean {
    this.#scan('', true)
    return this.#found
  }

  get #found(): boolean {
    return this.#scanner !== undefined && this.#scanner.spans.length > 0
  }

  #scan(piece: string, isLast: boolean): void {
    if (this.#scanner === undefined || this.#found) return
    const text = this.#unread + piece
    const length = this.#scanner.scan(text, this.#read, isLast)
    this.#read += length
    this.#unread = text.slice(length)
  }
}

/** Creates a scanner; undefined if there are no secrets. */
function makeScanner(patterns: Patterns): Scanner | undefined {
  return patterns.names.length === 0 ? undefined : new Scanner(patterns)
}

/** Joins a span at the start of a text with the other spans that overlap it. */
function joinFirst(first: Span, others: readonly Span[]): readonly Span[] {
  const apart = others.filter(({ start }) => start >= first.end)
  const joined = others.slice(0, others.length - apart.length)
  const longest = [first, ...joined].reduce((a, b) => (b.length > a.length ? b : a))
  const { owner, length } = longest
  return [{ owner, length, start: 0, end: Math.max(first.end, joined.at(-1)?.end ?? 0) }, ...apart]
}

/** Replaces spans by markers; `from` is the position of the text to which the spans are relative. */
function replaceSpans(text: string, spans: readonly Span[], names: readonly string[], from: number = 0): string {
  const markers = names.map(markerOf)
  let safe = ''
  let parts: string[] = []
  let at = 0
  for (const { owner, start, end } of spans) {
    parts.push(text.slice(at, Math.max(at, start - from)), markers[owner] ?? '')
    at = end - from
    if (parts.length < JOINED_PARTS) continue
    safe += parts.join('')
    parts = []
  }
  return safe + parts.join('') + text.slice(at)
}
