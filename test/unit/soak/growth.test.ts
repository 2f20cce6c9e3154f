import { describe, expect, test } from 'vitest'
import { growthOf, type Point } from '../../../campaigns/soak/growth.ts'
import { Random } from '../../support/random.ts'

const BOUND = { mibPerHour: 4, mib: 2, warmUpHours: 0 }

/** An hour of samples, one per minute, with noise of at most this amount in each direction. */
function series(value: (hours: number) => number, noiseMib: number, seed: number, count = 60): Point[] {
  const random = new Random(seed)
  return Array.from({ length: count }, (_, minute) => ({
    hours: minute / 60,
    mib: value(minute / 60) + (random.fraction() * 2 - 1) * noiseMib,
  }))
}

describe('growth of memory', () => {
  const seeds = Array.from({ length: 200 }, (_, index) => index + 1)

  test('a leak of 10 MiB/h in noise of 3 MiB is found whatever the noise', () => {
    const missed = seeds.filter(
      (seed) =>
        !growthOf(
          series((hours) => 100 + 10 * hours, 3, seed),
          BOUND,
        ).grows,
    )
    expect(missed).toEqual([])
  })

  test('noise of 20 MiB around a constant is not growth', () => {
    const flagged = seeds.filter(
      (seed) =>
        growthOf(
          series(() => 100, 20, seed),
          BOUND,
        ).grows,
    )
    expect(flagged).toEqual([])
  })

  test('a slope below the bound is not growth, however certain it is', () => {
    const { grows, mibPerHour } = growthOf(
      series((hours) => 100 + 3 * hours, 0, 1),
      BOUND,
    )
    expect([grows, Math.round(mibPerHour)]).toEqual([false, 3])
  })

  test('a warm-up of 60 MiB in the first minutes is not growth', () => {
    const warm = series((hours) => 160 - 60 * Math.exp(-hours * 30), 2, 1)
    expect(growthOf(warm, BOUND).grows).toBe(false)
  })

  test('a spike of 500 MiB is not growth', () => {
    const points = series(() => 100, 1, 1).map((point, index) => (index === 50 ? { ...point, mib: 600 } : point))
    expect(growthOf(points, BOUND).grows).toBe(false)
  })

  test('a series that falls is not growth', () => {
    expect(
      growthOf(
        series((hours) => 100 - 10 * hours, 1, 1),
        BOUND,
      ).grows,
    ).toBe(false)
  })

  test('half a minute with a small gain is not growth, even if its slope is high', () => {
    const short = series((hours) => 100 + hours, 0, 1, 12).map(({ hours, mib }) => ({ hours: hours / 24, mib }))
    expect(growthOf(short, BOUND).grows).toBe(false)
  })

  test('ignored samples at the beginning have no effect', () => {
    const points = series((hours) => 100 + (hours < 0.5 ? 100 * hours : 50), 1, 1)
    const found = [0, 0.5].map((warmUpHours) => growthOf(points, { ...BOUND, warmUpHours }).grows)
    expect(found).toEqual([true, false])
  })

  test('fewer than eight samples after the warm-up give no verdict', () => {
    const { judged, grows } = growthOf(
      series((hours) => 100 + 1000 * hours, 0, 1, 9),
      BOUND,
    )
    expect({ judged, grows }).toEqual({ judged: false, grows: false })
  })
})
