import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireLocalEngine } from '../local-engine.ts'
import type { Told } from '../support/descriptors-host.ts'
import { scopedDirectory } from './local/state-dir.ts'

const HOST = join(import.meta.dirname, '../support/descriptors-host.ts')
const LIMIT = 256
/** A host has no other descriptors than its own: those of a test runner would count. */
const ALONE = 'import os, sys; os.closerange(3, 4096); os.execvp(sys.argv[1], sys.argv[1:])'
const MOST = 18
const STEP = 6
const TIMEOUT_MS = 300_000

const { skip: noLocal } = await requireLocalEngine()

test.skipIf(noLocal)(
  'local: a host without descriptors is told so, loses no limit by it and leaves nothing',
  { timeout: TIMEOUT_MS },
  () => {
    const { found, sandboxes, left } = toldBy('local')
    expect(problemsIn(found)).toEqual([])
    expect(found.map(({ limits }) => limits)).toEqual(found.map(() => found[0]?.limits))
    expect([sandboxes > 0, left]).toEqual([true, undefined])
  },
)

test.skipIf(process.platform !== 'linux')(
  'pyodide: a host without descriptors is told so',
  { timeout: TIMEOUT_MS },
  () => {
    expect(problemsIn(toldBy('pyodide').found)).toEqual([])
  },
)

function toldBy(engine: 'local' | 'pyodide'): Told {
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
      String(MOST),
      String(STEP),
    ],
    {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], SANDGLASS_STATE_DIR: state.path },
    },
  )
  if (status !== 0) throw new Error(`the host ended with ${status}: ${stderr}`)
  return JSON.parse(stdout) as Told
}

/** With none at all every script is refused, with enough none; each refusal has its code, names the cause and is of the moment. */
function problemsIn(found: Told['found']): unknown[] {
  return found.filter(({ free, said, retryable, later }) => {
    const isRefused = /^sandbox_setup_failed: .*no file descriptor left.*EMFILE/.test(said) && retryable === true
    const isRight = free === 0 ? isRefused : isRefused || said === 'completed'
    return !isRight || later !== 'completed' || (free === MOST && said !== 'completed')
  })
}
