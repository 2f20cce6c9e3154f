import type { ToolCallRecord } from '../journal/index.ts'
import { cutText } from './figures.ts'
import { nameText } from './shown-text.ts'

const MAX_ARGS = 200
const MAX_RESULT = 300

/** A call as Python writes it: `search(status="late")`. */
export function callText({ name, args }: ToolCallRecord): string {
  const isNamed = typeof args === 'object' && args !== null && !Array.isArray(args)
  const texts = isNamed
    ? Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    : [JSON.stringify(args)]
  return `${nameText(name)}(${cutText(texts.join(', '), MAX_ARGS)})`
}

/** What a call came to, in a line. */
export function outcomeText({ ok, error, resultJson }: ToolCallRecord): string {
  if (ok === null) return 'no answer'
  if (error !== null) return cutText(`${nameText(error.code)}: ${error.message}`, MAX_RESULT)
  return cutText(resultJson ?? 'null', MAX_RESULT)
}

/** In which line of the script it was made. */
export function callPlace({ line }: ToolCallRecord): string {
  return line === null ? 'line ?' : `line ${line}`
}
