import { expect, test } from 'vitest'
import { jsonLine } from '../../../src/cli/json-line.ts'

test('a line of JSON contains no line separators of any reader and no control characters', () => {
  const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('')
  const value = { [`a\u2028b`]: [`\u2029${controls}`, 'ä€😀\ud800'] }
  const line = jsonLine(value)
  expect(JSON.parse(line)).toEqual(value)
  expect(line.endsWith('\n')).toBe(true)
  // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
  expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
  expect(jsonLine('ä€😀 \u2028')).toBe('"ä€😀 \\u2028"\n')
})
