/** A regular expression as the schema compiler uses it. */
export interface Pattern {
  test(text: string): boolean
  toString(): string
}

const MAX_LINEAR_CHARS = 200
/** One character: a class in brackets, an escape that is not a reference, or itself. */
const ATOM = String.raw`(?:\[(?:[^\]\\]|\\[^])*\]|\\[dDwWsSnrtfv.\-/\\()[\]{}|*+?^$]|[^\\()[\]{}|*+?^$])`
const PLAIN = new RegExp(`^\\^?${ATOM}*\\$?$`)
const ANCHORED = new RegExp(String.raw`^\^(?:${ATOM}(?:\{\d{1,2}\})?)*(?:[*+?]|\{\d{1,3},\d{0,3}\})?${ATOM}*\$?$`)

/**
 * True for a pattern that is tested in linear time: plain characters, or a pattern anchored at the beginning with one repetition.
 * Many other patterns are linear as well, but are hard to tell from slow ones.
 */
export function isLinearPattern(source: string): boolean {
  return source.length <= MAX_LINEAR_CHARS && (PLAIN.test(source) || ANCHORED.test(source))
}

/**
 * Compiles the pattern of a JSON Schema. Most patterns are valid with the flag `u`; some old ones (`\-`) only without it.
 * @throws SyntaxError for an invalid pattern.
 */
export function schemaPattern(source: string, flags: string): Pattern {
  try {
    return new RegExp(source, flags)
  } catch {
    return new RegExp(source)
  }
}
