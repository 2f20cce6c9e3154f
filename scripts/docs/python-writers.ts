import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Redactor } from '../../src/redaction/index.ts'
import { code } from './table.ts'

/** Characters of every kind that a writer escapes, between parts that the checks recognize. */
export const SAMPLE = 'Zq7Lp"Kx9Tv\'Rp4Wm\\Hs2Gn\nTb5Fd é😀 Vb8Yd&<Jf3Ck/+Nw6Xz'
const PARTS = /[A-Z][a-z]\d[A-Z][a-z]/
const MARKER = '[redacted:K]'

/** The texts that Python's standard library writes for each value, by the name of the writer. */
export interface WrittenByPython {
  readonly written: readonly Readonly<Record<string, string>>[]
  /** Names of the writers whose texts redaction does not find. */
  readonly unknown: readonly string[]
}

/** Runs `python-writers.py`, which writes each value in every form. */
export function writeByPython(values: readonly string[]): WrittenByPython {
  const program = join(import.meta.dirname, 'python-writers.py')
  const input = JSON.stringify(values)
  const answer = execFileSync('python3', [program], { input, maxBuffer: 1 << 28 }).toString()
  return JSON.parse(answer) as WrittenByPython
}

/** True if redaction removes every part of the sample from a text. */
function hides(text: string): boolean {
  const shown = new Redactor({ K: SAMPLE }).text(text)
  return shown.includes(MARKER) && !PARTS.test(shown.replaceAll(MARKER, ''))
}

/**
 * The writers whose texts are redacted, and the others.
 * @throws Error for a writer that `python-writers.py` lists in the wrong group.
 */
export function pythonWriters(): string {
  const { written, unknown } = writeByPython([SAMPLE])
  const texts = Object.entries(written[0] ?? {})
  const wrong = texts.filter(([name, text]) => hides(text) === unknown.includes(name)).map(([name]) => name)
  if (wrong.length > 0) throw new Error(`python-writers.py lists these writers in the wrong group: ${wrong.join(', ')}`)
  const listOf = (names: readonly string[]): string => `${names.map(code).join(', ')}.`
  const known = texts.map(([name]) => name).filter((name) => !unknown.includes(name))
  return `**Redacted:** ${listOf(known)}\n\n**Not redacted:** ${listOf(unknown)}`
}
