/** Runs the harness's own unit tests with each Python >= 3.10 of this machine: `node scripts/python-tests.ts`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { findPythons, type Python } from './find-pythons.ts'
import { formatCounts, ONE_FAILURE, sum, type TestCounts } from './test-counts.ts'

const HARNESS = join(import.meta.dirname, '../harness')
const RUNNER = join(import.meta.dirname, 'unittest_counts.py')
const TIMEOUT_MS = 600_000

/** The result of one interpreter on one folder of tests. */
export interface PythonRun {
  readonly counts: TestCounts
  /** Lines that name each skipped test and its reason. */
  readonly skips: readonly string[]
  /** Its output, and the reason if it did not run. */
  readonly output: string
}

/** Runs the tests with at most this many interpreters, the oldest first, prints the results, and sums their counts. */
export function runPythonTests(most: number = Infinity): TestCounts {
  const pythons = findPythons().slice(0, most)
  if (pythons.length === 0) {
    console.error('python: no Python >= 3.10 was found; install python3 (3.10 or later) and run the tests again')
    return ONE_FAILURE
  }
  return sum(pythons.map(runAndReport))
}

function runAndReport(python: Python): TestCounts {
  const name = `python ${python.version} (${python.executable})`
  const { counts, skips, output } = runUnittests(python.executable, HARNESS)
  if (counts.failed > 0) console.error(`\n${name} FAILED in harness/tests:\n${output}`)
  for (const line of skips) console.log(`  ${line}`)
  console.log(`${name}: ${formatCounts(counts)}`)
  return counts
}

/** Runs the tests of `top/tests` with one interpreter. `top` is the folder that tests import from. */
export function runUnittests(executable: string, top: string): PythonRun {
  // With an `__init__.py` the tests are a package and may import from one another by `from . import`.
  const asPackage = existsSync(join(top, 'tests', '__init__.py'))
  const run = spawnSync(executable, [RUNNER, 'tests', asPackage ? '.' : 'tests'], {
    cwd: top,
    encoding: 'utf8',
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const trouble = troubleOf(run)
  const counts = trouble === undefined ? readCounts(run.stdout) : undefined
  const output = [run.stdout, run.stderr, trouble ?? (counts === undefined ? 'no test was run to its end' : '')].join(
    '\n',
  )
  const skips = run.stderr.split('\n').filter((line) => / \.\.\. skipped /.test(line))
  return { counts: counts ?? ONE_FAILURE, skips, output }
}

function troubleOf(run: { error?: Error; status: number | null; signal: string | null }): string | undefined {
  if (run.error !== undefined) return run.error.message
  if (run.status !== 0) return `the runner ended with ${run.signal ?? `exit code ${run.status}`}`
  return undefined
}

/** The last line of the runner; undefined if it is missing or counts no tests, which is a failure. */
function readCounts(stdout: string): TestCounts | undefined {
  const line = stdout.trimEnd().split('\n').at(-1) ?? ''
  if (!/^\{"passed": \d+, "failed": \d+, "skipped": \d+\}$/.test(line)) return undefined
  const counts = JSON.parse(line) as TestCounts
  return counts.passed + counts.failed + counts.skipped === 0 ? undefined : counts
}

if (import.meta.main) {
  const counts = runPythonTests()
  console.log(formatCounts(counts))
  process.exitCode = counts.failed > 0 ? 1 : 0
}
