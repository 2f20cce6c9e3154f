import type { RunRecord } from '../journal/index.ts'
import { formatValue, truncateMiddle } from '../support/index.ts'

const DEFAULT_CHARS = 8000
/** Names of files get at most one part in four of the characters. */
const FILES_SHARE = 4

/**
 * A task as an XML block for the message history of an agent, with the names of its files. Data of the script or a tool
 * is written as JSON or text without `<`, `>` and `&`, so that it cannot close the block. Content longer
 * than `maxChars` is cut in the middle; the names of files take a quarter of it at most.
 */
export function agentContext(
  record: RunRecord,
  maxChars: number = DEFAULT_CHARS,
  files: readonly { readonly path: string; readonly size: number }[] = [],
): string {
  if (!Number.isSafeInteger(maxChars) || maxChars < 0)
    throw new TypeError(`maxChars: ${formatValue(maxChars)} is not a whole number of at least 0`)
  const { runId, status, success, mode, attempts, steps, finalData, partial, error } = record
  const rounds = mode === 'plan' ? `attempts="${attempts.length}"` : `steps="${steps.length}"`
  const head = `<tool_execution run_id="${attribute(runId)}" mode="${mode}" status="${status}" success="${success}" ${rounds}>`
  const names = formatFiles(files, Math.floor(maxChars / FILES_SHARE))
  const left = Math.max(0, maxChars - names.length)
  const body = success
    ? element('result', jsonElementText(finalData, left))
    : [
        element('error', elementText(error ?? 'the task failed', left)),
        ...(partial === null ? [] : [element('partial_result', jsonElementText(partial, left))]),
      ].join('\n')
  const list = names === '' ? '' : `\n${element('files', names)}`
  return `${head}\n${body}${list}\n</tool_execution>`
}

/** The first files that fit, one per line, and the number of the others. The note on the others may exceed `max`. */
function formatFiles(files: readonly { readonly path: string; readonly size: number }[], max: number): string {
  const lines: string[] = []
  let length = 0
  for (const { path, size } of files) {
    const line = escapeXml(`${JSON.stringify(path)} (${size} bytes)`)
    length += line.length + 1
    if (length > max) break
    lines.push(line)
  }
  const missing = files.length - lines.length
  return [...lines, ...(missing === 0 ? [] : [`… ${missing} files left out …`])].join('\n')
}

function element(name: string, content: string): string {
  return `<${name}>\n${content}\n</${name}>`
}

/** Escapes within JSON strings, so that the text stays valid JSON. */
function jsonElementText(value: unknown, max: number): string {
  const text = (JSON.stringify(value) ?? 'null').replaceAll(
    /[<>&\u007F-\u009F\u2028-\u202E\u2066-\u2069\uFFFE\uFFFF]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return truncateMiddle(text, max, '\n')
}

function elementText(text: string, max: number): string {
  // Half an escape is not valid XML.
  return truncateMiddle(escapeXml(text), max, '\n').replace(/&[a-z]{0,3}\n…/, '\n…')
}

function attribute(text: string): string {
  return escapeXml(text).replaceAll('"', '&quot;')
}

function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(UNFIT, '\uFFFD')
}

/** Characters that XML forbids, that control terminals, or that reverse the direction of a text. */
const UNFIT =
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFFFE\uFFFF]/g
