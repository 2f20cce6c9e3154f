import type { Failure } from './failure.ts'
import { hintsFor } from './hints.ts'
import { cut, json } from './history.ts'

const MAX_VIOLATIONS = 20
const MAX_TRACEBACK = 4000
const MAX_ERROR = 2000
const MAX_OUTPUT = 1000
const MAX_CALLS = 5
const MAX_WRITES = 20
const MAX_ARGS = 300
const WRITES =
  'Calls that took effect already, in this script or an earlier one. They stay; do not make them again for the same thing:'

/**
 * What was wrong, precisely, and what to do about it (requirement OR-02). What the script or a tool said stands behind
 * `| ` or in the middle of a line: it cannot begin a paragraph of its own, nor end a fence.
 * @param fields names of what the tools answer with, for wrong keys.
 */
export function feedbackOn(failure: Failure, fields: readonly string[] = []): string {
  const { violations, traceback, stdout, stderr, failedCalls, writes, repetition } = failure
  const parts = [repetition ?? '']
  if (violations.length > 0) {
    parts.push('The script was not run, because it has mistakes:', violationLines(failure))
  } else {
    const [first = '', ...more] = linesOf(cut(failure.error, MAX_ERROR))
    parts.push(first, quoted(more))
    if (traceback !== null) parts.push(quoted(linesOf(cut(traceback.trimEnd(), MAX_TRACEBACK))))
    parts.push(failingLine(failure) ?? '')
  }
  if (failedCalls.length > 0) {
    const calls = failedCalls.slice(-MAX_CALLS).map(({ name, code, message }) => {
      return `- ${linesOf(`${name}: ${code}: ${cut(message, MAX_OUTPUT)}`).join(' ')}`
    })
    parts.push('Tool calls that failed:', ...calls)
  }
  if (writes.length > 0) {
    const left = writes.length - MAX_WRITES
    const calls = writes.slice(-MAX_WRITES).map(({ name, args }) => `- ${name}: ${cut(json(args), MAX_ARGS)}`)
    parts.push(WRITES, ...(left > 0 ? [`- (${left} earlier ones are not shown)`] : []), ...calls)
  }
  parts.push(...hintsFor(failure, fields).map((hint) => `Hint: ${linesOf(hint).join(' ')}`))
  if (stdout.trim() !== '') parts.push('It printed before:', quoted(linesOf(cut(stdout.trimEnd(), MAX_OUTPUT))))
  if (stderr.trim() !== '') parts.push('It wrote to stderr:', quoted(linesOf(cut(stderr.trimEnd(), MAX_OUTPUT))))
  return parts
    .filter((part) => part !== '')
    .join('\n')
    .replaceAll('```', "'''")
}

/** The line of the script that failed, from 1, or null. */
export function failedLineOf(traceback: string | null): number | null {
  const numbers = [...(traceback ?? '').matchAll(/File "<script>", line (\d+)/g)].map(([, number]) => Number(number))
  return numbers.at(-1) ?? null
}

function violationLines({ violations, script }: Failure): string {
  const lines = (script ?? '').split('\n')
  const shown = violations.slice(0, MAX_VIOLATIONS).map(({ code, line, column, message, hint }) => {
    const source = linesOf(lines[line - 1] ?? '').join(' ')
    return [
      `- line ${line}: ${linesOf(message).join(' ')} (${code})`,
      ...(source.trim() === '' ? [] : [`  | ${source}`, `  | ${' '.repeat(Math.max(0, column))}^`]),
      ...(hint === '' ? [] : [`  Hint: ${linesOf(hint).join(' ')}`]),
    ].join('\n')
  })
  const more = violations.length - shown.length
  return [...shown, ...(more > 0 ? [`- and ${more} more`] : [])].join('\n')
}

/** The script's own line that the last frame of a traceback names. */
function failingLine({ script, traceback }: Failure): string | undefined {
  const number = failedLineOf(traceback)
  const source = number === null ? undefined : script?.split('\n')[number - 1]?.trim()
  return source === undefined || source === '' ? undefined : `Line ${number} of the script is: ${source}`
}

/** Everything that ends a line for somebody. */
function linesOf(text: string): string[] {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text.split(/\r\n|[\n\r\v\f\u001C-\u001E\u0085\u2028\u2029]/)
}

function quoted(lines: readonly string[]): string {
  return lines.map((line) => `| ${line}`).join('\n')
}
