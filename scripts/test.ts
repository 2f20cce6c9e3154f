/**
 * The tests of one rung: `node scripts/test.ts [unit | default | postgres | cluster | all] [arguments for vitest]`. The Python
 * tests of the harness run beside vitest. Then it prints their output, the engines side by side, and the slowest files. The last
 * line is the sum: `N passed, N failed`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { runPythonTests } from './python-tests.ts'
import { type ReportedFile, type ReportedTest, sideBySide } from './side-by-side.ts'
import { formatCounts, NO_TESTS, ONE_FAILURE, sum, type TestCounts } from './test-counts.ts'

interface Rung {
  /** The projects of vitest.config.ts that it runs. */
  readonly projects: readonly string[]
  /** The number of Pythons that run the harness's own tests. */
  readonly pythons: number
  /** The engine that it tests, and nothing else: without it, the rung would be green and have tested nothing. */
  readonly requires?: string
}

const RUNGS = {
  unit: { projects: ['unit', 'timers'], pythons: 0 },
  default: { projects: ['waiting', 'library', 'unit', 'timers', 'sandbox'], pythons: 1 },
  postgres: { projects: ['postgres'], pythons: 0 },
  cluster: { projects: ['cluster'], pythons: 0, requires: 'kubernetes' },
  all: {
    projects: ['waiting', 'library', 'unit', 'timers', 'sandbox', 'slow', 'daemon', 'postgres', 'paired', 'campaign'],
    pythons: Infinity,
  },
} satisfies Readonly<Record<string, Rung>>

const ROOT = resolve(import.meta.dirname, '..')
const SLOWEST = 10

/** The outcome of one run of vitest. */
export interface VitestRun {
  readonly counts: TestCounts
  /** The table that compares engines; empty when no suite of engines ran. */
  readonly tables: string
  /** The slowest files, one per line. */
  readonly slowest: string
  /** Tests that began and did not finish because their process ended, one per line. */
  readonly unfinished: string
}

interface VitestFile extends ReportedFile {
  readonly startTime: number
  readonly endTime: number
  readonly assertionResults: readonly (ReportedTest & { readonly title: string })[]
}

/** The parts of vitest's JSON report that are read. */
interface VitestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly VitestFile[]
}

/** Runs vitest, which prints as it goes. */
export async function runVitest(args: readonly string[]): Promise<VitestRun> {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-tests-'))
  try {
    const report = join(folder, 'report.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const vitest = spawn('vitest', ['run', ...reporters, ...args], { stdio: ['ignore', 'inherit', 'inherit'] })
    const [exitCode] = (await once(vitest, 'close').catch((error: unknown) => {
      console.error(`vitest did not start: ${String(error)}`)
      return [null]
    })) as [number | null]
    return readReport(report, exitCode)
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
    return { counts: ONE_FAILURE, tables: '', slowest: '', unfinished: '' }
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
  return {
    counts: sum([counts, unexplained ? ONE_FAILURE : NO_TESTS]),
    tables: sideBySide(report.testResults),
    slowest: slowestOf(report),
    unfinished: unfinishedOf(report),
  }
}

function slowestOf({ testResults }: VitestReport): string {
  return testResults
    .map(({ name, startTime, endTime }) => ({ name: relative(ROOT, name), seconds: (endTime - startTime) / 1000 }))
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST)
    .map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}`)
    .join('\n')
}

/** Lists pending tests, because vitest does not name the file of a worker that ends silently. A skipped test has another status. */
function unfinishedOf({ testResults }: VitestReport): string {
  return testResults
    .flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'pending')
        .map(({ title }) => `    ${relative(ROOT, name)}: ${title}`),
    )
    .join('\n')
}

/** The end of the output: tables, slowest files, the counts of each program, and the sum as the last line. */
export function closing({ counts, tables, slowest, unfinished }: VitestRun, python: TestCounts): string {
  return [
    ...(tables === '' ? [] : [`\n${tables}\n`]),
    ...(slowest === '' ? [] : [`slowest files:\n${slowest}\n`]),
    ...(unfinished === '' ? [] : [`did not finish:\n${unfinished}\n`]),
    `from vitest: ${formatCounts(counts)}`,
    `from unittest: ${formatCounts(python)}`,
    formatCounts(sum([counts, python])),
  ].join('\n')
}

function withRequired(name: string): string {
  return [process.env['SANDGLASS_TEST_REQUIRE'], name].filter((one) => one !== undefined && one !== '').join(',')
}

if (import.meta.main) {
  const [name = 'default', ...rest] = process.argv.slice(2)
  const isRung = Object.hasOwn(RUNGS, name)
  const rung: Rung = RUNGS[isRung ? (name as keyof typeof RUNGS) : 'default']
  const { projects, pythons, requires } = rung
  if (requires !== undefined) process.env['SANDGLASS_TEST_REQUIRE'] = withRequired(requires)
  const vitestRun = runVitest([
    ...projects.map((project) => `--project=${project}`),
    ...(isRung ? rest : process.argv.slice(2)),
  ])
  // The tests of a Python are idle for half of their time, like the files that vitest begins with. Those of five interpreters end
  // beside the project `library`, and before the unit rung, whose tests keep two processors busy (vitest.config.ts).
  const pythonRun = pythons === 0 ? { counts: NO_TESTS, text: '' } : runPythonTests(pythons)
  const vitest = await vitestRun
  const { counts: python, text } = await pythonRun
  if (text !== '') console.log(text)
  console.log(closing(vitest, python))
  process.exitCode = vitest.counts.failed + python.failed > 0 ? 1 : 0
}
