import type { ToolCallRecord } from '../journal/index.ts'
import { truncate } from '../support/index.ts'
import { nameText } from './foreign-text.ts'

const MAX_ARGS = 200
const MAX_RESULT = 300

/** A call as Python writes it: `search(status="late")`. */
export function callText({ name, args }: ToolCallRecord): string {
  return `${nameText(name)}(${argsText(args)})`
}

function argsText(args: unknown): string {
  const isNamed = typeof args === 'object' && args !== null && !Array.isArray(args)
  const texts = isNamed
    ? Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    : [JSON.stringify(args)]
  return truncate(texts.join(', '), MAX_ARGS)
}

/** The outcome of a call, on one line. */
export function outcomeText({ ok, error, resultJson, approval }: ToolCallRecord): string {
  if (ok === null) return approval?.approved === null ? 'waited for approval' : 'no answer'
  const decided = approval === undefined ? '' : decisionText(approval)
  if (error !== null) return truncate(`${nameText(error.code)}: ${error.message}`, MAX_RESULT) + decided
  return truncate(resultJson ?? 'null', MAX_RESULT) + decided
}

function decisionText({ approved, by, args }: NonNullable<ToolCallRecord['approval']>): string {
  const what = approved === true ? (args === null ? 'approved' : `approved with ${argsText(args)}`) : 'denied'
  return ` [${what}${by === null ? '' : ` by ${nameText(by)}`}]`
}

/** The line of the script that made the call. */
export function callPlace({ line }: ToolCallRecord): string {
  return line === null ? 'line ?' : `line ${line}`
}
