import { expect, test } from 'vitest'
import { countText } from '../../../src/support/index.ts'

test('a number is written as `toLocaleString` writes it', () => {
  const numbers = [0, 7, 999, 1000, 12_345, 100_000, 1_234_567, 1e15, -1, -999, -1000, -123_456, 0.5, 1234.5, 1234.125]
  expect(numbers.map((number) => countText(number))).toEqual(numbers.map((number) => number.toLocaleString('en-US')))
})
