import { expect, test } from 'vitest'
import { readSummary } from '../../scripts/python-tests.ts'

test.each<[string, number | null, { passed: number; failed: number; skipped: number }]>([
  ['Ran 12 tests in 0.104s\n\nOK\n', 0, { passed: 12, failed: 0, skipped: 0 }],
  ['Ran 1 test in 0.104s\n\nOK (skipped=1)\n', 0, { passed: 0, failed: 0, skipped: 1 }],
  ['Ran 9 tests in 2s\n\nFAILED (failures=1, errors=2, skipped=3)\n', 1, { passed: 3, failed: 3, skipped: 3 }],
  ['Ran 4 tests in 2s\n\nOK (skipped=1, expected failures=2)\n', 0, { passed: 3, failed: 0, skipped: 1 }],
  ['Ran 4 tests in 2s\n\nFAILED (unexpected successes=1)\n', 1, { passed: 3, failed: 1, skipped: 0 }],
])('the summary %j of unittest with exit code %j is counted', (output, exitCode, counts) => {
  expect(readSummary(output, exitCode)).toEqual(counts)
})

test.each<[string, string, number | null]>([
  ['a folder without tests', 'Ran 0 tests in 0.000s\n\nNO TESTS RAN\n', 5],
  ['a folder without tests, before Python 3.12', 'Ran 0 tests in 0.000s\n\nOK\n', 0],
  ['an interpreter that was killed', 'test_a (test_x.A.test_a) ... ', null],
  ['an interpreter that ends with an error after its last test', 'Ran 0 tests in 1s\n\nOK\n', 1],
])('%s counts as one failure', (_what, output, exitCode) => {
  expect(readSummary(output, exitCode)).toEqual({ passed: 0, failed: 1, skipped: 0 })
})
