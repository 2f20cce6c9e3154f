/** Runs the harness's unit tests with each Python >= 3.10 of this machine: `node scripts/python-tests.ts`. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { findPythons, type Python } from './find-pythons.ts'
import { formatCounts, ONE_FAILURE, sum, type TestCounts } from './test-counts.ts'

const HARNESS = join(import.meta.dirname, '../harness')
const RUNNER = join(import.meta.dirname, 'unittest_counts.py')
const TIMEOUT_MS = 600_000
/** The tests are idle for half of their time, so two interpreters do not slow each other. */
const MAX_CONCURRENT = 2

/** The result of one interpreter on one folder of tests. */
export interface PythonRun {
  readonly counts: TestCounts
  /** Lines that name each skipped test and its reason. */
  readonly skips: readonly string[]
  /** Its output, and the reason if it did not run. */
  readonly output: string
}

/** The sum of the tests of all interpreters, and a text about them. */
export interface PythonReport {
  readonly counts: TestCounts
  readonly text: string
}

/** Runs the tests with at most `limit` interpreters, the oldest first, a few at a time. Reports them in that order. */
export async function runPythonTests(limit: number = Infinity): Promise<PythonReport> {
  const pythons = findPythons().slice(0, limit)
  if (pythons.length === 0) {
    const text = 'python: no Python >= 3.10 was found; install python3 (3.10 or later) and run the tests again'
    return { counts: ONE_FAILURE, text }
  }
  const reports: PythonReport[] = []
  const waiting = pythons.entries()
  const runInTurn = async (): Promise<void> => {
    for (const [place, python] of waiting) reports[place] = await runAndReport(python)
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, runInTurn))
  return { counts: sum(reports.map(({ counts }) => counts)), text: reports.map(({ text }) => text).join('\n') }
}

async function runAndReport(python: Python): Promise<PythonReport> {
  const name = `python ${python.version} (${python.executable})`
  const { counts, skips, output } = await runUnittests(python.executable, HARNESS)
  const lines = [
    ...(counts.failed > 0 ? [`\n${name} FAILED in harness/tests:\n${output}`] : []),
    ...skips.map((line) => `  ${line}`),
    `${name}: ${formatCounts(counts)}`,
  ]
  return { counts, text: lines.join('\n') }
}

/** Runs the tests of `top/tests` with one interpreter. `top` is the folder that tests import from. */
export async function runUnittests(executable: string, top: string): Promise<PythonRun> {
  // With an `__init__.py` the tests are a package and may import from one another by `from . import`.
  const asPackage = existsSync(join(top, 'tests', '__init__.py'))
  const { error, stdout, stderr } = await new Promise<Ended>((resolve) => {
    execFile(
      executable,
      [RUNNER, 'tests', asPackage ? '.' : 'tests'],
      {
        cwd: top,
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
        maxBuffer: 64 * 1024 * 1024,
        timeout: TIMEOUT_MS,
        killSignal: 'SIGKILL',
      },
      (failure, out, err) => resolve({ error: failure, stdout: out, stderr: err }),
    ).stdin?.end()
  })
  const counts = error === null ? readCounts(stdout) : undefined
  const output = [stdout, stderr, error?.message ?? (counts === undefined ? 'no test finished' : '')].join('\n')
  const skips = stderr.split('\n').filter((line) => / \.\.\. skipped /.test(line))
  return { counts: counts ?? ONE_FAILURE, skips, output }
}

/** The output of an interpreter, and the reason if it did not end with 0. */
interface Ended {
  readonly error: Error | null
  readonly stdout: string
  readonly stderr: string
}

/** The last line of the runner; undefined if it is missing or counts no tests, which is a failure. */
function readCounts(stdout: string): TestCounts | undefined {
  const line = stdout.trimEnd().split('\n').at(-1) ?? ''
  if (!/^\{"passed": \d+, "failed": \d+, "skipped": \d+\}$/.test(line)) return undefined
  const counts = JSON.parse(line) as TestCounts
  return counts.passed + counts.failed + counts.skipped === 0 ? undefined : counts
}

if (import.meta.main) {
  const { counts, text } = await runPythonTests()
  console.log(`${text}\n${formatCounts(counts)}`)
  process.exitCode = counts.failed > 0 ? 1 : 0
}
