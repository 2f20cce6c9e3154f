import { type Cuts, pieces } from './redact-cuts.ts'
import { markerOf, type Pattern, patternsOf, redactAll, redactUpTo } from './redact-patterns.ts'

/**
 * Replaces the values of secrets by `[redacted:NAME]`, wherever they would leave a run as text: plain, as JSON or a URL
 * writes them, and in base64, within something longer, too. Numbers are not looked at, and a script that encodes a value
 * otherwise, or twice, gets it out: this guards against accidents, not against malice. Where a text was cut, a piece of a
 * value counts as the value: see {@link pieces} for the rule.
 */
export class Redactor {
  /** Names of secrets too short (under 4 characters) to be looked for. */
  readonly tooShort: readonly string[]
  /** Every marker that may stand in a text. */
  readonly markers: readonly string[]
  readonly #patterns: readonly Pattern[]

  constructor(secrets: Readonly<Record<string, string>>) {
    const { patterns, tooShort } = patternsOf(secrets)
    this.#patterns = patterns
    this.tooShort = tooShort
    this.markers = [...new Set(patterns.map(({ name }) => markerOf(name)))]
  }

  /**
   * A text without secrets. Gaps that the harness left in it are found.
   * @param cuts where else the text may be only a part of a longer one.
   */
  text(text: string, cuts: Cuts = {}): string {
    if (this.#patterns.length === 0) return text
    return redactAll(text, this.#patterns, pieces(text, this.#patterns, cuts))
  }

  /** A text that is cut at a greatest length, by characters: one that has it may be only a head. */
  head(text: string, most: number): string {
    return this.text(text, { end: text.length >= most })
  }

  /**
   * A JSON value without secrets in its strings and keys (keys that become equal are numbered); the same object when there is nothing to hide. Recursion is
   * safe: the decoder has bounded the depth.
   */
  value(value: unknown): unknown {
    if (this.#patterns.length === 0) return value
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item: unknown) => this.value(item))
    const entries = Object.entries(value)
    const keys = distinct(
      entries.map(([key]) => key),
      entries.map(([key]) => this.text(key)),
    )
    // fromEntries defines own properties, so that a key `__proto__` stays data.
    return Object.fromEntries(
      entries.map(([key, item]: [string, unknown], index) => [keys[index] ?? key, this.value(item)]),
    )
  }

  /** Whether a file shows the value of a secret. */
  occursIn(content: Uint8Array): boolean {
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
    return this.#patterns.some(({ text }) => bytes.includes(text))
  }

  /** For one stream of text that comes in pieces: a secret may be cut anywhere. */
  stream(): TextRedactor {
    return new TextRedactor(this.#patterns)
  }
}

/** Numbers keys that redaction made equal to another one, so that no value is lost; keys that it left alone stay. */
function distinct(keys: readonly string[], redacted: readonly string[]): readonly string[] {
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

/** Redacts a text that comes in pieces; whatever the cuts are, the pieces together come out the same. */
export class TextRedactor {
  readonly #patterns: readonly Pattern[]
  #held = ''

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns
  }

  /** What can be told by now; what may be the beginning of a secret is held back. */
  push(piece: string): string {
    if (this.#patterns.length === 0) return piece
    const { safe, held } = redactUpTo(this.#held + piece, this.#patterns)
    this.#held = held
    return safe
  }

  /** The rest. Where a stream ends it may have been cut, by a limit or a kill. */
  flush(): string {
    const held = this.#held
    this.#held = ''
    return held === '' ? '' : redactAll(held, this.#patterns, pieces(held, this.#patterns, { end: true }))
  }
}
