import { expect, test } from 'vitest'
import { type ReportedFile, sideBySide } from '../../../scripts/side-by-side.ts'

function file(name: string, tests: readonly (readonly [string, string])[], status = 'passed'): ReportedFile {
  const assertionResults = tests.map(([row, state]) => ({
    ancestorTitles: row === '' ? ['outermost'] : ['outermost', row],
    status: state,
  }))
  return { name: `/repo/test/${name}`, status, assertionResults }
}

test('engines are columns with the counts of passed, failed and skipped tests', () => {
  const files = [
    file('campaign/adversarial/docker/cases.test.ts', [
      ['', 'passed'],
      ['network', 'passed'],
      ['network', 'failed'],
      ['pool', 'skipped'],
    ]),
    file('daemon/conformance/gvisor.test.ts', [['life', 'pending']]),
    file('daemon/conformance/docker.test.ts', [
      ['life', 'passed'],
      ['', 'passed'],
    ]),
    file('sandbox/conformance/local.test.ts', [
      ['life', 'passed'],
      ['life', 'todo'],
    ]),
    file('campaign/adversarial/local/cases.test.ts', [['network', 'passed']]),
    file('campaign/adversarial/local/supervisor.test.ts', [['has no survivor', 'passed']]),
    file('campaign/adversarial/driver.test.ts', [['', 'failed']]),
    file('unit/pool/lease.test.ts', [['', 'failed']]),
  ]
  expect(sideBySide(files)).toBe(
    `
conformance               local                      | docker                     | gvisor
                            passed   failed left out |   passed   failed left out |   passed   failed left out
life                             1        0        1 |        1        0        0 |        0        0        1
clean-up                         -                   |        1        0        0 |        -
all                              1        0        1 |        2        0        0 |        0        0        1

adversarial               local                      | docker
                            passed   failed left out |   passed   failed left out
the list of cases                -                   |        1        0        0
network                          1        0        0 |        1        1        0
pool                             -                   |        0        0        1
supervisor                       1        0        0 |        -
all                              2        0        0 |        2        1        1
`.trim(),
  )
})

test('a file that did not load is a failure of its engine', () => {
  const [, , row] = sideBySide([file('daemon/conformance/docker.test.ts', [], 'failed')]).split('\n')
  expect(row).toBe('did not load                     0        1        0')
})

test('a report without these suites has no table', () => {
  const tests = [['', 'passed']] as const
  expect(
    sideBySide([file('unit/pool/lease.test.ts', tests), file('unit/adversarial/fresh/claims.test.ts', tests)]),
  ).toBe('')
})
