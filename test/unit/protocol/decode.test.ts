import { describe, expect, test } from 'vitest'
import { CAPS, type DecodedLine, decodeLine, deeperThan, encodeFrame } from '../../../src/protocol/index.ts'

const result = (data: string): string => `{"type":"final_result","execution_id":"e","data":${data}}`

describe('a frame', () => {
  test('is decoded with defaults for missing fields and without unknown fields', () => {
    expect(decode('{"type":"log","execution_id":"e","message":"m","extra":1}')).toEqual({
      kind: 'frame',
      frame: { type: 'log', execution_id: 'e', message: 'm', level: 'info' },
    })
  })

  test('may be surrounded by white space, a byte order mark and a carriage return', () => {
    expect(decode(`\uFEFF  ${result('1')}\r`)).toMatchObject({ kind: 'frame' })
  })

  test('has the last of duplicate keys', () => {
    expect(
      decode('{"type":"log","type":"final_result","execution_id":"x","execution_id":"e","data":1,"data":2}'),
    ).toEqual({
      kind: 'frame',
      frame: { type: 'final_result', execution_id: 'e', data: 2 },
    })
  })

  test('keeps keys like __proto__ as data and pollutes no prototype', () => {
    const decoded = decode(result('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'))
    const data = decoded.kind === 'frame' && decoded.frame.type === 'final_result' ? decoded.frame.data : undefined
    expect(JSON.stringify(data)).toBe('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
})

describe('invalid frames', () => {
  test.each([
    ['', 'blank'],
    [' \t\r', 'blank'],
    ['\uFEFF', 'blank'],
    ['hello', 'not-json'],
    ['{broken', 'not-json'],
    ['{"type":"log","execution_id":"e"', 'not-json'],
    ['\u0000', 'not-json'],
    ['[]', 'unknown'],
    ['null', 'unknown'],
    ['"text"', 'unknown'],
    ['{}', 'unknown'],
    ['{"type":"__proto__"}', 'unknown'],
    ['{"type":"constructor"}', 'unknown'],
    ['{"type":["log"],"execution_id":"e","message":"m"}', 'unknown'],
    ['{"__proto__":{"type":"log"},"execution_id":"e","message":"m"}', 'unknown'],
    ['{"type":"log","execution_id":"e"}', 'unknown'],
    ['{"type":"log","execution_id":5,"message":"m"}', 'unknown'],
    ['{"type":"final_result","execution_id":"e"}', 'unknown'],
  ])('%j is %s', (line, kind) => {
    expect(decode(line).kind).toBe(kind)
  })

  test('invalid UTF-8 is not JSON, or is replaced inside strings', () => {
    expect(decodeLine(Uint8Array.of(0xff, 0xfe, 0x80)).kind).toBe('not-json')
    const line = Buffer.concat([
      Buffer.from('{"type":"log","execution_id":"e","message":"'),
      Buffer.of(0xff),
      Buffer.from('"}'),
    ])
    expect(decodeLine(line)).toMatchObject({ frame: { message: '\uFFFD' } })
  })
})

describe('numbers that JSON.parse would change are refused', () => {
  test.each([
    ['9007199254740993', 'an integer beyond 2^53'],
    ['[{"a":-12345678901234567890}]', 'an integer beyond 2^53'],
    ['1e400', 'a number too large for a double'],
    ['-1E+999', 'a number too large for a double'],
    ['9'.repeat(400), 'a number too large for a double'],
  ])('%s', (data, reason) => {
    expect(decode(result(data))).toEqual({ kind: 'unknown', reason })
  })

  test.each(['9007199254740991', '1e300', '0.12345678901234567890', '"12345678901234567890"', '12345678901234567.5'])(
    '%s is taken',
    (data) => {
      expect(decode(result(data)).kind).toBe('frame')
    },
  )
})

describe('a line that is too large is refused before it is parsed', () => {
  const refusal = (line: string, maxParts?: number): unknown => {
    const decoded = decodeLine(Buffer.from(line), maxParts)
    return decoded.kind === 'unknown' ? decoded.reason : decoded.kind
  }
  const numbers = (count: number): string => `[${'1,'.repeat(count)}1]`

  test('any line', () => {
    expect(refusal(result(numbers(2000)), 1000)).toBe('holds more than 1000 values')
    expect(refusal(result(numbers(2000)), 3000)).toBe('frame')
  })

  test('the arguments of a tool call', () => {
    const call = (args: string): string =>
      `{"type":"tool_call","execution_id":"e","id":"1","name":"f","line":1,"args":{"a":${args}}}`
    expect(refusal(call(numbers(CAPS.argParts + 100)))).toBe(`tool_call: holds more than ${CAPS.argParts + 32} values`)
    expect(refusal(call(numbers(CAPS.argParts - 10)))).toBe('frame')
  })

  test('a frame without script values, in which each wrong item is a separate problem', () => {
    const violations = `[${'{},'.repeat(10_000)}{}]`
    expect(refusal(`{"type":"check_result","execution_id":"e","violations":${violations}}`)).toBe(
      'check_result: holds more than 8192 values',
    )
  })
})

describe('depth', () => {
  const nest = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`

  test('200 levels of data are accepted, 300 are not', () => {
    expect(decode(result(nest(200))).kind).toBe('frame')
    expect(decode(result(nest(300))).kind).toBe('unknown')
  })

  test('deeperThan counts levels', () => {
    expect([deeperThan(1, 0), deeperThan({}, 0), deeperThan({ a: 1 }, 1), deeperThan({ a: [] }, 1)]).toEqual([
      false,
      true,
      false,
      true,
    ])
  })
})

test('an encoded frame is one line, whatever its texts contain', () => {
  const line = Buffer.from(encodeFrame({ type: 'cancel', execution_id: 'a\n"\u2028' })).toString()
  expect(line.indexOf('\n')).toBe(line.length - 1)
  expect(JSON.parse(line)).toEqual({ type: 'cancel', execution_id: 'a\n"\u2028' })
})

function decode(line: string): DecodedLine {
  return decodeLine(Buffer.from(line))
}
