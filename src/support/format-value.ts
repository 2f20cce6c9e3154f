import { countText } from './count-text.ts'

const MAX_VALUE = 80
const MAX_PATH = 200

/** Formats any value as a short text on one line, for a message. The content of objects and arrays is left out. */
export function formatValue(value: unknown, max: number = MAX_VALUE): string {
  if (typeof value === 'string') return JSON.stringify(truncate(value, max))
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'bigint' ? `${truncate(String(value), max)}n` : String(value)
}

/** Truncates a path for a message. */
export function formatPath(path: string): string {
  return truncate(path, MAX_PATH)
}

/** The first `max` characters of a text, with `…` if it is longer. */
export function truncate(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`
}

/** The first `max` characters of a text, with the number of omitted characters. */
export function truncateAndCount(text: string, max: number): string {
  const left = text.length - max
  return left <= 0 ? text : `${truncate(text, max)} (${countText(left)} more character${left === 1 ? '' : 's'})`
}

/** The first and the last characters of a text, `max` in total, with the number of omitted characters between them. */
export function truncateMiddle(text: string, max: number, separator: string = ' '): string {
  if (text.length <= max) return text
  const half = Math.floor(max / 2)
  const tail = half === 0 ? '' : text.slice(-half)
  const note = `… ${text.length - 2 * half} characters left out …`
  return [text.slice(0, half).toWellFormed(), note, tail.toWellFormed()].join(separator)
}
