import { countText, plural } from './figures.ts'
import { inOurLine } from './terminal-text.ts'

const MAX_LINE = 400
const MAX_NAME = 80

/** A text as lines of which none can pass for one of ours, each of at most so many characters. */
export function asLines(text: string, most: number = MAX_LINE): string[] {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => inOurLine(cutLine(line, most)))
}

/** The head of a text with a word on how much is left out. */
export function cutLine(text: string, most: number = MAX_LINE): string {
  if (text.length <= most) return text
  return `${text.slice(0, most).toWellFormed()}… (${plural(text.length - most, 'more character')})`
}

/** A name that somebody else chose, for a fact or a cell of a table: one line, and not too long. */
export function nameText(name: string): string {
  const text = name.trim().replaceAll(/\s+/g, ' ')
  return text.length <= MAX_NAME ? text : `${text.slice(0, MAX_NAME).toWellFormed()}…`
}

/** The tail of a list of lines, with a line that says how many stand before it. */
export function lastLines(lines: readonly string[], most: number): readonly string[] {
  return lines.length <= most ? lines : [`… ${lines.length - most} lines before`, ...lines.slice(-most)]
}

/** What stands below a list that was cut: nothing where nothing is left out. */
export function moreText(left: number): readonly string[] {
  return left > 0 ? [`… ${countText(left)} more (--json has all)`] : []
}
