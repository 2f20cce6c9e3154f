import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RequestRate } from '../../../../src/engines/kubernetes/request-rate.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('requests go in order, 40 at once after a quiet time and 40 in each second after them', async () => {
  const rate = new RequestRate()
  const sentMs: number[] = []
  const order: number[] = []
  const startMs = performance.now()
  for (let place = 0; place < 200; place += 1) {
    void rate.turn().then(() => {
      order.push(place)
      sentMs.push(performance.now() - startMs)
    })
  }
  await vi.advanceTimersByTimeAsync(4100)
  expect(order).toEqual(Array.from({ length: 200 }, (_, place) => place))
  expect(sentMs.filter((ms) => ms === 0)).toHaveLength(40)
  const inSecond = sentMs.map((from) => sentMs.filter((ms) => ms >= from && ms < from + 1000).length)
  expect(Math.max(...inSecond)).toBeLessThanOrEqual(80)

  sentMs.length = 0
  await vi.advanceTimersByTimeAsync(60_000)
  const late = performance.now()
  for (let place = 0; place < 41; place += 1) void rate.turn().then(() => sentMs.push(performance.now() - late))
  await vi.advanceTimersByTimeAsync(100)
  expect(sentMs).toEqual([...Array.from({ length: 40 }, () => 0), 25])
})
