import { expect, test } from 'vitest'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'

/** Measures these values, and counts how many were asked for. */
function measured(...values: readonly number[]): { measure: () => Promise<number>; count: () => number } {
  let at = 0
  return { measure: () => Promise.resolve(values[at++] ?? Number.NaN), count: () => at }
}

test('one attempt is enough if it keeps the bound', async () => {
  const { measure, count } = measured(10, 1)
  expect([await leastOf(3, 10, measure), count()]).toEqual([10, 1])
})

test('what never keeps it is measured three times, and the least is told', async () => {
  const { measure, count } = measured(30, 11, 20, 1)
  expect([await leastOf(3, 10, measure), count()]).toEqual([11, 3])
})

test('an attempt that fails ends all', async () => {
  let attempts = 0
  const measure = (): Promise<number> => {
    attempts += 1
    return Promise.reject(new Error('it broke'))
  }
  await expect(leastOf(3, 10, measure)).rejects.toThrow('it broke')
  expect(attempts).toBe(1)
})

test('a measurement that is no number keeps no bound', async () => {
  expect((await leastOf(3, 10, measured().measure)) <= 10).toBe(false)
})
