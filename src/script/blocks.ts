import { StringScanner } from './string-scanner.ts'

/** The declared language of a block. */
export type Language = 'python' | 'unnamed' | 'json' | 'other'

/** A block of code in an answer, marked by a fence or a tag. */
export interface Block {
  readonly language: Language
  readonly code: string
}

/** An answer split into its blocks and the text around them. */
export interface ParsedAnswer {
  readonly blocks: readonly Block[]
  /** The text outside all blocks. */
  readonly outside: string
}

/**
 * Finds the blocks of an answer in order, without empty ones. The last block may be open if the answer was cut. Text that looks
 * like a fence or a tag within a string of the script is a part of the string, unless the string never ends.
 */
export function findBlocks(text: string): ParsedAnswer {
  return parse(text, 0)
}

/** Maximum depth of nested tags that are parsed; deeper tags are text. Each level parses its text about twice. */
const MAX_DEPTH = 2

function parse(text: string, depth: number): ParsedAnswer {
  if (!/[`~<]/.test(text)) return { blocks: [], outside: text }
  const lines = text.split('\n')
  const inTags = new Map<number, ParsedAnswer>()
  return (
    new BlockParser(lines, depth, inTags, true).parse() ??
    new BlockParser(lines, depth, inTags, false).parse() ?? { blocks: [], outside: text }
  )
}

/** The first characters of a fence or a tag: all other lines are plain. */
const MARKS: ReadonlySet<string> = new Set(['`', '~', '<'])

/** The end of reasoning that began before the answer, as for some models. */
const END_OF_THOUGHTS = /^\s*<\/(?:think|thinking|thought|reasoning)>|<\/(?:think|thinking|thought|reasoning)>\s*$/i

class BlockParser {
  readonly #lines: readonly string[]
  /** The number of tags around the text. */
  readonly #depth: number
  /** The parsed contents of tags by line, so that the second parser does not parse them again. */
  readonly #inTags: Map<number, ParsedAnswer>
  readonly #readsStrings: boolean
  #blocks: Block[] = []
  #outside: string[] = []
  #scanner: StringScanner = new StringScanner()
  /** True if a string contains text that looks like a fence or a tag. */
  #isSwallowed = false

  constructor(lines: readonly string[], depth: number, inTags: Map<number, ParsedAnswer>, readsStrings: boolean) {
    this.#lines = lines
    this.#depth = depth
    this.#inTags = inTags
    this.#readsStrings = readsStrings
  }

  /** Undefined if an unterminated string contains a fence or a tag. */
  parse(): ParsedAnswer | undefined {
    for (let at = 0; at < this.#lines.length;) {
      const next = this.#take(this.#lines[at] ?? '', at)
      if (next === undefined) return undefined
      at = next
    }
    if (this.#isSwallowed && this.#scanner.isInside) return undefined
    return { blocks: this.#blocks.filter(({ code }) => code.trim() !== ''), outside: this.#outside.join('\n') }
  }

  /** Parses the block or line at `at`; returns the index of the next one. */
  #take(line: string, at: number): number | undefined {
    if (!MARKS.has(line.trimStart().charAt(0))) return this.#takePlain(line, at)
    const fence = fenceIn(line)
    const tag = fence === undefined && this.#depth < MAX_DEPTH ? tagIn(line) : undefined
    if (fence === undefined && tag === undefined) return this.#takePlain(line, at)
    if (this.#scanner.isInside) {
      this.#isSwallowed = true
      return this.#takePlain(line, at)
    }
    if (fence !== undefined) return this.#takeFence(fence, at)
    return tag === undefined ? at + 1 : this.#takeTag(tag, at)
  }

  #takePlain(line: string, at: number): number {
    if (!this.#scanner.isInside && line.includes('</') && END_OF_THOUGHTS.test(line)) {
      this.#blocks = []
      this.#outside = []
      return at + 1
    }
    if (this.#readsStrings) this.#scanner.scan(line)
    this.#outside.push(line)
    return at + 1
  }

  #takeFence(open: Fence, from: number): number | undefined {
    const end = this.#endOfFence(open, from)
    if (end === undefined) return undefined
    this.#blocks.push({
      language: languageOf(open.info),
      code: removeIndent(this.#lines.slice(from + 1, end), open.indent),
    })
    return end + 1
  }

  /** The index of the line that ends a fence, or the number of lines. */
  #endOfFence(open: Fence, from: number): number | undefined {
    const scanner = new StringScanner()
    let isSwallowed = false
    for (let at = from + 1; at < this.#lines.length; at += 1) {
      const line = this.#lines[at] ?? ''
      const fence = fenceIn(line)
      if (fence?.mark === open.mark && fence.length >= open.length && fence.info === '') {
        if (!scanner.isInside) return at
        isSwallowed = true
      }
      if (this.#readsStrings) scanner.scan(line)
    }
    return isSwallowed ? undefined : this.#lines.length
  }

  #takeTag({ name, rest }: Tag, from: number): number {
    let end = from + 1
    while (end < this.#lines.length && tagIn(this.#lines[end] ?? '')?.name !== name) end += 1
    const text = [rest, ...this.#lines.slice(from + 1, end)].join('\n')
    const length = lengthInside(text, name)
    const code = withoutCdata(text.slice(0, length))
    const inTag = this.#inTags.get(from) ?? parse(code, this.#depth + 1)
    this.#inTags.set(from, inTag)
    const { blocks } = inTag
    // Pushed one by one, because many blocks as arguments of one call overflow the stack.
    for (const block of blocks.length > 0 ? blocks : [{ language: 'python', code } as const]) this.#blocks.push(block)
    return length === undefined ? end : from + text.slice(0, length).split('\n').length
  }
}

interface Fence {
  readonly mark: string
  readonly length: number
  readonly indent: number
  readonly info: string
}

function fenceIn(line: string): Fence | undefined {
  const rest = line.trimStart()
  const mark = rest.charAt(0)
  if (mark !== '`' && mark !== '~') return undefined
  let length = 1
  while (rest.charAt(length) === mark) length += 1
  const info = rest.slice(length).trim()
  if (length < 3 || (mark === '`' && info.includes('`'))) return undefined
  return { mark, length, indent: line.length - rest.length, info }
}

/** Removes up to `indent` white-space characters from each line: a Markdown list indents its blocks. */
function removeIndent(lines: readonly string[], indent: number): string {
  if (indent === 0) return lines.join('\n')
  return lines.map((line) => line.slice(Math.min(indent, line.length - line.trimStart().length))).join('\n')
}

const PYTHON = /^(?:i?py|i?python|pycon|tool_code)[\d]*(?:-repl)?$/

function languageOf(info: string): Language {
  const name = /[^\s{}:,=.[\]]+/.exec(info.toLowerCase())?.[0] ?? ''
  if (name === '') return 'unnamed'
  if (name === 'json') return 'json'
  return PYTHON.test(name) ? 'python' : 'other'
}

interface Tag {
  readonly name: string
  /** The rest of the line after the tag. */
  readonly rest: string
}

function tagIn(line: string): Tag | undefined {
  const [whole = '', name] = /^[ \t]*<(execution-code|python|script|code)(?:[ \t][^>]*)?>/i.exec(line) ?? []
  return name === undefined ? undefined : { name: name.toLowerCase(), rest: line.slice(whole.length) }
}

/**
 * The length up to the last closing tag at the end of a line, else up to the last closing tag: earlier ones may be in strings.
 * Undefined without a closing tag.
 */
function lengthInside(text: string, name: string): number | undefined {
  if (!text.includes('</')) return undefined
  let last: number | undefined
  let lastOfLine: number | undefined
  for (const { index, 1: end } of text.matchAll(new RegExp(`</${name}>([ \\t]*$)?`, 'gim'))) {
    last = index
    if (end !== undefined) lastOfLine = index
  }
  return lastOfLine ?? last
}

function withoutCdata(code: string): string {
  const inner = code.trim()
  if (!inner.startsWith('<![CDATA[')) return code
  return inner.slice('<![CDATA['.length, inner.endsWith(']]>') ? -']]>'.length : undefined)
}
