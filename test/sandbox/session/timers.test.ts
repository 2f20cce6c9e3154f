import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'

let sg: Sandglass
let workspace: Workspace
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
  workspace = await sg.workspace()
})
afterAll(() => sg?.close())

const HANDLED = 'import signal\nrang = []\nsignal.signal(signal.SIGALRM, lambda *_: rang.append(1))\n'

test('a timer that a cell sets rings in a later one, also when it repeats, and after a rollback and a restore', async () => {
  await using session = await workspace.session()
  await session.run(`${HANDLED}signal.setitimer(signal.ITIMER_REAL, 0.3)`)
  expect(await session.run('0')).toMatchObject({ state: 'kept' })
  expect(await session.run('while not rang: pass\nrang', { timeoutSec: 5 })).toMatchObject({ value: [1] })
  await session.run('rang.clear(); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)')
  const checkpoint = await session.checkpoint()
  const next = 'before = len(rang)\nwhile len(rang) < before + 2: pass'
  expect(await session.run(next, { timeoutSec: 5 })).toMatchObject({ error: null })
  const stopped = 'rang.clear(); signal.setitimer(signal.ITIMER_REAL, 0)\nimport os; os._exit(1)'
  expect(await session.run(stopped)).toMatchObject({ state: 'rolled-back', missing: [] })
  expect(await session.run(next, { timeoutSec: 5 })).toMatchObject({ error: null })
  expect(await session.run('signal.setitimer(signal.ITIMER_REAL, 0)[1]')).toMatchObject({ value: 0.05 })
  expect(await session.run('signal.getitimer(signal.ITIMER_REAL)')).toMatchObject({ value: [0, 0] })
  await session.restore(checkpoint)
  expect(await session.run(next, { timeoutSec: 5 })).toMatchObject({ error: null })
})

test.for([
  ['a timer of its own', `${HANDLED}signal.setitimer(signal.ITIMER_REAL, 1000)`],
  ['a handler of its own', HANDLED],
  ['a handler that raises', 'import signal\ndef f(*_): raise OSError\nsignal.signal(signal.SIGALRM, f)'],
  ['no handler', 'import signal\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)'],
  ['a signal that it ignores', 'import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)'],
  ['a signal that it blocks', 'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])'],
] as const)('a cell with %s for the alarm reaches its timeout, and so does a later one', async ([, cell]) => {
  await using session = await workspace.session()
  const endless = 'while True:\n    try:\n        while True: len("")\n    except OSError: pass'
  expect(await session.run(`${cell}\n${endless}`, { timeoutSec: 0.2 })).toMatchObject({
    status: 'timed-out',
    state: 'rolled-back',
    error: 'Script timed out after 0.2s',
  })
  await session.run(`x = 1\n${cell}`)
  expect(await session.run(`x = 2\n${endless}`, { timeoutSec: 0.2 })).toMatchObject({
    status: 'timed-out',
    state: 'rolled-back',
  })
  expect(await session.run('x')).toMatchObject({ value: 1 })
})

test('an alarm without a handler ends the process of a session, as that of any program', async () => {
  await using session = await workspace.session()
  await session.run('x = 1')
  const ended = await session.run('x = 2\nimport signal; signal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()')
  expect(ended).toMatchObject({
    status: 'crashed',
    state: 'rolled-back',
    error: expect.stringContaining('SIGALRM') as string,
  })
  expect(await session.run('x')).toMatchObject({ value: 1 })
})

test('a program that has replaced a script or a cell is timed out like it', async () => {
  const code = 'import os\nos.execvp("sleep", ["sleep", "1000"])'
  const timedOut = { status: 'timed-out', error: 'Script timed out after 0.5s' }
  expect(await sg.run(code, { limits: { executionTimeoutSec: 0.5 } })).toMatchObject(timedOut)
  await using session = await workspace.session()
  await session.run('x = 1')
  expect(await session.run(code, { timeoutSec: 0.5 })).toMatchObject({ ...timedOut, state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: 1 })
  // The same signal before that time is one of the cell.
  const early = await session.run(
    'import os, signal; signal.signal(signal.SIGRTMAX, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGRTMAX)',
  )
  expect(early).toMatchObject({ status: 'crashed', state: 'rolled-back' })
})
