import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { closing, runVitest } from '../../../scripts/test.ts'

/** Replaces vitest: writes a prepared report and exits with a given code. */
const STAND_IN = `#!/bin/sh
for arg; do case $arg in --outputFile.json=*) cp "$(dirname "$0")/report.json" "\${arg#*=}" ;; esac; done
exit $STAND_IN_EXIT
`

const ROOT = resolve(import.meta.dirname, '../../..')

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sandglass-test-program-'))
  writeFileSync(join(directory, 'vitest'), STAND_IN)
  chmodSync(join(directory, 'vitest'), 0o755)
  vi.stubEnv('PATH', `${directory}:${process.env['PATH'] ?? ''}`)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true })
})

/** The final output when vitest reports these files (name, status of each test) and ends with this code. */
async function runTests(files: readonly [string, readonly string[]][], exitCode: number): Promise<string> {
  const statuses = files.flatMap(([, all]) => all)
  const count = (status: string): number => statuses.filter((one) => one === status).length
  const report = {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numPendingTests: count('skipped'),
    numTodoTests: 0,
    testResults: files.map(([name, all], index) => ({
      name: join(ROOT, 'test', name),
      startTime: 0,
      endTime: 1500 * index,
      status: all.includes('failed') ? 'failed' : 'passed',
      assertionResults: all.map((status) => ({ ancestorTitles: ['an engine', 'life'], title: 'works', status })),
    })),
  }
  writeFileSync(join(directory, 'report.json'), JSON.stringify(report))
  vi.stubEnv('STAND_IN_EXIT', String(exitCode))
  return closing(await runVitest([]), { passed: 40, failed: 0, skipped: 0 })
}

test('the table of engines and the slowest files precede the counts, and the sum is the last line', async () => {
  const files: [string, string[]][] = [
    ['sandbox/conformance/local.test.ts', ['passed', 'passed']],
    ['daemon/conformance/docker.test.ts', ['passed', 'failed']],
    ['daemon/conformance/gvisor.test.ts', ['skipped']],
    ['campaign/adversarial/docker/cases.test.ts', ['passed']],
    ['unit/pool/lease.test.ts', ['passed']],
  ]
  expect(await runTests(files, 1)).toBe(`
conformance               local                      | docker                     | gvisor
                            passed   failed left out |   passed   failed left out |   passed   failed left out
life                             2        0        0 |        1        1        0 |        0        0        1
all                              2        0        0 |        1        1        0 |        0        0        1

adversarial               docker
                            passed   failed left out
life                             1        0        0
all                              1        0        0

slowest files:
     6.0 s  test/unit/pool/lease.test.ts
     4.5 s  test/campaign/adversarial/docker/cases.test.ts
     3.0 s  test/daemon/conformance/gvisor.test.ts
     1.5 s  test/daemon/conformance/docker.test.ts
     0.0 s  test/sandbox/conformance/local.test.ts

from vitest: 5 passed, 1 failed, 1 skipped
from unittest: 40 passed, 0 failed
45 passed, 1 failed, 1 skipped`)
})

test('without a suite of engines there are no tables', async () => {
  expect(await runTests([['unit/pool/lease.test.ts', ['passed']]], 0)).toBe(
    [
      'slowest files:\n     0.0 s  test/unit/pool/lease.test.ts\n',
      'from vitest: 1 passed, 0 failed',
      'from unittest: 40 passed, 0 failed',
      '41 passed, 0 failed',
    ].join('\n'),
  )
})

test('a failed exit of vitest although every test passed counts as one failure', async () => {
  const output = await runTests([['unit/pool/lease.test.ts', ['passed']]], 1)
  expect(output.split('\n').at(-1)).toBe('41 passed, 1 failed')
})

test('a test whose process ended before it did is named', async () => {
  expect(await runTests([['sandbox/cli/run.test.ts', ['passed', 'pending', 'skipped']]], 1)).toContain(
    'did not finish:\n    test/sandbox/cli/run.test.ts: works\n',
  )
})
