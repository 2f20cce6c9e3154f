/** Runs the harness's own unit tests with every Python >= 3.10 of this machine: `node scripts/python-tests.ts`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { findPythons, type Python } from './find-pythons.ts'
import { formatCounts, NO_TESTS, ONE_FAILURE, sum, type TestCounts } from './test-counts.ts'

const HARNESS = join(import.meta.dirname, '..', 'harness')
const TIMEOUT_MS = 600_000

/** The counts of all interpreters together; what happened is printed. */
export function runPythonTests(): TestCounts {
  const pythons = findPythons()
  if (pythons.length === 0) {
    console.error('python: no Python >= 3.10 was found; install python3 (3.10 or later) and run the tests again')
    return ONE_FAILURE
  }
  return sum(pythons.map(runWith))
}

function runWith(python: Python): TestCounts {
  const run = spawnSync(python.executable, ['-m', 'unittest', 'discover', '-v', ...testFolder()], {
    cwd: HARNESS,
    encoding: 'utf8',
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const counts = run.error === undefined ? readSummary(run.stderr, run.status) : ONE_FAILURE
  if (counts.failed > 0) printFailure(python, run)
  for (const line of skippedTests(run.stderr)) console.log(`  ${line}`)
  console.log(`python ${python.version} (${python.executable}): ${formatCounts(counts)}`)
  return counts
}

/** With an `__init__.py` the tests are a package and may import from one another by `from . import`. */
function testFolder(): string[] {
  return existsSync(join(HARNESS, 'tests', '__init__.py')) ? ['-s', 'tests', '-t', '.'] : ['-s', 'tests']
}

function printFailure(python: Python, run: { stdout: string; stderr: string; error?: Error }): void {
  console.error(`\npython ${python.version} (${python.executable}) FAILED in harness/tests:`)
  if (run.error !== undefined) console.error(`  ${run.error.message}`)
  console.error(run.stdout)
  console.error(run.stderr)
}

/** unittest's closing lines: `Ran 12 tests in 0.1s` and `FAILED (failures=1, errors=2, skipped=3)`. */
export function readSummary(output: string, exitCode: number | null): TestCounts {
  const ran = Number(/^Ran (\d+) tests? in /m.exec(output)?.[1] ?? 0)
  const verdict = /^(?:OK|FAILED|NO TESTS RAN)(?: \(.*\))?$/m.exec(output)?.[0] ?? ''
  const count = (word: string): number => Number(new RegExp(`(?:[(]|, )${word}=(\\d+)`).exec(verdict)?.[1] ?? 0)
  const failed = count('failures') + count('errors') + count('unexpected successes')
  const skipped = count('skipped')
  const passed = Math.max(0, ran - failed - skipped)
  // A non-zero exit, or an empty run, is a failure even where the lines above say nothing of one.
  const unexplained = failed === 0 && (exitCode !== 0 || ran === 0)
  return sum([{ passed, failed, skipped }, unexplained ? ONE_FAILURE : NO_TESTS])
}

function skippedTests(output: string): string[] {
  return output.split('\n').filter((line) => /\.\.\. skipped /.test(line))
}

if (import.meta.main) {
  const counts = runPythonTests()
  console.log(formatCounts(counts))
  process.exitCode = counts.failed > 0 ? 1 : 0
}
