import { describe, expect, test } from 'vitest'
import type { StallReport } from '../../../campaigns/fuzz/stall/measure.ts'
import { powerOf, problemsOf } from '../../../campaigns/fuzz/stall/stall.ts'

const MiB = 1024 * 1024
const cost = (size: number, cpuMs: number, stallMs = cpuMs, grownBytes = 0): StallReport['costs'][number] => ({
  size,
  cpuMs,
  stallMs,
  grownBytes,
  outcome: 'done',
})
const report = (...costs: StallReport['costs']): StallReport => ({
  name: 'n',
  from: 'a script',
  unit: 'keys',
  limitBytes: MiB,
  costs,
  grownBytes: Math.max(...costs.map(({ grownBytes }) => grownBytes)),
})

describe('the promise on stalls', () => {
  test('holds for a linear cost below the bounds', () => {
    expect(problemsOf(report(cost(1000, 3), cost(10_000, 25), cost(100_000, 240, 240, 60 * MiB)))).toEqual([])
  })

  test('does not hold for a quadratic cost, a long stall and memory', () => {
    expect(problemsOf(report(cost(1000, 2), cost(10_000, 200)))).toEqual([
      'its cost grows with the keys to the power of 2.00',
    ])
    expect(problemsOf(report(cost(10, 251)))).toEqual(['stalled the event loop for 251 ms'])
    expect(problemsOf(report(cost(10, 1, 1, 66 * MiB)))).toEqual(['memory grew by 66 MiB'])
  })

  test('has no exponent if the cost is too small', () => {
    expect(powerOf([cost(1, 0.1), cost(2, 19)])).toBe(0)
  })
})
