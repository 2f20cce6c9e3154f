import { describe, expect, test } from 'vitest'
import { didYouMean, nearest } from '../../../src/support/index.ts'

describe('the known name that is closest to a mistyped one', () => {
  test.each([
    ['pirce', ['rate', 'price', 'prices'], 'price'],
    ['PRICE', ['rate', 'price'], 'price'],
    ['list_ordres_of', ['list_orders', 'list_orders_of'], 'list_orders_of'],
    ['weather', ['price', 'rate'], undefined],
    ['price', [], undefined],
  ])('%s among %j', (name, known, found) => {
    expect(nearest(name, known)).toBe(found)
    expect(didYouMean(name, known)).toBe(found === undefined ? '' : ` Did you mean "${found}"?`)
  })

  test('is computed up to a length of 100, because the comparison takes quadratic time', () => {
    const known = ['x'.repeat(101)]
    expect(nearest('x'.repeat(100), known)).toBe(known[0])
    expect(nearest('x'.repeat(101), known)).toBeUndefined()
  })
})
