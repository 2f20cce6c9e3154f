import type { ToolCallRecord } from '../journal/index.ts'
import { truncate } from '../support/index.ts'
import { nameText } from './foreign-text.ts'

const MAX_ARGS = 200
const MAX_RESULT = 300

/** A call as Python writes it: `search(status="late")`. */
export function callText({ name, args }: ToolCallRecord): string {
  const isNamed = typeof args === 'object' && args !== null && !Array.isArray(args)
  const texts = isNamed
    ? Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    : [JSON.stringify(args)]
  return `${nameText(name)}(${truncate(texts.join(', '), MAX_ARGS)})`
}

/** The outcome of a call, on one line. */
export function outcomeText({ ok, error, resultJson }: ToolCallRecord): string {
  if (ok === null) return 'no answer'
  if (error !== null) return truncate(`${nameText(error.code)}: ${error.message}`, MAX_RESULT)
  return truncate(resultJson ?? 'null', MAX_RESULT)
}

/** The line of the script that made the call. */
export function callPlace({ line }: ToolCallRecord): string {
  return line === null ? 'line ?' : `line ${line}`
}
