import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Progress } from '../../../src/cli/progress.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function progressAfter(seconds: number, statuses: readonly string[]): Progress {
  const progress = new Progress()
  for (const status of statuses) progress.countAnswer(status)
  vi.advanceTimersByTime(seconds * 1000)
  return progress
}

it('the last line of a batch tells the rate and the CPU time of a request', () => {
  const progress = progressAfter(2, ['completed', 'failed', 'completed'])
  expect(progress.summary(12.6)).toBe('3 answered, 1 failed in 0:02 (1.5/s, 4.2 ms CPU each)')
})

it('leaves out of the last line what is unknown', () => {
  expect(progressAfter(2, ['completed']).summary(null)).toBe('1 answered, 0 failed in 0:02 (0.5/s)')
  expect(progressAfter(2, []).summary(12)).toBe('0 answered, 0 failed in 0:02 (0.0/s)')
})
