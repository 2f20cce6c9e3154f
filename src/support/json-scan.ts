/** The result of a scan of a JSON text. */
export interface JsonScan {
  /** Commas, colons and opening brackets outside of strings: no text has more values and keys than this plus one. */
  readonly parts: number
  /** The deepest nesting of arrays and objects. */
  readonly depth: number
  /** The reason that `JSON.parse` would change a number; undefined if it changes none. */
  readonly unsafeNumber: string | undefined
}

/** Bounds on a JSON text, checked before it is parsed. */
export interface JsonBounds {
  /** See {@link JsonScan.parts}. */
  readonly parts: number
  /** See {@link JsonScan.depth}. */
  readonly depth: number
}

/** The number of parts of a text that takes up to 100 ms to parse. */
export const MAX_JSON_PARTS: number = 1024 * 1024
const MAX_JSON_DEPTH = 1000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d
const [ZERO, NINE] = [0x30, 0x39]
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Counts the values in a JSON text in UTF-8 without parsing it: a value of two bytes can take a hundred times that memory once parsed.
 * Takes linear time and no memory. The counts of a text that is not JSON are meaningless.
 */
export function scanJson(given: Uint8Array): JsonScan {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  let parts = 0
  let level = 0
  let depth = 0
  let unsafeNumber: string | undefined
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1)
    } else if (byte === COMMA || byte === COLON) {
      parts += 1
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      parts += 1
      level += 1
      if (level > depth) depth = level
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      level -= 1
    } else if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
      const end = endOfNumber(bytes, at + 1)
      if (isSuspect(bytes, at, end)) unsafeNumber ??= unsafeNumberIn(bytes, at, end)
      at = end - 1
    }
  }
  return { parts, depth, unsafeNumber }
}

/**
 * Parses a JSON text of an untrusted peer within bounds. Bytes are UTF-8; a byte order mark is removed.
 * @throws SyntaxError as `JSON.parse`; RangeError for a text beyond the bounds.
 */
export function parseBounded(given: string | Uint8Array, bounds: Partial<JsonBounds> = {}): unknown {
  refuseBeyond(bounds, typeof given === 'string' ? Buffer.from(given) : given)
  return JSON.parse(typeof given === 'string' ? given : new TextDecoder().decode(given))
}

/** Checks a JSON text in UTF-8. @throws RangeError if it exceeds the bounds. */
export function refuseBeyond(bounds: Partial<JsonBounds>, text: Uint8Array): void {
  const { parts, depth } = scanJson(text)
  const { parts: maxParts = MAX_JSON_PARTS, depth: maxDepth = MAX_JSON_DEPTH } = bounds
  if (parts > maxParts) throw new RangeError(`more than ${maxParts} values`)
  if (depth > maxDepth) throw new RangeError(`nested deeper than ${maxDepth}`)
}

/** The index of the quote that ends a string, or the length of the bytes. */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

/** The index after a number. */
function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length && NUMBER_BYTES[bytes[at] as number] === 1) at += 1
  return at
}

const NUMBER_BYTES: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  '0123456789+-.eE'.includes(String.fromCharCode(byte)) ? 1 : 0,
)

/** True for the few numbers that must be parsed to be checked: integers of 16 digits or more, and those with 309 digits before the point. */
function isSuspect(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from < 5) return false
  let at = from
  while (at < to && isDigitOrMinus(bytes[at] as number)) at += 1
  const digits = at - from
  if (at === to) return digits >= 16
  if (digits >= 300) return true
  while (at < to && ((bytes[at] as number) | 0x20) !== LOWER_E) at += 1
  let exponent = 0
  for (at += 1; at < to; at += 1) {
    if (bytes[at] === MINUS) return false
    if (bytes[at] !== PLUS) exponent = Math.min(exponent * 10 + (bytes[at] as number) - ZERO, MAX_EXPONENT)
  }
  return digits + exponent >= 309
}

const isDigitOrMinus = (byte: number): boolean => byte === MINUS || (byte >= ZERO && byte <= NINE)
const [LOWER_E, PLUS, MAX_EXPONENT] = [0x65, 0x2b, 1000]

function unsafeNumberIn(bytes: Buffer, from: number, to: number): string | undefined {
  const source = bytes.toString('latin1', from, to)
  const value = Number(source)
  if (Math.abs(value) === Number.POSITIVE_INFINITY) return 'a number too large for a double'
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && /^-?\d+$/.test(source) ? 'an integer beyond 2^53' : undefined
}
