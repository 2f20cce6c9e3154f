/**
 * All tests: vitest and the Python tests of the harness, then what the suites that run on every engine came to, engines
 * side by side. The last line printed is the sum: `N passed, N failed`. Arguments are handed to vitest:
 * `npm test -- test/protocol`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ReportedFile, sideBySide } from '../test/report/side-by-side.ts'
import { runPythonTests } from './python-tests.ts'
import { formatCounts, NO_TESTS, ONE_FAILURE, sum, type TestCounts } from './test-counts.ts'

/** What vitest's tests came to. */
export interface VitestRun {
  readonly counts: TestCounts
  /** The engines side by side; empty when no suite of engines ran. */
  readonly tables: string
}

/** The parts of vitest's JSON report that are read. */
interface VitestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly ReportedFile[]
}

/** Runs vitest, which prints as it goes. */
export function runVitest(args: readonly string[]): VitestRun {
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

function readReport(path: string, exitCode: number | null): VitestRun {
  let report: VitestReport
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport
  } catch {
    console.error('vitest: ended without a report')
    return { counts: ONE_FAILURE, tables: '' }
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
  return { counts: sum([counts, unexplained ? ONE_FAILURE : NO_TESTS]), tables: sideBySide(report.testResults) }
}

/** What is printed when all is over: the tables, what each program counted, and the sum as the last line. */
export function closing({ counts, tables }: VitestRun, python: TestCounts): string {
  return [
    ...(tables === '' ? [] : [`\n${tables}\n`]),
    `from vitest: ${formatCounts(counts)}`,
    `from unittest: ${formatCounts(python)}`,
    formatCounts(sum([counts, python])),
  ].join('\n')
}

if (import.meta.main) {
  const vitest = runVitest(process.argv.slice(2))
  const python = runPythonTests()
  console.log(closing(vitest, python))
  process.exitCode = vitest.counts.failed + python.failed > 0 ? 1 : 0
}
