import { type Block, findBlocks, type Language } from './blocks.ts'
import { findCodeInProse } from './prose.ts'

/** The script in an answer, or the reason for its absence. */
export type Extracted = FoundScript | { readonly problem: 'empty' | 'no-code' | 'too-long' }

/** The script in an answer. If `whole` is present, `script` is a guess: `whole` is the script if it is Python, which only Python can decide. */
export interface FoundScript {
  /** Null if there is only `whole`. */
  readonly script: string | null
  /** The whole answer, if it is longer than `script`, and `script` is not marked by a fence, tag or JSON, or the mark may be in a string. */
  readonly whole?: string
}

/**
 * Maximum characters of an answer, including reasoning; a longer answer is rejected unread. This is about 65,000 tokens. The
 * time of the extraction on the host's thread grows with the length.
 */
export const MAX_ANSWER_CHARS: number = 256 * 1024

/**
 * Extracts the script from the answer of a model: from fences, tags, a JSON object or prose.
 * Of several blocks, the last that emits something counts, else the longest; of JSON blocks, the last 256 are read. The time is linear
 * in the length of the answer.
 */
export function findScript(answer: string): Extracted {
  if (answer.length > MAX_ANSWER_CHARS) return { problem: 'too-long' }
  const text = answer.replaceAll(/\r\n?/g, '\n').replace(/^\uFEFF/, '')
  if (text.trim() === '') return { problem: 'empty' }
  return findCode(withoutThoughts(text))
}

/**
 * Returns the text of an answer outside of its fences and tags, without reasoning; empty for an answer without fences and tags. The
 * time is linear.
 */
export function findPlan(answer: string): string {
  if (answer.length > MAX_ANSWER_CHARS) return ''
  const { blocks, outside } = findBlocks(withoutThoughts(answer.replaceAll(/\r\n?/g, '\n').replace(/^\uFEFF/, '')))
  return blocks.length === 0 ? '' : outside.trim()
}

function findCode(text: string): Extracted {
  const { blocks, outside } = findBlocks(text)
  const marked = tidy(bestOf(blocks) ?? inJson(outside.trim()) ?? '')
  if (marked !== '') return isMarkInString(text) ? { script: marked, whole: tidy(text) } : { script: marked }
  const script = tidy(findCodeInProse(outside) ?? '')
  const whole = blocks.length > 0 ? script : tidy(text)
  if (whole === script) return script === '' ? { problem: 'no-code' } : { script }
  return { script: script === '' ? null : script, whole }
}

/** The first line that begins like a fence or a tag. */
const FIRST_MARK = /^[ \t]*(?:```|~~~|<)/m
/** The beginning of a string of several lines: only there can Python contain a fence or a tag. */
const LONG_STRING = /"""|'''|\\\n/

/** True if the first fence or tag may be a part of a string, so that the whole text may be Python. */
function isMarkInString(text: string): boolean {
  const at = text.search(FIRST_MARK)
  return at > 0 && LONG_STRING.test(text.slice(0, at))
}

/** Removes reasoning before the answer. If it never ends, there is no answer. */
function withoutThoughts(text: string): string {
  const opening = /\s*<(think|thinking|thought|reasoning)>/iy
  let from = 0
  for (;;) {
    opening.lastIndex = from
    const [, tag] = opening.exec(text) ?? []
    if (tag === undefined) break
    const closing = new RegExp(`</${tag}>`, 'gi')
    closing.lastIndex = opening.lastIndex
    if (closing.exec(text) === null) return ''
    from = closing.lastIndex
  }
  return text.slice(from)
}

const PYTHON: readonly Language[] = ['python', 'unnamed']
/** Maximum number of JSON blocks that are parsed: invalid JSON throws, which takes ten times as long as other blocks. */
const MAX_JSON_BLOCKS = 256

function bestOf(blocks: readonly Block[]): string | undefined {
  const json = new Set(blocks.filter(({ language }) => language === 'json').slice(-MAX_JSON_BLOCKS))
  const codes = blocks.map((block) => (json.has(block) ? inJson(block.code.trim()) : codeOf(block)) ?? '')
  const emits = codes.map((code) => /\bemit_(?:result|intermediate)\s*\(/.test(code))
  for (const wanted of PYTHON) {
    const at = blocks.findLastIndex(({ language }, index) => language === wanted && emits[index])
    if (at !== -1) return codes[at]
  }
  // The language may be wrong: a block that emits something is a script.
  const emitting = codes.findLast((_, index) => emits[index])
  if (emitting !== undefined) return emitting
  for (const wanted of PYTHON) {
    const longest = codes
      .filter((_, index) => blocks[index]?.language === wanted)
      .reduce<string>((best, code) => (code.length > best.length ? code : best), '')
    if (longest !== '') return longest
  }
  return undefined
}

function codeOf({ language, code }: Block): string {
  return language === 'json' ? '' : code
}

const KEYS = ['script', 'code', 'python', 'source'] as const

function inJson(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const given: unknown = JSON.parse(text)
    if (typeof given !== 'object' || given === null) return undefined
    for (const key of KEYS) {
      const value: unknown = Object.hasOwn(given, key) ? Reflect.get(given, key) : undefined
      if (typeof value === 'string') return bestOf(findBlocks(value.replaceAll(/\r\n?/g, '\n')).blocks) ?? value
    }
  } catch {
    // The text may be a set or dict of Python.
  }
  return undefined
}

/** Removes blank lines around the code, common indentation, and the prompts and output of an interactive Python. */
function tidy(code: string): string {
  const whole = code.replaceAll(/\r\n?/g, '\n').trimEnd().split('\n')
  const lines = dedent(
    whole.slice(
      Math.max(
        0,
        whole.findIndex((line) => line.trim() !== ''),
      ),
    ),
  )
  if (!/^>>>(?: |$)/.test(lines[0] ?? '')) return lines.join('\n')
  const typed = lines.filter((line) => /^(?:>>>|\.\.\.)(?: |$)/.test(line))
  return typed
    .map((line) => line.slice(4))
    .join('\n')
    .trimEnd()
}

function dedent(lines: readonly string[]): readonly string[] {
  if (!/^[ \t]/.test(lines[0] ?? '')) return lines
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^[ \t]*/.exec(line)?.[0] ?? '')
  const common = indents.reduce((a, b) => commonStart(a, b), indents[0] ?? '')
  return lines.map((line) => (line.startsWith(common) ? line.slice(common.length) : line.trimStart()))
}

function commonStart(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return a.slice(0, length)
}
