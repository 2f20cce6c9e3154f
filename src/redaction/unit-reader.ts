/** The unit of all separators: blanks, line breaks, control characters, quotes, `+`, `-`, and prefixes of quoted lines: `|`, `>`, `#`. */
export const SEPARATOR = 0x20

/** Results of {@link UnitReader.read} that are not a unit. */
export const NOTHING = -1
export const INCOMPLETE = -2
/** The `b` of a further line of bytes: `pprint` writes `b'ab'`, a line break, `b'cd'`. */
export const BYTES_JOIN = -3

const BACKSLASH = 0x5c
const QUOTES: ReadonlySet<number> = new Set([0x22, 0x27])
const LETTER_B = 0x62
/** Backslashes before the quote of escaped bytes: `b\\\'`. */
const MAX_BACKSLASHES = 7
const PERCENT = 0x25
const AMPERSAND = 0x26
const SEMICOLON = 0x3b
const HASH = 0x23
const X = 0x78
/** Digits of the number of an entity, with its `x` and `;`. */
const MAX_DIGITS = 9
/** Maximum number of times that an escape of HTML or of a URL is escaped again: `&amp;amp;quot;`. */
const MAX_LEVELS = 8

/** Entities of HTML and XML by name. */
const NAMED = [
  { name: codesOf('quot;'), code: 0x22 },
  { name: codesOf('apos;'), code: 0x27 },
  { name: codesOf('lt;'), code: 0x3c },
  { name: codesOf('gt;'), code: 0x3e },
]
const AMP = codesOf('amp;')
const ENTITIES = [AMP, ...NAMED.map(({ name }) => name)]
/** The first characters of entities. */
const MAY_OPEN: ReadonlySet<number> = new Set(codesOf('#aglq'))
const LEVEL_OF_PERCENT = codesOf('25')

/** Quotes, and the marks before quoted lines. A traceback of an exception group has `|` before each line. */
const MARKS: ReadonlySet<number> = new Set(Array.from('"\'+-|>#', (mark) => mark.charCodeAt(0)))

/** The unit of each ASCII character; SPECIAL if {@link UnitReader.read} must decode it. */
const SPECIAL = -1
const UNITS: Int32Array = Int32Array.from({ length: 128 }, (_, code) => {
  if (code === BACKSLASH || code === PERCENT || code === AMPERSAND) return SPECIAL
  return unitFor(code)
})

/**
 * Reads a text as the characters that it stands for, even if they were escaped several times: by Python's `repr`, JSON, shells,
 * CSV, URLs, HTML. Characters that such writers add do not count: a run of quotes, blanks and line breaks is
 * one separator, and backslashes are ignored. A value and all its escaped forms therefore have the same units.
 */
export class UnitReader {
  /** The end of the last unit. */
  end = 0
  #escaped = false

  /** Forgets the text so far. */
  reset(): void {
    this.#escaped = false
  }

  /**
   * Returns the unit at a position of a text, {@link NOTHING} or {@link BYTES_JOIN} if the character stands for no unit, or
   * {@link INCOMPLETE} if the text ends within an escape.
   * @param codes a buffer that begins with the `length` characters of the text.
   * @param isWhole true if no further text follows.
   * @param isAfterSeparator true if the last unit was a separator.
   */
  read(codes: Uint16Array, length: number, at: number, isWhole: boolean, isAfterSeparator: boolean): number {
    const code = codes[at] ?? 0
    this.end = at + 1
    if (code === LETTER_B && isAfterSeparator && !this.#escaped) return readBytesPrefix(codes, length, at, isWhole)
    if (this.#escaped) {
      this.#escaped = false
      const unit = this.#readEscape(codes, length, at, isWhole)
      if (unit !== undefined) return unit
    }
    if (code >= 128) return unitFor(code)
    const unit = UNITS[code] ?? SPECIAL
    if (unit !== SPECIAL) return unit
    if (code === BACKSLASH) return this.#decode(BACKSLASH)
    return code === PERCENT
      ? this.#readPercent(codes, length, at, isWhole)
      : this.#readEntity(codes, length, at, isWhole)
  }

  /** The meaning of a character after a backslash; undefined if it stands for itself. */
  #readEscape(codes: Uint16Array, length: number, at: number, isWhole: boolean): number | undefined {
    const code = codes[at] ?? 0
    if (LETTERS.has(code)) return SEPARATOR
    const width = ESCAPE_WIDTHS.get(code)
    const value = width === undefined ? octalAt(codes, length, at) : hexAt(codes, length, at + 1, width)
    if (value >= 0) {
      this.end = at + 1 + (width ?? 2)
      return this.#decode(value)
    }
    if (isWhole || value !== CUT) return undefined
    this.#escaped = true
    return INCOMPLETE
  }

  #readPercent(codes: Uint16Array, length: number, at: number, isWhole: boolean): number {
    let from = at + 1
    // `%2525` is `%` escaped twice.
    for (let level = 0; level < MAX_LEVELS && startsWith(codes, length, from, LEVEL_OF_PERCENT); level += 1) {
      const further = hexAt(codes, length, from + 2, 2)
      if (further === CUT && !isWhole) return INCOMPLETE
      if (further < 0) break
      from += 2
    }
    const value = hexAt(codes, length, from, 2)
    if (value === CUT && !isWhole) return INCOMPLETE
    if (value < 0) return NOTHING
    this.end = from + 2
    return value === PERCENT ? NOTHING : this.#decode(value)
  }

  #readEntity(codes: Uint16Array, length: number, at: number, isWhole: boolean): number {
    if (at + 1 < length && !MAY_OPEN.has(codes[at + 1] ?? 0)) return AMPERSAND
    let from = at + 1
    for (let level = 0; level < MAX_LEVELS && startsWith(codes, length, from, AMP); level += 1) from += AMP.length
    if (!isWhole && isOpenEntity(codes, length, from)) return INCOMPLETE
    this.end = from > at + 1 ? from : at + 1
    if (codes[from] === HASH && from < length) {
      const value = this.#readNumber(codes, length, from + 1)
      return value < 0 ? AMPERSAND : this.#decode(value)
    }
    const entity = NAMED.find(({ name }) => startsWith(codes, length, from, name))
    if (entity === undefined) return AMPERSAND
    this.end = from + entity.name.length
    return unitFor(entity.code)
  }

  /** The number of an entity, decimal or hexadecimal; negative if it is invalid. */
  #readNumber(codes: Uint16Array, length: number, from: number): number {
    const isHex = ((codes[from] ?? 0) | 0x20) === X
    let value = 0
    for (let at = isHex ? from + 1 : from; at < Math.min(length, from + MAX_DIGITS); at += 1) {
      const code = codes[at] ?? 0
      if (code === SEMICOLON && at > from) {
        this.end = at + 1
        return value
      }
      const digit = digitOf(code)
      if (digit < 0 || (!isHex && digit > 9)) return -1
      value = value * (isHex ? 16 : 10) + digit
    }
    return -1
  }

  /** The unit of a character that was escaped as a number. An escaped backslash escapes the next character like a plain one. */
  #decode(code: number): number {
    if (code !== BACKSLASH) return unitFor(code)
    this.#escaped = true
    return NOTHING
  }
}

/** Letters that stand for a control character after a backslash: those of Python and JSON. */
const LETTERS: ReadonlySet<number> = new Set(Array.from('abfnrtv', (letter) => letter.charCodeAt(0)))
/** Digits of an escape by number. */
const ESCAPE_WIDTHS: ReadonlyMap<number, number> = new Map([
  ['x'.charCodeAt(0), 2],
  ['u'.charCodeAt(0), 4],
  ['U'.charCodeAt(0), 8],
])

/**
 * The unit of a character. Beyond U+FFFF it is the low surrogate, so that a pair, two escapes of JSON and one
 * of Python have the same unit. Base64 in URLs uses `-` and `_` in place of `+` and `/`.
 */
export function unitFor(code: number): number {
  if (code > 0xffff) return 0xdc00 + (code & 0x3ff)
  if (code >= 0xd800 && code < 0xdc00) return NOTHING
  if (code <= 0x20 && ((code >= 7 && code <= 13) || code >= 0x1c)) return SEPARATOR
  if (code >= 0x85 && isWideBlank(code)) return SEPARATOR
  if (MARKS.has(code)) return SEPARATOR
  return code === 0x5f ? 0x2f : code
}

/** True for characters beyond ASCII that Python treats as blanks or line breaks. */
function isWideBlank(code: number): boolean {
  if (code < 0x1680) return code === 0x85 || code === 0xa0
  if (code < 0x2000 || code > 0x205f) return code === 0x1680 || code === 0x3000
  return code <= 0x200a || code === 0x2028 || code === 0x2029 || code === 0x202f || code === 0x205f
}

/** The text ended where a digit was expected. */
const CUT = -2

/** {@link BYTES_JOIN} if a quote follows, and {@link INCOMPLETE} if one may follow; otherwise the letter is its own unit. */
function readBytesPrefix(codes: Uint16Array, length: number, at: number, isWhole: boolean): number {
  const end = Math.min(length, at + 1 + MAX_BACKSLASHES)
  let quote = at + 1
  while (quote < end && codes[quote] === BACKSLASH) quote += 1
  if (quote >= length) return isWhole ? LETTER_B : INCOMPLETE
  return QUOTES.has(codes[quote] ?? 0) ? BYTES_JOIN : LETTER_B
}

/** The value of this many hexadecimal digits; negative if there are fewer. */
function hexAt(codes: Uint16Array, length: number, at: number, width: number): number {
  let value = 0
  for (let index = at; index < at + width; index += 1) {
    if (index >= length) return CUT
    const digit = digitOf(codes[index] ?? 0)
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}

/** The number of three octal digits, as in `\073`. */
function octalAt(codes: Uint16Array, length: number, at: number): number {
  let value = 0
  for (let index = at; index < at + 3; index += 1) {
    if (index >= length) return CUT
    const digit = (codes[index] ?? 0) - 0x30
    if (digit < 0 || digit > (index === at ? 3 : 7)) return -1
    value = value * 8 + digit
  }
  return value
}

function digitOf(code: number): number {
  const lower = code | 0x20
  if (lower >= 0x61 && lower <= 0x66) return lower - 0x57
  return code >= 0x30 && code <= 0x39 ? code - 0x30 : -1
}

function startsWith(codes: Uint16Array, length: number, at: number, wanted: readonly number[]): boolean {
  if (at + wanted.length > length) return false
  for (let index = 0; index < wanted.length; index += 1) if (codes[at + index] !== wanted[index]) return false
  return true
}

/** True if the text ends within the name or the number of an entity. */
function isOpenEntity(codes: Uint16Array, length: number, from: number): boolean {
  if (from < length && codes[from] === HASH) return isOpenNumber(codes, length, from + 1)
  return ENTITIES.some(
    (name) => length - from < name.length && name.every((code, at) => from + at >= length || codes[from + at] === code),
  )
}

function isOpenNumber(codes: Uint16Array, length: number, from: number): boolean {
  if (length - from >= MAX_DIGITS) return false
  const isHex = from < length && ((codes[from] ?? 0) | 0x20) === X
  for (let at = isHex ? from + 1 : from; at < length; at += 1) {
    const digit = digitOf(codes[at] ?? 0)
    if (digit < 0 || (!isHex && digit > 9)) return false
  }
  return true
}

function codesOf(text: string): number[] {
  return Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
}

/** The units of a text as a string, and the end of each unit in the text. */
export interface UnitText {
  readonly units: string
  readonly ends: readonly number[]
}

/** Reads the first units of a text from a position on. */
export function readUnits(text: string, from: number = 0, max: number = Number.POSITIVE_INFINITY): UnitText {
  return read(text, from, max, true)
}

function read(text: string, from: number, max: number, isWhole: boolean): UnitText {
  const reader = new UnitReader()
  const codes = new Uint16Array(text.length)
  for (let at = 0; at < text.length; at += 1) codes[at] = text.charCodeAt(at)
  let units = ''
  let last = NOTHING
  const ends: number[] = []
  for (let at = from; at < codes.length && units.length < max; at = reader.end) {
    // The beginning of a text counts as a separator, because a value may follow one in the text around it.
    const unit = reader.read(codes, codes.length, at, isWhole, last === SEPARATOR || at === 0)
    if (unit === INCOMPLETE) break
    if (unit === NOTHING || unit === BYTES_JOIN || (unit === SEPARATOR && last === SEPARATOR)) continue
    units += String.fromCharCode(unit)
    last = unit
    ends.push(reader.end)
  }
  return { units, ends }
}

/** All units of a text. */
export function unitsOf(text: string): string {
  return readUnits(text).units
}

/** The units of a text that do not depend on the following text: without an escape that its last characters may begin. */
export function settledUnitsOf(text: string): string {
  return read(text, 0, Number.POSITIVE_INFINITY, false).units
}
