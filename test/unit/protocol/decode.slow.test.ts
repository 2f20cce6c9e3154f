import { expect, test } from 'vitest'
import { measureBest } from '../../support/measure-best.ts'
import { decodeLine } from '../../../src/protocol/index.ts'

test('half a million levels neither throw nor overflow the stack', () => {
  expect(kindOf(nest(500_000))).not.toBe('frame')
  expect(kindOf(`[12345678901234567,${nest(500_000)}]`)).not.toBe('frame')
})

test.each<[string, string]>([
  ['keys', `{${Array.from({ length: 110_000 }, (_, n) => `"${n.toString(36)}":0`).join()},"z":${'9'.repeat(15)}}`],
  [
    'keys, and an exponent that is suspect',
    `{${Array.from({ length: 110_000 }, (_, n) => `"${n}":0`).join()},"z":1e300}`,
  ],
  ['empty objects', `[${'{},'.repeat(349_000)}{}]`],
  ['large numbers', `[${'1e308,'.repeat(174_000)}1]`],
  ['long integers', `[${'9007199254740991,'.repeat(61_000)}1]`],
])('1 MiB of %s takes the host no longer than 250 ms', (_, data) => {
  const line = Buffer.from(`{"type":"final_result","execution_id":"e","data":${data}}`)
  expect(line.length / 1024 / 1024).toBeCloseTo(1, 0)
  let kind = ''
  expect(measureBest(() => (kind = decodeLine(line).kind))).toBeLessThan(250)
  expect(kind).toBe('frame')
})

function nest(levels: number): string {
  return `${'['.repeat(levels)}${']'.repeat(levels)}`
}

/** The kind that the decoder returns for a result with this data. */
function kindOf(data: string): string {
  return decodeLine(Buffer.from(`{"type":"final_result","execution_id":"e","data":${data}}`)).kind
}
