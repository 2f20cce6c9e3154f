import { StringScanner } from './string-scanner.ts'

/** What a block says that it holds. */
export type Language = 'python' | 'unnamed' | 'json' | 'other'

/** Code that an answer sets apart, by a fence or a tag. */
export interface Block {
  readonly language: Language
  readonly code: string
}

/** An answer, taken apart. */
export interface Parted {
  readonly blocks: readonly Block[]
  /** What stands in none of them. */
  readonly outside: string
}

/**
 * The blocks of an answer in order, without empty ones. An answer that was cut may leave the last one open. What looks
 * like a fence or a tag within a string of the script is a part of the string, unless the string never ends.
 */
export function blocksIn(text: string): Parted {
  const lines = text.split('\n')
  return new Parter(lines, true).parted() ?? new Parter(lines, false).parted() ?? { blocks: [], outside: text }
}

/** The end of reasoning whose beginning is not in the answer: some models are prompted with it. */
const END_OF_THOUGHTS = /^\s*<\/(?:think|thinking|thought|reasoning)>|<\/(?:think|thinking|thought|reasoning)>\s*$/i

class Parter {
  readonly #lines: readonly string[]
  readonly #heedsStrings: boolean
  #blocks: Block[] = []
  #outside: string[] = []
  #scanner: StringScanner = new StringScanner()
  /** Whether a string swallowed what looks like a fence or a tag. */
  #isSwallowed = false

  constructor(lines: readonly string[], heedsStrings: boolean) {
    this.#lines = lines
    this.#heedsStrings = heedsStrings
  }

  /** Undefined when a string of a script that never ends swallowed something. */
  parted(): Parted | undefined {
    for (let at = 0; at < this.#lines.length;) {
      const next = this.#take(this.#lines[at] ?? '', at)
      if (next === undefined) return undefined
      at = next
    }
    if (this.#isSwallowed && this.#scanner.isInside) return undefined
    return { blocks: this.#blocks.filter(({ code }) => code.trim() !== ''), outside: this.#outside.join('\n') }
  }

  /** Takes what begins in a line; gives where the next begins. */
  #take(line: string, at: number): number | undefined {
    const fence = fenceIn(line)
    const tag = fence === undefined ? tagIn(line) : undefined
    if (fence === undefined && tag === undefined) return this.#bare(line, at)
    if (this.#scanner.isInside) {
      this.#isSwallowed = true
      return this.#bare(line, at)
    }
    if (fence !== undefined) return this.#fenced(fence, at)
    return tag === undefined ? at + 1 : this.#tagged(tag, at)
  }

  #bare(line: string, at: number): number {
    if (!this.#scanner.isInside && END_OF_THOUGHTS.test(line)) {
      this.#blocks = []
      this.#outside = []
      return at + 1
    }
    if (this.#heedsStrings) this.#scanner.take(line)
    this.#outside.push(line)
    return at + 1
  }

  #fenced(open: Fence, from: number): number | undefined {
    const end = this.#endOfFence(open, from)
    if (end === undefined) return undefined
    this.#blocks.push({
      language: languageOf(open.info),
      code: unindented(this.#lines.slice(from + 1, end), open.indent),
    })
    return end + 1
  }

  /** The line that ends a fence, or the number of lines. */
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
      if (this.#heedsStrings) scanner.take(line)
    }
    return isSwallowed ? undefined : this.#lines.length
  }

  #tagged({ name, rest }: Tag, from: number): number {
    let end = from + 1
    while (end < this.#lines.length && tagIn(this.#lines[end] ?? '')?.name !== name) end += 1
    const text = [rest, ...this.#lines.slice(from + 1, end)].join('\n')
    const length = lengthInside(text, name)
    const code = withoutCdata(text.slice(0, length))
    const { blocks } = blocksIn(code)
    if (blocks.length > 0) this.#blocks.push(...blocks)
    else this.#blocks.push({ language: 'python', code })
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

/** Up to so much white space taken off each line: what a list puts before its blocks. */
function unindented(lines: readonly string[], indent: number): string {
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
  /** What follows it on its line. */
  readonly rest: string
}

function tagIn(line: string): Tag | undefined {
  const [whole = '', name] = /^[ \t]*<(execution-code|python|script|code)(?:[ \t][^>]*)?>/i.exec(line) ?? []
  return name === undefined ? undefined : { name: name.toLowerCase(), rest: line.slice(whole.length) }
}

/**
 * Up to the last closing tag that ends its line, else the last one: those before may stand in strings. Undefined when there
 * is none.
 */
function lengthInside(text: string, name: string): number | undefined {
  const ending = [...text.matchAll(new RegExp(`</${name}>[ \\t]*$`, 'gim'))].at(-1)
  return (ending ?? [...text.matchAll(new RegExp(`</${name}>`, 'gi'))].at(-1))?.index
}

function withoutCdata(code: string): string {
  const inner = code.trim()
  if (!inner.startsWith('<![CDATA[')) return code
  return inner.slice('<![CDATA['.length, inner.endsWith(']]>') ? -']]>'.length : undefined)
}
