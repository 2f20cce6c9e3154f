import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import type { ExecutionResult } from '../../../src/executor/index.ts'
import type { ErrorKind, ExecutionStatus } from '../../../src/outcomes/index.ts'
import { OWN_ID } from '../corpus.ts'
import { between, naiveJson } from '../naive-lines.ts'

/** Every status, with what may stand beside it. */
const STATUSES: Readonly<Record<ExecutionStatus, readonly (ErrorKind | null)[]>> = {
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
}

/**
 * Holds a result to the bytes that it came of, which are read here without any of the code under test.
 * @throws Error when it has a status that is none, or data that no frame of the run has.
 */
export function checkResult(result: ExecutionResult, bytes: Buffer): void {
  checkStatus(result)
  strictEqual(result.executionId, OWN_ID)
  const own = ownFrames(bytes)
  const texts = (type: string, field: string): string[] =>
    own.filter((frame) => frame['type'] === type).map((frame) => comparable(frame[field]))
  if (result.success) {
    ok(texts('final_result', 'data').includes(comparable(result.finalData)), 'a result that no frame of the run has')
  } else {
    strictEqual(result.finalData, null)
  }
  within(
    result.logs.map(({ message }) => message),
    texts('log', 'message'),
    'logs',
  )
  within(
    result.intermediates.map(({ data }) => data),
    texts('intermediate', 'data'),
    'intermediates',
  )
  ok(result.stdout.length <= texts('stdout', 'text').join('').length + SLACK, 'more stdout than frames of it')
}

/** @throws Error when the status is none, or something stands beside it that does not go with it. */
export function checkStatus(result: ExecutionResult): void {
  ok(Object.hasOwn(STATUSES, result.status), `the status ${result.status} is none`)
  ok(STATUSES[result.status].includes(result.errorKind), `${result.status} with ${result.errorKind}`)
  deepStrictEqual([result.success, result.success], [result.hasResult, result.status === 'completed'])
  strictEqual(result.error === null, result.errorKind === null)
}

/** The characters that a marker in place of a secret may add. */
const SLACK = 4096

function within(got: readonly unknown[], own: readonly string[], what: string): void {
  let at = 0
  for (const item of got.map(comparable)) {
    at = own.indexOf(item, at) + 1
    ok(at > 0, `${what}: one that no frame of the run has, or in another order`)
  }
}

/** Objects of the run on lines between newlines; of what is no JSON nothing. */
function ownFrames(bytes: Buffer): Record<string, unknown>[] {
  return between(bytes).map(naiveJson).filter(isOwn).filter(hasText)
}

/** A value for which JSON.stringify has no stack is deeper than any frame may be. */
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

/** As JSON, with the secret of some cases out of it on both sides. */
function comparable(value: unknown): string {
  return (JSON.stringify(value) ?? 'undefined').replaceAll('division', '').replaceAll('[redacted:KEY]', '')
}
