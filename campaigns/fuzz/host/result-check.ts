import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import type { ExecutionResult } from '../../../src/executor/index.ts'
import type { ErrorKind, ExecutionStatus } from '../../../src/outcomes/index.ts'
import { OWN_ID } from '../corpus.ts'
import { naiveJson, splitLines } from '../naive-lines.ts'

/** The error kinds that each status allows. */
const ALLOWED_ERROR_KINDS: Readonly<Record<ExecutionStatus, readonly (ErrorKind | null)[]>> = {
  completed: [null],
  'step-done': [null],
  failed: ['error', 'invalid_request', 'internal'],
  crashed: ['crash'],
  rejected: ['validation'],
  'timed-out': ['timeout'],
  'output-limit': ['output_limit'],
  'memory-limit': ['oom'],
  'sandbox-lost': ['infrastructure'],
  cancelled: ['cancelled'],
  interrupted: ['cancelled'],
}

/**
 * Compares a result with the bytes from which it was made, parsed without the code under test.
 * @throws Error when its status is undocumented, or its data are in no frame of the run.
 */
export function checkResult(result: ExecutionResult, bytes: Buffer): void {
  checkStatus(result)
  strictEqual(result.executionId, OWN_ID)
  const own = ownFrames(bytes)
  const texts = (type: string, field: string): string[] =>
    own.filter((frame) => frame['type'] === type).map((frame) => comparable(frame[field]))
  if (result.success) {
    ok(texts('final_result', 'data').includes(comparable(result.finalData)), 'the result is in no frame of the run')
  } else {
    strictEqual(result.finalData, null)
  }
  assertInOrder(
    result.logs.map(({ message }) => message),
    texts('log', 'message'),
    'logs',
  )
  assertInOrder(
    result.intermediates.map(({ data }) => data),
    texts('intermediate', 'data'),
    'intermediates',
  )
  ok(result.stdout.length <= texts('stdout', 'text').join('').length + SLACK, 'stdout is longer than its frames')
}

/** @throws Error when the status is undocumented, or contradicts another field. */
export function checkStatus(result: ExecutionResult): void {
  ok(Object.hasOwn(ALLOWED_ERROR_KINDS, result.status), `the status ${result.status} is undocumented`)
  ok(
    ALLOWED_ERROR_KINDS[result.status].includes(result.errorKind),
    `status ${result.status} must not have the error kind ${result.errorKind}`,
  )
  deepStrictEqual([result.success, result.success], [result.hasResult, result.status === 'completed'])
  strictEqual(result.error === null, result.errorKind === null)
}

/** The characters that redaction markers may add. */
const SLACK = 4096

function assertInOrder(got: readonly unknown[], own: readonly string[], what: string): void {
  let at = 0
  for (const item of got.map(comparable)) {
    at = own.indexOf(item, at) + 1
    ok(at > 0, `${what}: ${item.slice(0, 200)} is in no frame of the run, or out of order`)
  }
}

/** The JSON objects of the run, one per line; other lines are skipped. */
function ownFrames(bytes: Buffer): Record<string, unknown>[] {
  return splitLines(bytes).map(naiveJson).filter(isOwn).filter(hasText)
}

/** False for a value that is too deep for JSON.stringify, and so deeper than any frame may be. */
function hasText(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined
  } catch {
    return false
  }
}

function isOwn(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.hasOwn(value, 'execution_id') &&
    (value as Record<string, unknown>)['execution_id'] === OWN_ID
  )
}

/** Encodes a value as JSON without the secret of some cases and without its marker. */
function comparable(value: unknown): string {
  return (JSON.stringify(value) ?? 'undefined').replaceAll('division', '').replaceAll('[redacted:KEY]', '')
}
