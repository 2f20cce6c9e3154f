import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { findPythons } from '../../../../scripts/find-pythons.ts'
import { readRequest, REQUEST_FIELDS } from '../../../../src/engines/pyodide/request-shape.ts'
import { hostFrames } from '../../../../src/protocol/index.ts'
import { measureBest } from '../../../support/measure-best.ts'

const READ = `
import json, sys
from sandglass_harness.broker import request_shape
def verdict(line):
    try:
        request_shape.read(line.encode("latin-1"))
    except ValueError as error:
        return str(error)
    return "sound"
json.dump([verdict(line) for line in json.load(sys.stdin)], sys.stdout)
`

const SOUND: Readonly<Record<keyof typeof hostFrames, object>> = {
  execute: {
    type: 'execute',
    execution_id: 'e1',
    script: 'pass',
    mode: 'plan',
    timeout_sec: 1,
    max_output_bytes: 100,
    inputs: {},
    secrets: {},
    required_secrets: [],
    collect: [],
    limits: {},
  },
  check: {
    type: 'check',
    execution_id: 'e1',
    script: 'pass',
    mode: 'plan',
    policy: 'strict',
    timeout_sec: 0.5,
    names: [],
    allow_modules: [],
    tools: [],
  },
  tool_result: { type: 'tool_result', execution_id: 'e1', id: '1', result: null },
  tool_time: { type: 'tool_time', execution_id: 'e1', executed_ms: 1.5, executing: true },
  file_put: { type: 'file_put', execution_id: 'e1', path: 'a', mode: 0o644, offset: 0, content_base64: '' },
  cancel: { type: 'cancel', execution_id: 'e1' },
  ping: { type: 'ping', nonce: '' },
  reset: { type: 'reset', nonce: 'x' },
}
const SOURCE = { name: 'f', source: '', stub: '' }
const VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  -0.5,
  511,
  512,
  2 ** 60,
  '',
  'text',
  'é'.repeat(64),
  '😀'.repeat(65),
  'x'.repeat(256),
  '😀'.repeat(257),
  [],
  ['a'],
  ['a', 1],
  [{}],
  [{ name: 'f' }],
  [[]],
  [SOURCE],
  [SOURCE, { ...SOURCE, stub: null }],
  {},
  { a: 'b' },
  { a: 1 },
  { memory_bytes: 1 },
  { memory_bytes: 0 },
  { pids: null },
  { pids: 1.5 },
  { pids: true },
  { max_files: 1 },
  { max_files: null, max_file_bytes: 1 },
  { max_total_bytes: 0 },
]
const LINES: readonly string[] = [
  'x',
  '{',
  '[]',
  '1',
  '"text"',
  'null',
  '{}',
  '{"type":5}',
  '{"type":"later","nonce":5}',
  '{"type":"__proto__"}',
  '{"type":"constructor"}',
  '{"type":"ping","nonce":NaN}',
  '{"type":"ping","nonce":"a","nonce":5}',
  '{"type":"ping","__proto__":{"nonce":"a"}}',
  '{"type":"execute","inputs":{"a":1e400}}',
  '{"type":"ping","nonce":"1e400"}',
  '[-1e999]',
  '\u00EF\u00BB\u00BF{"type":"ping","nonce":""}',
  '{"type":"ping","nonce":"\u00FF"}',
  '  {"nonce":"a", "type":"ping"}\r',
]

function allLines(): string[] {
  const frames = Object.entries(SOUND).flatMap(([type, frame]) => [
    frame,
    ...Object.keys(REQUEST_FIELDS[type as keyof typeof SOUND]).flatMap((name) =>
      VALUES.map((value) => ({ ...frame, [name]: value })),
    ),
  ])
  return [...LINES, ...frames.map((frame) => Buffer.from(JSON.stringify(frame)).toString('latin1'))]
}

function verdictOf(line: string): string {
  try {
    readRequest(Buffer.from(line, 'latin1'))
  } catch (error) {
    return (error as Error).message
  }
  return 'sound'
}

let executable = 'python3'
beforeAll(() => {
  executable = findPythons()[0]?.executable ?? executable
})

test('both brokers accept and refuse the same requests, with the same messages', () => {
  const lines = allLines()
  const { stdout, stderr } = spawnSync(executable, ['-B', '-c', READ], {
    cwd: join(import.meta.dirname, '../../../../harness'),
    input: JSON.stringify(lines),
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  const verdicts = JSON.parse(stdout) as string[]
  expect(lines.map((line) => [line, verdictOf(line)])).toEqual(lines.map((line, at) => [line, verdicts[at]]))
  expect(verdicts.filter((verdict) => verdict === 'sound').length).toBeGreaterThan(100)
  expect(verdicts.filter((verdict) => verdict !== 'sound').length).toBeGreaterThan(400)
})

test('both accept all requests that the schema of the host accepts', () => {
  const accepted = allLines()
    .filter((line) => line.startsWith('{"type"') && !/NaN|__proto__|\u00FF/.test(line))
    .filter((line) => {
      const frame = JSON.parse(Buffer.from(line, 'latin1').toString()) as { type: string }
      if (!Object.hasOwn(hostFrames, frame.type)) return false
      return hostFrames[frame.type as keyof typeof hostFrames].safeParse(frame).success
    })
  expect(accepted.length).toBeGreaterThan(50)
  expect(accepted.filter((line) => verdictOf(line) !== 'sound')).toEqual([])
})

test('rejects a number that is too large by its exponent alone', () => {
  const line = (number: string): Buffer =>
    Buffer.from(`{"type":"tool_result","execution_id":"e","id":"1","result":[${number}]}`)
  for (const number of ['1e309', `${'9'.repeat(250)}e99`, '9'.repeat(400), '-1E+400']) {
    expect(() => readRequest(line(number))).toThrow('a number is beyond the range of a float')
  }
  for (const number of ['1e308', '"1e999"', '9'.repeat(308)]) expect(() => readRequest(line(number))).not.toThrow()
})

test('reads a script that is all digits about as fast as JSON is parsed', () => {
  const line = Buffer.from(JSON.stringify({ ...SOUND.execute, script: `${'1'.repeat(308)}x`.repeat(4000) }))
  const parsing = measureBest(() => JSON.parse(line.toString()))
  // A search that restarts at each digit takes over a second.
  expect(measureBest(() => readRequest(line))).toBeLessThan(Math.max(60 * parsing, 300))
})
