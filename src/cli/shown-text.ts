import { inOurLine } from './terminal-text.ts'

/** Marks that turn the order of characters round, so that a line reads as something else than it is. */
const TURNING = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g

/** Marks of writing direction written out as `\u202e`. */
export function withoutTurning(text: string): string {
  return text.replace(TURNING, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A text of a journal inside a line of ours. */
export function inLine(text: string): string {
  return inOurLine(withoutTurning(text.toWellFormed()))
}

/** A text of a journal as lines of which none can pass for one of ours. */
export function asLines(text: string): string[] {
  return text.replace(/\r\n?/g, '\n').replace(/\n$/, '').split('\n').map(inLine)
}

/** The tail of a list of lines, with a line that says how many stand before it. */
export function lastLines(lines: readonly string[], most: number): readonly string[] {
  return lines.length <= most ? lines : [`… ${lines.length - most} lines before`, ...lines.slice(-most)]
}
