/**
 * All tests: vitest and the Python tests of the harness. The last line printed is the sum: `N passed, N failed`.
 * Arguments are handed to vitest: `npm test -- test/protocol`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runPythonTests } from './python-tests.ts'
import { formatCounts, NO_TESTS, ONE_FAILURE, sum, type TestCounts } from './test-counts.ts'

/** The parts of vitest's JSON report that are counted. */
interface VitestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

function runVitest(args: readonly string[]): TestCounts {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-tests-'))
  try {
    const report = join(folder, 'report.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const run = spawnSync('vitest', ['run', ...reporters, ...args], { stdio: ['ignore', 'inherit', 'inherit'] })
    if (run.error !== undefined) console.error(`vitest did not start: ${run.error.message}`)
    return readReport(report, run.status)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readReport(path: string, exitCode: number | null): TestCounts {
  let report: VitestReport
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport
  } catch {
    console.error('vitest: ended without a report')
    return ONE_FAILURE
  }
  // A file that failed to load, or a failed hook, fails its file without failing one of its tests.
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const counts = {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles,
    skipped: report.numPendingTests + report.numTodoTests,
  }
  // Unhandled rejections and the like end vitest with 1 although every test passed.
  const unexplained = counts.failed === 0 && exitCode !== 0
  return sum([counts, unexplained ? ONE_FAILURE : NO_TESTS])
}

const vitest = runVitest(process.argv.slice(2))
const python = runPythonTests()
const total = sum([vitest, python])
console.log(`from vitest: ${formatCounts(vitest)}`)
console.log(`from unittest: ${formatCounts(python)}`)
console.log(formatCounts(total))
process.exitCode = total.failed > 0 ? 1 : 0
