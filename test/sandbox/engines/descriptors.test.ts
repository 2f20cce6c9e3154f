import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import type { HostReport } from '../../support/descriptors-host.ts'
import { scopedDirectory } from '../../support/engines/local/state-dir.ts'
import { compileCache } from '../../support/compile-cache.ts'

const HOST = join(import.meta.dirname, '../../support/descriptors-host.ts')
const LIMIT = 256
/** The host is a separate process, because the descriptors of a test runner would count. */
const ALONE = 'import os, sys; os.closerange(3, 4096); os.execvp(sys.argv[1], sys.argv[1:])'
const MAX_DESCRIPTORS = 18
const STEP = 6
const TIMEOUT_MS = 300_000

const { skip: noLocal } = await requireLocalEngine()

test.skipIf(noLocal)(
  'local: reports that a host is out of descriptors, keeps every limit and leaves nothing',
  { timeout: TIMEOUT_MS },
  () => {
    const { found, sandboxes, left } = runHost('local')
    expect(problemsIn(found)).toEqual([])
    expect(found.map(({ limits }) => limits)).toEqual(found.map(() => found[0]?.limits))
    expect([sandboxes > 0, left]).toEqual([true, undefined])
  },
)

test.skipIf(process.platform !== 'linux')(
  'pyodide: reports that a host is out of descriptors',
  { timeout: TIMEOUT_MS },
  () => {
    expect(problemsIn(runHost('pyodide').found)).toEqual([])
  },
)

function runHost(engine: 'local' | 'pyodide'): HostReport {
  using state = scopedDirectory()
  const { stdout, stderr, status } = spawnSync(
    'python3',
    [
      '-c',
      ALONE,
      'prlimit',
      `--nofile=${LIMIT}`,
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      HOST,
      engine,
      String(MAX_DESCRIPTORS),
      String(STEP),
    ],
    {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], SANDGLASS_STATE_DIR: state.path, ...compileCache() },
    },
  )
  if (status !== 0) throw new Error(`the host ended with ${status}: ${stderr}`)
  return JSON.parse(stdout) as HostReport
}

/** Checks that scripts are refused without descriptors and run with enough of them, and that each refusal is retryable with a code and its cause. */
function problemsIn(found: HostReport['found']): unknown[] {
  return found.filter(({ free, said, retryable, later }) => {
    const isRefused = /^sandbox_setup_failed: .*no file descriptor left.*EMFILE/.test(said) && retryable === true
    const isRight = free === 0 ? isRefused : isRefused || said === 'completed'
    return !isRight || later !== 'completed' || (free === MAX_DESCRIPTORS && said !== 'completed')
  })
}
