import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { allProcesses } from '../../support/processes.ts'

const { skip } = await requireLocalEngine()
const support = (name: string): string => fileURLToPath(new URL(`../../support/${name}`, import.meta.url))

describe.skipIf(skip)('sessions', () => {
  test('survive on a kernel that cannot keep activities apart, where none beside them gets secrets', async () => {
    const args = [support('without-landlock.py'), process.execPath, support('weak-session.main.ts')]
    const { stdout } = await promisify(execFile)('python3', args)
    expect(JSON.parse(stdout)).toEqual({
      trust: 'shared',
      secret: 11,
      states: ['rolled-back', 'rolled-back'],
      ended: ['sleep'],
      besideIt: 'secrets_not_separate',
      kept: [1, 1],
      left: '0',
    })
  })

  test('leave nothing when their host is killed: eight with five checkpoints each', async () => {
    const mark = `s${process.pid}`
    const left = (): number => allProcesses().filter(({ pid }) => nameOf(pid).endsWith(mark)).length
    const host = spawn(process.execPath, [support('sessions-host.main.ts'), mark], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(host.stdout, 'data')
    onTestFinished(() => void host.kill('SIGKILL'))
    // Copies are named for their origin. Heads, the copies after their last cells, and checkpoints.
    expect(left()).toBeGreaterThanOrEqual(8 * 6)
    host.kill('SIGKILL')
    expect(await eventually(() => (left() === 0 ? undefined : `${left()} run`), 5000)).toBeUndefined()
  })
})

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return '' // it has ended
  }
}
