import type { RunRecord } from '../journal/index.ts'

const DEFAULT_CHARS = 8000

/**
 * A run as a block for the message history of an agent (requirement OR-07). Whatever the script or a tool put into its
 * data stands there as JSON or text without `<`, `>` and `&`, so that nothing of it can end the block. What is longer
 * than `maxChars` is cut, head and tail.
 */
export function agentContext(record: RunRecord, maxChars: number = DEFAULT_CHARS): string {
  if (!Number.isSafeInteger(maxChars) || maxChars < 0)
    throw new TypeError('maxChars: must be a whole number of at least 0')
  const { runId, status, success, mode, attempts, steps, finalData, partial, error } = record
  const rounds = mode === 'plan' ? `attempts="${attempts.length}"` : `steps="${steps.length}"`
  const head = `<tool_execution run_id="${attribute(runId)}" mode="${mode}" status="${status}" success="${success}" ${rounds}>`
  const body = success
    ? element('result', inJson(finalData, maxChars))
    : [
        element('error', inText(error ?? 'it failed', maxChars)),
        ...(partial === null ? [] : [element('partial_result', inJson(partial, maxChars))]),
      ].join('\n')
  return `${head}\n${body}\n</tool_execution>`
}

function element(name: string, content: string): string {
  return `<${name}>\n${content}\n</${name}>`
}

/** Escapes of JSON itself, so that it still reads as JSON. */
function inJson(value: unknown, most: number): string {
  const text = (JSON.stringify(value) ?? 'null').replaceAll(
    /[<>&\u007F-\u009F\u2028-\u202E\u2066-\u2069\uFFFE\uFFFF]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return cut(text, most)
}

function inText(text: string, most: number): string {
  // An escape that was cut in two would be no XML.
  return cut(escaped(text), most).replace(/&[a-z]{0,3}\n…/, '\n…')
}

function attribute(text: string): string {
  return escaped(text).replaceAll('"', '&quot;')
}

function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(UNFIT, '\uFFFD')
}

/** Characters that XML has no place for, that drive terminals, or that turn the direction of a text. */
const UNFIT =
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFFFE\uFFFF]/g

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  const tail = half === 0 ? '' : text.slice(-half)
  return `${text.slice(0, half).toWellFormed()}\n… ${text.length - 2 * half} characters left out …\n${tail.toWellFormed()}`
}
