import { countText, truncate, truncateAndCount } from '../support/index.ts'
import { escapeForMessage } from './terminal-text.ts'

/** Maximum characters of a foreign line. */
export const MAX_LINE = 400
const MAX_NAME = 80

/** A foreign text as safe lines for a terminal, each of at most `max` characters. */
export function asLines(text: string, max: number = MAX_LINE): string[] {
  return cutLines(text, max).map(escapeForMessage)
}

/** A foreign text as lines of at most `max` characters; control characters stay. */
export function cutLines(text: string, max: number = MAX_LINE): string[] {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => truncateAndCount(line, max))
}

/** A foreign name for a fact or a table cell: one short line. */
export function nameText(name: string): string {
  return truncate(name.trim().replaceAll(/\s+/g, ' '), MAX_NAME)
}

/** Emitted data for a person: a text as it is, anything else as indented JSON. */
export function dataText(data: unknown): string {
  return typeof data === 'string' ? data : (JSON.stringify(data, null, 2) ?? 'null')
}

/** The last lines of a list, after a line with the number of those left out. */
export function lastLines(lines: readonly string[], max: number): readonly string[] {
  return lines.length <= max ? lines : [`… ${countText(lines.length - max)} lines before`, ...lines.slice(-max)]
}

/** The line below a list that was cut; none if nothing is left out. */
export function moreText(left: number): readonly string[] {
  return left > 0 ? [`… ${countText(left)} more (--json has all)`] : []
}
