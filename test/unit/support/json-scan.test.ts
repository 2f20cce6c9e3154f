import { describe, expect, test } from 'vitest'
import { parseBounded, scanJson } from '../../../src/support/index.ts'

const scan = (text: string): unknown => scanJson(Buffer.from(text))

describe('the scan of a JSON text', () => {
  test.each<[string, number, number]>([
    ['1', 0, 0],
    ['[]', 1, 1],
    ['[1,2,3]', 3, 1],
    ['{"a":[{}],"b":"c"}', 6, 3],
    [' [ "[{,:" , "\\"," , "\\\\" ] ', 3, 1],
    ['"unfinished [[[', 0, 0],
    ['"ends in an escape\\', 0, 0],
    [']]]][', 1, 0],
    ['["ü€😀,"]', 1, 1],
  ])('%s has %i parts, %i levels deep', (text, parts, depth) => {
    expect(scan(text)).toEqual({ parts, depth, unsafeNumber: undefined })
  })

  test('counts at least the actual number of values', () => {
    const value = { a: [1, { b: null }, 'x,y:z{'], c: [[], {}, [[1]]], d: {} }
    expect(scanJson(Buffer.from(JSON.stringify(value))).parts + 1).toBeGreaterThanOrEqual(count(value))
  })

  test.each<[string, string | undefined]>([
    ['9007199254740991', undefined],
    ['-9007199254740992', 'an integer beyond 2^53'],
    ['0.12345678901234567890', undefined],
    ['12345678901234567890.0', undefined],
    ['12345678901234567890e0', undefined],
    ['1e308', undefined],
    ['1e-999', undefined],
    ['1e0000309', 'a number too large for a double'],
    ['179.7e+306', undefined],
    ['1799.9E306', 'a number too large for a double'],
    [`-${'9'.repeat(309)}.5`, 'a number too large for a double'],
    [`0.${'9'.repeat(400)}`, undefined],
    ['"12345678901234567890"', undefined],
  ])('the number %s: %s', (number, unsafeNumber) => {
    expect(scan(`{"a":[1,${number}]}`)).toMatchObject({ unsafeNumber })
  })
})

describe('a bounded parse', () => {
  test('returns the value of JSON.parse', () => {
    expect(parseBounded('{"a":[1]}')).toEqual({ a: [1] })
    expect(() => parseBounded('{')).toThrow(SyntaxError)
  })

  test('refuses text with too many values or levels before it is parsed', () => {
    expect(() => parseBounded('[1,2,3', { parts: 2 })).toThrow(new RangeError('more than 2 values'))
    expect(() => parseBounded('[[[', { depth: 2 })).toThrow(new RangeError('nested deeper than 2'))
  })
})

/** The values and keys in a value. */
function count(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  const keys = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, item) => sum + count(item), 1 + keys)
}
