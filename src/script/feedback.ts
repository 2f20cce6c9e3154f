import type { Violation } from '../executor/index.ts'
import type { CheckedTool } from '../protocol/index.ts'
import { truncate, truncateMiddle } from '../support/index.ts'
import { hintsFor } from './hints.ts'
import { inertJson } from './history.ts'

const MAX_VIOLATIONS = 20
const MAX_TRACEBACK = 4000
const MAX_ERROR = 2000
const MAX_OUTPUT = 1000
const MAX_CALLS = 5
const MAX_WRITES = 20
const MAX_ARGS = 300
const WRITES =
  'These calls already took effect, in this script or an earlier one. They are not undone; do not repeat them for the same purpose:'
const UNCERTAIN_WRITES =
  'These calls failed or were not answered, in this script or an earlier one, and may have had an effect. It is not undone; do not repeat them unless you know that they had none:'
const MAX_FIELDS = 500
/** Maximum characters of an excerpt of a line, and of the excerpt before the error. */
const MAX_SOURCE = 200
const MAX_BEFORE = 100
/** Field names that are safe in a sentence of a prompt. */
const PLAIN_FIELD = /^[\p{L}\p{N}_$@.:/ -]{1,60}$/u

/** A tool call in the feedback. */
interface ListedCall {
  readonly name: string
  readonly args: unknown
}

/** A failed attempt, as the next prompt reports it. */
export interface Failure {
  /** The script, or null if the answer held none. */
  readonly script: string | null
  /** The error in one sentence. */
  readonly error: string
  readonly traceback: string | null
  /** The violations that the checker found; if there are any, the script did not run. */
  readonly violations: readonly Violation[]
  /** The output of the script before it failed. */
  readonly stdout: string
  readonly stderr: string
  /** Failed tool calls, with the error that the script received. */
  readonly failedCalls: readonly { readonly name: string; readonly code: string; readonly message: string }[]
  /** Remarks of the host on the run. */
  readonly warnings: readonly string[]
  /** Successful calls of this task with the effect `write`: another script does not undo them. */
  readonly writes: readonly ListedCall[]
  /** Calls of this task with the effect `write` that failed or were not answered, and may have had an effect. */
  readonly uncertainWrites: readonly ListedCall[]
  /** A sentence that says which earlier attempt this one repeats, or null. */
  readonly repetition: string | null
}

/**
 * Describes the failure and how to fix it. Text of the script or a tool is prefixed with `| ` or placed inside
 * a line, so that it cannot start a paragraph or close a fence.
 * @param fields field names in the results of the tools, for hints on wrong keys.
 * @param files the list of the existing files in the words of the prompts; empty if there are none.
 */
export function feedbackOn(failure: Failure, fields: readonly string[] = [], files: string = ''): string {
  const { violations, traceback, stdout, stderr, failedCalls, repetition } = failure
  const parts = [repetition ?? '']
  if (violations.length > 0) {
    parts.push('The script did not run, because the check found mistakes:', violationLines(failure))
  } else {
    const [first = '', ...more] = linesOf(truncateMiddle(failure.error, MAX_ERROR))
    parts.push(first, quote(more))
    if (traceback !== null) parts.push(quote(linesOf(truncateMiddle(traceback.trimEnd(), MAX_TRACEBACK))))
    parts.push(failingLine(failure) ?? '')
  }
  if (failedCalls.length > 0) {
    const calls = failedCalls.slice(-MAX_CALLS).map(({ name, code, message }) => {
      return `- ${linesOf(`${name}: ${code}: ${truncateMiddle(message, MAX_OUTPUT)}`).join(' ')}`
    })
    parts.push('Tool calls that failed:', ...calls)
  }
  parts.push(...callLines(WRITES, failure.writes), ...callLines(UNCERTAIN_WRITES, failure.uncertainWrites))
  parts.push(...failure.warnings.map((warning) => `Warning: ${oneLine(warning)}`))
  parts.push(...hintsFor(failure, fields, files).map((hint) => `Hint: ${linesOf(hint).join(' ')}`))
  if (stdout.trim() !== '')
    parts.push('Output before the failure:', quote(linesOf(truncateMiddle(stdout.trimEnd(), MAX_OUTPUT))))
  if (stderr.trim() !== '')
    parts.push('Output on stderr:', quote(linesOf(truncateMiddle(stderr.trimEnd(), MAX_OUTPUT))))
  return parts
    .filter((part) => part !== '')
    .join('\n')
    .replaceAll('```', "'''")
}

/** The last calls, below their title; nothing if there are none. */
function callLines(title: string, calls: readonly ListedCall[]): string[] {
  if (calls.length === 0) return []
  const left = calls.length - MAX_WRITES
  const lines = calls
    .slice(-MAX_WRITES)
    .map(({ name, args }) => `- ${name}: ${truncateMiddle(inertJson(args), MAX_ARGS)}`)
  return [title, ...(left > 0 ? [`- (${left} earlier ones are not shown)`] : []), ...lines]
}

/** The number of the line that failed, from 1, or null. */
export function failedLineOf(traceback: string | null): number | null {
  const numbers = [...(traceback ?? '').matchAll(/File "<script>", line (\d+)/g)].map(([, number]) => Number(number))
  return numbers.at(-1) ?? null
}

function violationLines({ violations, script }: Failure): string {
  const lines = (script ?? '').split('\n')
  const shown = violations.slice(0, MAX_VIOLATIONS).map(({ code, line, column, message, hint }) => {
    const { source, place } = excerptAround(linesOf(lines[line - 1] ?? '').join(' '), Math.max(0, column))
    return [
      `- line ${line}: ${oneLine(message)} (${code})`,
      ...(source.trim() === '' ? [] : [`  | ${source}`, `  | ${' '.repeat(place)}^`]),
      ...(hint === '' ? [] : [`  Hint: ${oneLine(hint)}`]),
    ].join('\n')
  })
  const more = violations.length - shown.length
  return [...shown, ...(more > 0 ? [`- and ${more} more`] : [])].join('\n')
}

/** The part of a long line around a position. */
function excerptAround(source: string, place: number): { source: string; place: number } {
  if (source.length <= MAX_SOURCE) return { source, place: Math.min(place, source.length) }
  const from = Math.max(0, Math.min(place, source.length) - MAX_BEFORE)
  const before = from === 0 ? '' : '…'
  const part = before + truncate(source.slice(from).toWellFormed(), MAX_SOURCE)
  return { source: part, place: Math.min(place - from + before.length, part.length) }
}

function oneLine(text: string): string {
  return linesOf(truncateMiddle(text, MAX_OUTPUT)).join(' ')
}

/** The source of the line that the last frame of the traceback names. */
function failingLine({ script, traceback }: Failure): string | undefined {
  const number = failedLineOf(traceback)
  const source = number === null ? undefined : script?.split('\n')[number - 1]?.trim()
  return source === undefined || source === ''
    ? undefined
    : `Line ${number} of the script is: ${truncate(source, MAX_SOURCE)}`
}

/** Splits a text at every character that some reader treats as a line end. */

function linesOf(text: string): string[] {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text.split(/\r\n|[\n\r\v\f\u001C-\u001E\u0085\u2028\u2029]/)
}

function quote(lines: readonly string[]): string {
  return lines.map((line) => `| ${line}`).join('\n')
}

/** The field names in the results of tools, from their schemas, without duplicates. */
export function fieldsOf(tools: readonly Pick<CheckedTool, 'result'>[]): readonly string[] {
  const found = new Set<string>()
  for (const { result } of tools) collectFields(result, found)
  return [...found]
}

function collectFields(schema: unknown, found: Set<string>): void {
  if (typeof schema !== 'object' || schema === null || found.size >= MAX_FIELDS) return
  for (const [key, value] of Object.entries<unknown>({ ...schema })) {
    if (key === 'properties' && typeof value === 'object' && value !== null) {
      for (const name of Object.keys(value)) if (PLAIN_FIELD.test(name)) found.add(name)
    }
    collectFields(value, found)
  }
}
