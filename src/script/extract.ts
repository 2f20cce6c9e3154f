import { type Block, blocksIn, type Language } from './blocks.ts'
import { codeInProse } from './prose.ts'

/** The script in an answer, or why there is none. */
export type Extracted = { readonly script: string } | { readonly problem: 'empty' | 'no-code' | 'too-long' }

/** Characters of an answer that are looked at; a script of that length has lost its way. */
export const MAX_ANSWER_CHARS: number = 1024 * 1024

/**
 * Takes the script out of what a model wrote (requirement OR-12): out of fences, tags, a JSON object or prose around it.
 * Of several blocks the last that emits something counts, else the longest: the others are sketches. Takes time in
 * proportion to the answer's length, whatever it holds.
 */
export function scriptIn(answer: string): Extracted {
  if (answer.length > MAX_ANSWER_CHARS) return { problem: 'too-long' }
  const text = answer.replaceAll(/\r\n?/g, '\n').replace(/^\uFEFF/, '')
  if (text.trim() === '') return { problem: 'empty' }
  const script = tidied(codeIn(withoutThoughts(text)) ?? '')
  return script === '' ? { problem: 'no-code' } : { script }
}

function codeIn(text: string): string | undefined {
  const { blocks, outside } = blocksIn(text)
  return bestOf(blocks) ?? inJson(outside.trim()) ?? codeInProse(outside)
}

/** Reasoning that some models put before their answer. One that never ends is all there is. */
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

function bestOf(blocks: readonly Block[]): string | undefined {
  const codes = blocks.map(({ language, code }) => (language === 'json' ? inJson(code.trim()) : code) ?? '')
  const emits = codes.map((code) => /\bemit_(?:result|intermediate)\s*\(/.test(code))
  for (const wanted of PYTHON) {
    const at = blocks.findLastIndex(({ language }, index) => language === wanted && emits[index])
    if (at !== -1) return codes[at]
  }
  // Languages that a model may name by mistake: what emits is a script all the same.
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

const KEYS = ['script', 'code', 'python', 'source'] as const

function inJson(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const given: unknown = JSON.parse(text)
    if (typeof given !== 'object' || given === null) return undefined
    for (const key of KEYS) {
      const value: unknown = Object.hasOwn(given, key) ? Reflect.get(given, key) : undefined
      if (typeof value === 'string') return bestOf(blocksIn(value.replaceAll(/\r\n?/g, '\n')).blocks) ?? value
    }
  } catch {
    // A set or dict of Python, perhaps.
  }
  return undefined
}

/** Without blank lines around, common indentation, and the prompts and answers of an interactive Python. */
function tidied(code: string): string {
  const whole = code.replaceAll(/\r\n?/g, '\n').trimEnd().split('\n')
  const lines = undented(
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

function undented(lines: readonly string[]): string[] {
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^[ \t]*/.exec(line)?.[0] ?? '')
  const common = indents.reduce((a, b) => commonStart(a, b), indents[0] ?? '')
  return lines.map((line) => (line.startsWith(common) ? line.slice(common.length) : line.trimStart()))
}

function commonStart(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return a.slice(0, length)
}
