import { type Pattern, patternsOf, redactUpTo } from './redact-patterns.ts'

/**
 * Replaces the values of secrets by `[redacted:NAME]`, wherever they would leave a run as text. Numbers are not looked
 * at, and a script that encodes a value gets it out: this guards against accidents, not against malice.
 */
export class Redactor {
  /** Names of secrets too short (under 4 characters) to be looked for. */
  readonly tooShort: readonly string[]
  readonly #patterns: readonly Pattern[]

  constructor(secrets: Readonly<Record<string, string>>) {
    const { patterns, tooShort } = patternsOf(secrets)
    this.#patterns = patterns
    this.tooShort = tooShort
  }

  /** A text without secrets. */
  text(text: string): string {
    return this.#patterns.length === 0 ? text : redactUpTo(text, this.#patterns, true).safe
  }

  /**
   * A JSON value without secrets in its strings and keys; the same object when there is nothing to hide. Recursion is
   * safe: the decoder has bounded the depth.
   */
  value(value: unknown): unknown {
    if (this.#patterns.length === 0) return value
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item: unknown) => this.value(item))
    // fromEntries defines own properties, so that a key `__proto__` stays data.
    return Object.fromEntries(
      Object.entries(value).map(([key, item]: [string, unknown]) => [this.text(key), this.value(item)]),
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
    const { safe, held } = redactUpTo(this.#held + piece, this.#patterns, false)
    this.#held = held
    return safe
  }

  /** The rest. */
  flush(): string {
    const { safe } = redactUpTo(this.#held, this.#patterns, true)
    this.#held = ''
    return safe
  }
}
