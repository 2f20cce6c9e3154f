import { formatValue } from '../support/index.ts'
import { defaultExecFileMode, defaultScriptFileMode } from './constants.ts'
import { invalid } from './invalid.ts'

/** A block of code. */
export interface CodeBlock {
  readonly code: string
  /** As the fence names it: `python`, `py`, `python3`, `bash`, `sh`, `javascript`, `js`, `typescript` or `ts`. */
  readonly language: string
}

/** The texts before and after a block, such as two fences. */
export interface CodeBlockDelimiter {
  readonly start: string
  readonly end: string
}

/** The file and the program of a block. The path of the file follows the arguments. */
export interface BlockSpec {
  readonly file: string
  readonly mode: number
  readonly cmd: string
  readonly args: readonly string[]
}

interface Language {
  readonly names: readonly string[]
  readonly extension: string
  readonly mode: number
  readonly cmd: string
}

const LANGUAGES: readonly Language[] = [
  { names: ['python', 'py', 'python3'], extension: 'py', mode: defaultScriptFileMode, cmd: 'python3' },
  { names: ['bash', 'sh'], extension: 'sh', mode: defaultExecFileMode, cmd: 'bash' },
  { names: ['javascript', 'js'], extension: 'js', mode: defaultScriptFileMode, cmd: 'node' },
  { names: ['typescript', 'ts'], extension: 'ts', mode: defaultScriptFileMode, cmd: 'node' },
]

/**
 * Extracts the blocks between two delimiters. The first word after the opening one is the language; the code begins on the next line. An
 * end delimiter inside of a line is code, unless no other one follows.
 * @throws SandglassError `invalid_request` for an empty delimiter.
 */
export function extractCodeBlock(input: string, { start, end }: CodeBlockDelimiter): CodeBlock[] {
  if (start === '' || end === '') throw invalid('delimiter', `${start === '' ? 'start' : 'end'} is empty`)
  const blocks: CodeBlock[] = []
  const ends = new Ends(input, end)
  for (let at = input.indexOf(start); at !== -1;) {
    const line = input.indexOf('\n', at + start.length)
    const close = line === -1 ? -1 : ends.after(line + 1)
    if (close === -1) break
    const [language = ''] = input
      .slice(at + start.length, line)
      .trim()
      .split(/\s/, 1)
    blocks.push({ language, code: input.slice(line + 1, close) })
    at = input.indexOf(start, close + end.length)
  }
  return blocks
}

/**
 * The file and the program of the block at an index.
 * @throws SandglassError `invalid_request` for an unsupported language.
 */
export function buildBlockSpec(index: number, { language }: Pick<CodeBlock, 'language'>): BlockSpec {
  if (!Number.isSafeInteger(index) || index < 0)
    throw invalid('index', `${formatValue(index)} is not a whole number from 0`)
  const name = language.trim().toLowerCase()
  const found = LANGUAGES.find(({ names }) => names.includes(name))
  if (found === undefined)
    throw invalid('block', `unsupported language: ${language}; use python, bash, javascript or typescript`)
  return { file: `code_${index}.${found.extension}`, mode: found.mode, cmd: found.cmd, args: [] }
}

/** Finds the ends of blocks. Positions only grow, so the input is read once. */
class Ends {
  readonly #input: string
  readonly #end: string
  /** The first end at the end of a line, at or after the last position; -1 if there is none. */
  #next: number | undefined

  constructor(input: string, end: string) {
    this.#input = input
    this.#end = end
  }

  after(position: number): number {
    if (this.#next === undefined || (this.#next !== -1 && this.#next < position)) this.#next = this.#find(position)
    return this.#next === -1 ? this.#input.indexOf(this.#end, position) : this.#next
  }

  #find(position: number): number {
    for (let at = this.#input.indexOf(this.#end, position); at !== -1;) {
      const behind = at + this.#end.length
      if (/[^\S\n]*(?:\n|$)/y.test(this.#input.slice(behind, behind + MAX_BLANKS))) return at
      at = this.#input.indexOf(this.#end, behind)
    }
    return -1
  }
}

/** Maximum number of spaces between an end and the end of its line. */
const MAX_BLANKS = 80
