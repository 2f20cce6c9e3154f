import { describe, expect, test } from 'vitest'
import { sameData } from '../../../src/orchestrator/index.ts'

const circular = (): object => {
  const made: Record<string, unknown> = { a: [] }
  made['self'] = made
  return made
}
const nest = (depth: number): unknown => Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 1)

describe('the equality of two results (OR-04, PAR-012)', () => {
  test.each([
    [1, 1],
    [0, -0],
    [Number.NaN, Number.NaN],
    ['a', 'a'],
    [null, null],
    [undefined, undefined],
    [
      { a: 1, b: [1, { c: 2 }] },
      { b: [1, { c: 2 }], a: 1 },
    ],
    [{ a: 1, b: undefined }, { a: 1 }],
    [[], []],
    [{}, {}],
    [nest(150), nest(150)],
  ])('%j is %j', (a, b) => {
    expect([sameData(a, b), sameData(b, a)]).toEqual([true, true])
  })

  test.each([
    [1, '1'],
    [1, true],
    [0, null],
    [null, undefined],
    [null, {}],
    [[], {}],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], [1, undefined]],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: undefined, b: 1 }, { a: 1 }],
    [{ a: [1] }, { a: { 0: 1 } }],
    [{ __proto__: null, a: 1 }, {}],
  ])('%j is not %j', (a, b) => {
    expect([sameData(a, b), sameData(b, a)]).toEqual([false, false])
  })

  test('circular values are equal only if they are identical, and nothing is thrown', () => {
    const one = circular()
    expect(sameData(one, one)).toBe(true)
    expect(sameData(one, circular())).toBe(false)
    expect(sameData(circular(), { a: [] })).toBe(false)
    expect(sameData(nest(10_000), nest(10_000))).toBe(false)
  })
})
