import { expect, test } from 'vitest'
import { formatCounts, sum } from '../../../scripts/test-counts.ts'

test('the counts of several test programs are added and shown in one line', () => {
  const total = sum([
    { passed: 2, failed: 0, skipped: 1 },
    { passed: 3, failed: 1, skipped: 0 },
  ])
  expect(formatCounts(total)).toBe('5 passed, 1 failed, 1 skipped')
})

test('a line without skipped tests does not mention them', () => {
  expect(formatCounts({ passed: 5, failed: 0, skipped: 0 })).toBe('5 passed, 0 failed')
})
