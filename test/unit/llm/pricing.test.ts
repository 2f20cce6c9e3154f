import { describe, expect, test } from 'vitest'
import { checkPricing, costOf, type Pricing } from '../../../src/llm/index.ts'

const usage = { promptTokens: 1000, cachedPromptTokens: 400, completionTokens: 200 }
const pricing: Pricing = { m: { input: 2, output: 10, cachedInput: 0.5 }, 'm-mini': { input: 1, output: 4 } }

describe('the cost of a model call', () => {
  test('is the sum for prompt, cached prompt and answer, per million tokens', () => {
    expect(costOf('m', usage, pricing)).toBe((600 * 2 + 400 * 0.5 + 200 * 10) / 1e6)
    expect(costOf('m-mini', usage, pricing)).toBe((1000 * 1 + 200 * 4) / 1e6)
    expect(costOf('m', { ...usage, cachedPromptTokens: 5000 }, pricing)).toBe((1000 * 0.5 + 200 * 10) / 1e6)
  })

  test.each([
    ['m-2026-01-31', 'm'],
    ['m-20260131', 'm'],
    ['m-mini-2026-01-31', 'm-mini'],
  ])('%s has the price of %s', (dated, name) => {
    expect(costOf(dated, usage, pricing)).toBe(costOf(name, usage, pricing))
  })

  test('is not known for a model without a price', () => {
    for (const model of ['m-large', 'M', 'toString', 'm-latest', null]) expect(costOf(model, usage, pricing)).toBe(null)
    expect(costOf('m', usage, {})).toBe(null)
  })

  test('a single price applies to a model that does not report its name', () => {
    expect(costOf(null, usage, { m: { input: 1, output: 1 } })).toBe(0.0012)
  })

  test('has no rounding errors of binary fractions', () => {
    expect(
      costOf('m', { promptTokens: 3, cachedPromptTokens: 0, completionTokens: 0 }, { m: { input: 0.1, output: 1 } }),
    ).toBe(3e-7)
  })
})

test.each<[unknown, RegExp]>([
  [[], /^pricing: must be an object/],
  [{ m: 3 }, /^pricing\["m"\]: must be/],
  [{ m: { input: 1 } }, /^pricing\["m"\]\.output: undefined is not a number of at least 0/],
  [{ m: { input: -1, output: 1 } }, /input/],
  [{ m: { input: 1, output: Number.NaN } }, /output/],
  [{ m: { input: 1, output: 1, cachedInput: '1' } }, /cachedInput/],
  [{ m: { input: 1, outptu: 1 } }, /outptu.*output/],
])('prices that are wrong are named: %j', (given, message) => {
  expect(() => checkPricing(given as Pricing)).toThrow(TypeError)
  expect(() => checkPricing(given as Pricing)).toThrow(message)
})
