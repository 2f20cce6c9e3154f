/** An open bracket or string of a cell, or open braces of an f-string: a field is code, its format is text again. */
interface Open {
  readonly kind: 'bracket' | 'string' | 'f-string' | 'field' | 'format'
  readonly end: string
  /** The quote of the string around it; of a bracket none. */
  readonly quote: string
}

const CODE = /(?:\b([a-z]{1,2}))?("""|'''|["'])|\\[^]?|#.*|:=?|[()[\]{}\n]/gi
/** A backslash escapes no brace. */
const TEXT = /\\(?![{}])[^]?|\{\{?|\}|"""|'''|["'\n]/g
const F_PREFIX = /^(?:[ft]r?|r[ft])$/i
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }
const BLOCK = /^\s*(?:async|class|def|for|if|try|while|with)\b/
const MATCH = /^\s*match\b\s*\S/
const REST_IS_COMMENT = /^[^\S\n]*(?:#|\n|$)/

/**
 * True if a person has typed a complete cell, by the rules of Python's own prompt. No bracket, string or joined line is open. A block
 * or a decorated function ends with an empty line; so does a block of one line, because `else` may follow. Python decides whether the
 * cell is valid, so text that cannot become valid is complete.
 */
export function isWholeCell(text: string): boolean {
  const cell = new CellText(text)
  if (cell.isBroken) return true
  if (cell.isOpen) return false
  return !cell.hasBlock || text.slice(text.lastIndexOf('\n') + 1).trim() === ''
}

/** Reads a cell to its end, or to the first place that cannot be valid. */
class CellText {
  /** A string without an end on its line, or a bracket that closes another one. */
  isBroken = false
  hasBlock = false
  readonly #text: string
  readonly #codeTokens = new RegExp(CODE)
  readonly #textTokens = new RegExp(TEXT)
  readonly #open: Open[] = []
  /** The beginning of the line of Python, which may be several lines of text. */
  #lineStart = 0
  #isJoined = false

  constructor(text: string) {
    this.#text = text
    this.#beginLine(0)
    for (let at = 0; at < text.length && !this.isBroken;) at = this.#step(at)
    if (this.#isJoined) return
    const open = this.#open.at(-1)
    // Only strings over several lines, and fields, go on after a line.
    if (open !== undefined && isText(open) && open.quote.length === 1) this.isBroken = true
  }

  get isOpen(): boolean {
    return this.#isJoined || this.#open.length > 0
  }

  /** Reads up to the next token and past it. */
  #step(at: number): number {
    const open = this.#open.at(-1)
    const inText = open !== undefined && isText(open)
    const tokens = inText ? this.#textTokens : this.#codeTokens
    tokens.lastIndex = at
    const found = tokens.exec(this.#text)
    if (found === null) return this.#text.length
    const [token] = found
    this.#isJoined = token === '\\'
    if (token.startsWith('\\')) return found.index + token.length
    return found.index + (inText ? this.#readText(open, token) : this.#readCode(open, found))
  }

  /** @returns the characters that were read of a token in a string */
  #readText(open: Open, token: string): number {
    if (token === '\n') this.isBroken = open.quote.length === 1
    else if (token.startsWith(open.quote)) {
      this.isBroken = open.kind === 'format' // its brace is missing
      this.#open.pop()
      return open.quote.length
    } else if (open.kind === 'format' && token === '}') this.#open.pop()
    else if (open.kind !== 'string' && token.startsWith('{')) {
      if (token === '{{' && open.kind === 'f-string') return 2
      this.#open.push({ kind: 'field', end: '}', quote: open.quote })
      return 1
    } else if (open.quote.length === 1) return 1 // perhaps of three quotes
    return token.length
  }

  /** @returns the characters that were read of a token of code */
  #readCode(open: Open | undefined, { 0: token, 1: prefix = '', 2: quote, index }: RegExpExecArray): number {
    const end = CLOSING[token]
    if (quote !== undefined) this.#open.push({ kind: F_PREFIX.test(prefix) ? 'f-string' : 'string', end: quote, quote })
    else if (end !== undefined) this.#open.push({ kind: 'bracket', end, quote: '' })
    else if (token === ')' || token === ']' || token === '}') this.isBroken = this.#open.pop()?.end !== token
    else if (token.startsWith(':') && open?.kind === 'field') {
      this.#open.splice(-1, 1, { ...open, kind: 'format' })
      return 1
    } else if (open === undefined && token === ':') this.#readColon(index)
    else if (open === undefined && token === '\n') this.#beginLine(index + 1)
    return token.length
  }

  #readColon(at: number): void {
    const head = this.#text.slice(this.#lineStart, at)
    if (BLOCK.test(head) || (MATCH.test(head) && REST_IS_COMMENT.test(this.#text.slice(at + 1)))) this.hasBlock = true
  }

  #beginLine(at: number): void {
    this.#lineStart = at
    if (this.#text.startsWith('@', at)) this.hasBlock = true
  }
}

function isText({ kind }: Open): boolean {
  return kind === 'string' || kind === 'f-string' || kind === 'format'
}
