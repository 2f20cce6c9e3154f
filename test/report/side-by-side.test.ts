import { expect, test } from 'vitest'
import { type ReportedFile, sideBySide } from './side-by-side.ts'

function file(name: string, tests: readonly (readonly [string, string])[], status = 'passed'): ReportedFile {
  const assertionResults = tests.map(([row, state]) => ({
    ancestorTitles: row === '' ? ['outermost'] : ['outermost', row],
    status: state,
  }))
  return { name: `/repo/test/${name}`, status, assertionResults }
}

test('engines stand side by side, with what passed, failed and was left out', () => {
  const files = [
    file('adversarial/docker/cases.test.ts', [
      ['', 'passed'],
      ['network', 'passed'],
      ['network', 'failed'],
      ['pool', 'skipped'],
    ]),
    file('conformance/gvisor.test.ts', [['life', 'pending']]),
    file('conformance/docker.test.ts', [
      ['life', 'passed'],
      ['', 'passed'],
    ]),
    file('conformance/local.test.ts', [
      ['life', 'passed'],
      ['life', 'todo'],
    ]),
    file('adversarial/local/cases.test.ts', [['network', 'passed']]),
    file('adversarial/local/supervisor.test.ts', [['has no survivor', 'passed']]),
    file('adversarial/driver.test.ts', [['', 'failed']]),
    file('pool/lease.test.ts', [['', 'failed']]),
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
  const [, , row] = sideBySide([file('conformance/docker.test.ts', [], 'failed')]).split('\n')
  expect(row).toBe('did not load                     0        1        0')
})

test('a report without these suites has no table', () => {
  expect(sideBySide([file('pool/lease.test.ts', [['', 'passed']])])).toBe('')
})
