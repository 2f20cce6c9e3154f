import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  isWarningCode,
  LATE_ERROR_CODES,
  OUTCOME_OF_CAUSE,
  outcomeOfWireKind,
  type OutcomeRow,
  OUTCOMES,
  WARNING_CODES,
} from '../../../src/outcomes/index.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const rows: readonly OutcomeRow[] = Object.values(OUTCOMES)

describe('the table of outcomes', () => {
  test('has each status with its error kind and exit code', () => {
    const told = rows.map(({ status, errorKind, exitCode }) => `${status} ${errorKind} ${exitCode}`)
    expect([...new Set(told)]).toEqual([
      'completed null 0',
      'step-done null 0',
      'failed error 1',
      'crashed crash 1',
      'invalid-request invalid_request 2',
      'failed invalid_request 2',
      'rejected validation 3',
      'timed-out timeout 4',
      'memory-limit oom 5',
      'output-limit output_limit 6',
      'sandbox-lost infrastructure 7',
      'sandbox-lost infrastructure 8',
      'sandbox-lost infrastructure 9',
      'cancelled cancelled 130',
      'interrupted cancelled 130',
      'failed internal 70',
    ])
  })

  test('has one row for each cause of an ending, and none is a clean end', () => {
    const causes = rows.flatMap((row) => row.causes)
    expect(Object.keys(OUTCOME_OF_CAUSE).toSorted()).toEqual(causes.toSorted())
    expect(new Set(causes).size).toBe(causes.length)
    expect(Object.values(OUTCOME_OF_CAUSE).filter((name) => (OUTCOMES[name] as OutcomeRow).errorKind === null)).toEqual(
      [],
    )
  })

  test('has each kind of error of the wire, and takes an unknown one as a failure', () => {
    const schema = readFileSync(join(ROOT, 'src/protocol/schema.json'), 'utf8')
    const [, description = ''] = /"description": "(exception, .*)"/.exec(schema) ?? []
    expect(rows.flatMap((row) => row.wireKinds).toSorted()).toEqual(description.split(/, | or /).toSorted())
    expect([outcomeOfWireKind('memory'), outcomeOfWireKind('made_up')]).toEqual(['outOfMemory', 'failed'])
  })

  test('has the warning that an error frame becomes after a result', () => {
    expect([...LATE_ERROR_CODES].toSorted()).toEqual([
      'cancelled',
      'crash',
      'error_after_result',
      'memory_limit',
      'output_limit',
      'timeout',
    ])
  })
})

describe('the table of warnings', () => {
  const read = (pattern: string): string =>
    globSync(pattern, { cwd: ROOT })
      .map((path) => readFileSync(join(ROOT, path), 'utf8'))
      .join('\n')

  test('has every code that the harness sends', () => {
    // A code in an error belongs to a tool call or an activity; one with a line is a violation.
    const sent = read('harness/sandglass_harness/**/*.py').matchAll(
      /(?<!error"?\s*[:=]\s*\{)"code": "(\w+)"(?!, "line")/g,
    )
    const codes = [...new Set([...sent].map(([, code = '']) => code))]
    expect(codes).toContain('collect_skipped')
    expect(codes.filter((code) => !isWarningCode(code))).toEqual([])
  })

  test('has no unused code', () => {
    const sources = `${read('src/{executor,cli,engines/pyodide/workspace}/*.ts')}${read('src/dependencies.ts')}${read('src/outcomes/outcomes.ts')}${read('harness/sandglass_harness/**/*.py')}`
    const unused = Object.keys(WARNING_CODES).filter(
      (code) => !sources.includes(`'${code}'`) && !sources.includes(`"${code}"`),
    )
    expect(unused).toEqual([])
  })
})
