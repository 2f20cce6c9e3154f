import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createSandglass, defineTool, type Sandglass } from '../../../src/index.ts'

let sg: Sandglass
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
})
afterAll(() => sg?.close())

const BOMB = 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass'

test.for([
  ['a timeout', 'while True: pass', 'timed-out'],
  ['a segmentation fault', 'import ctypes; ctypes.string_at(0)', 'crashed'],
  ['os._exit', 'import os; os._exit(0)', 'crashed'],
  ['a signal', 'import os; os.kill(0, 9)', 'crashed'],
  ['closed descriptors of the harness', 'import os; os.closerange(3, 100)', 'crashed'],
  ['the memory limit', 'b = bytearray(900 << 20)', 'memory-limit'],
  ['a fork bomb', BOMB, 'timed-out'],
  ['too much output', 'while True: print("a" * 10_000)', 'output-limit'],
])('a session survives %s with its variables', async ([, cell, status]) => {
  await using session = await sg.session()
  await session.run('x = [1]')
  const broken = await session.run(`x.append(2)\n${cell}`, {
    timeoutSec: status === 'timed-out' ? 0.5 : 20,
    maxOutputBytes: 100_000,
  })
  expect(broken).toMatchObject({ status, state: 'rolled-back' })
  expect(await session.run('x.append(3)\nx')).toMatchObject({ number: 3, state: 'kept', value: [1, 3] })
  // The state after the rollback is one to go back to as well.
  expect(await session.run('x.append(4)\nimport os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: [1, 3] })
})

test('an exception rolls back if that is asked for', async () => {
  await using session = await sg.session({ onError: 'rollback' })
  await session.run('x = 1')
  expect(await session.run('x = 2\n1 / 0')).toMatchObject({ status: 'failed', state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: 1 })
  expect(await session.run('x = 3\n1 / 0', { onError: 'keep' })).toMatchObject({ status: 'failed', state: 'kept' })
  expect(await session.run('x')).toMatchObject({ value: 3 })
})

test('a rollback ends the programs and threads of the cell, and names them', async () => {
  await using session = await sg.session()
  await session.run('import os, subprocess, threading, time\nlines = []')
  const background =
    'def write():\n    while True: open("grows", "a").write("x")\nthreading.Thread(target=write).start()\nwhile not os.path.exists("grows"): pass\n'
  const broken = await session.run(`${background}subprocess.Popen(["sleep", "1000"], start_new_session=True)\n1 / 0`, {
    onError: 'rollback',
  })
  expect(broken).toMatchObject({ state: 'rolled-back', ended: ['sleep'] })
  const after = await session.run(
    'size = os.path.getsize("grows")\ntime.sleep(0.2)\n[size == os.path.getsize("grows"), threading.active_count()]',
  )
  expect(after.value).toEqual([true, 1])
})

test('processes of multiprocessing that have ended, or have not begun, can be used after a rollback and in a branch', async () => {
  await using session = await sg.session()
  await session.run(`import multiprocessing, os
fork = multiprocessing.get_context("fork")
ended, later = fork.Process(target=os._exit, args=(3,)), fork.Process(target=os._exit, args=(4,))
ended.start(); ended.join()`)
  const [branch] = await session.branch(1)
  await session.run('os._exit(1)')
  const used =
    'later.start(); later.join(); [each() for p in (ended, later) for each in (p.join, p.is_alive, lambda: p.exitcode)]'
  for (const each of [session, branch])
    expect(await each?.run(used)).toMatchObject({ error: null, value: [null, false, 3, null, false, 4] })
})

test('a timeout tells of a lock that nothing can release, in a cell and in a run, but not where a timer still may', async () => {
  const twice = 'import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()'
  // As a library in C waits: no handler of Python runs meanwhile.
  const inC = `import ctypes
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
libc.pthread_mutex_lock(mutex)`
  const ownTimer = `import signal\nsignal.signal(signal.SIGALRM, lambda *_: lock.release())
signal.setitimer(signal.ITIMER_REAL, 1000)\n${twice}`
  const tool = defineTool({ name: 'tool', description: '', input: z.object({}), effect: 'read', execute: () => 1 })
  await using session = await sg.session({ timeoutSec: 2 })
  const cells = async (): Promise<(string | null)[]> => [
    (await session.run(twice)).error,
    (await session.run(inC)).error,
    (await session.run(twice, { tools: [tool] })).error,
  ]
  const cellOfTimer = async (): Promise<string | null> => {
    await using other = await sg.session({ timeoutSec: 2 })
    return (await other.run(ownTimer)).error
  }
  const runOf = async (script: string): Promise<string | null> =>
    (await sg.run(script, { limits: { executionTimeoutSec: 2 } })).error
  const [ofCells, ...others] = await Promise.all([cells(), cellOfTimer(), runOf(ownTimer), runOf(twice), runOf(inC)])
  const told = expect.stringContaining(
    'Script timed out after 2s; it waits for a lock that nothing can release any more',
  ) as string
  const untold = 'Script timed out after 2s'
  expect(ofCells).toEqual([told, told, told])
  expect(others).toEqual([untold, untold, told, told])
})

test('a neighbour is unharmed by a rollback', async () => {
  await using workspace = await sg.workspace()
  const program = await workspace.start('sh', ['-c', 'cat'])
  await using session = await workspace.session()
  await using other = await workspace.session()
  await other.run('x = 5')
  await session.run('import os, signal')
  // It can end what belongs to its own session: the copy, too, which is made again.
  expect(await session.run('try: os.kill(-1, 9)\nexcept OSError: pass\nx = 7')).toMatchObject({ state: 'kept' })
  const broken = await session.run('while True: pass', { timeoutSec: 0.3 })
  expect(broken).toMatchObject({ state: 'rolled-back' })
  expect(program.status).toBe('running')
  expect(await other.run('x')).toMatchObject({ value: 5 })
  expect(await session.run('x')).toMatchObject({ value: 7 })
})

test('without checkpoints, a session is lost with its process, and says so', async () => {
  await using session = await sg.session({ checkpoints: 'off' })
  expect(await session.run('1')).toMatchObject({ checkpoint: { grade: 'none', lacks: ['checkpoints are off'] } })
  expect(await session.run('import os; os._exit(1)')).toMatchObject({ status: 'crashed', state: 'lost' })
  await expect(session.run('1')).rejects.toMatchObject({ code: 'session_lost' })
  await expect(session.run('1')).rejects.toThrow('checkpoints are off')
})

test('a process that ends between two cells is replaced, and a later cell says so', async () => {
  await using session = await sg.session()
  await session.run('import os, threading\nx = 1')
  await session.run('threading.Timer(1.0, lambda: os._exit(1)).start()\nx = 2')
  let result = await session.run('x')
  while (result.warnings.length === 0 && result.state === 'kept') result = await session.run('x')
  // It ended while none ran, or while one did.
  const told = [...result.warnings.map(({ code }) => code), result.status]
  expect(['session_rolled_back', 'crashed']).toContain(told[0])
  expect(await session.run('[x, threading.active_count()]')).toMatchObject({ value: [2, 1] })
})

test('a session whose process ends again and again between two cells is lost', async () => {
  await using session = await sg.session()
  // The timer belongs to the state that a copy has.
  const timer = 'signal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 1, 1)'
  await session.run(`import signal\n${timer}`)
  const state = (): Promise<unknown> => session.variables().catch((error: unknown) => error)
  await expect.poll(state, { timeout: 20_000 }).toMatchObject({ code: 'session_lost' })
  // While the last processes end, a cell is refused with the state `lost`; then the session says why.
  const why = (): Promise<string> =>
    session.run('1').then(
      (cell) => cell.state,
      (error: Error) => error.message,
    )
  await expect.poll(why).toContain('its process ended again each time it had gone back to a copy')
})

test('a stream that cannot be flushed does not prevent the copy after its cell', async () => {
  await using session = await sg.session()
  await session.run(
    'import os, sys\nclass Stream:\n    def flush(self): raise ValueError\nsys.stdout = Stream()\nx = 1',
  )
  expect(await session.run('x = 2\nos._exit(1)')).toMatchObject({ status: 'crashed', state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: 1 })
})

test('a cell that kills its checkpoint, and then itself, loses the state', async () => {
  await using session = await sg.session()
  const broken = await session.run(
    'import os\nmine = {os.getpid(), os.getppid(), 1}\nfor p in map(int, filter(str.isdigit, os.listdir("/proc"))):\n' +
      '    try: p in mine or os.kill(p, 9)\n    except OSError: pass\nos._exit(1)',
  )
  expect(broken).toMatchObject({ status: 'crashed', state: 'lost' })
  await expect(session.run('1')).rejects.toMatchObject({ code: 'session_lost' })
})

test('a cell that is cancelled is rolled back', async () => {
  await using session = await sg.session()
  await session.run('x = 1')
  const cancelling = new AbortController()
  const cell = session.run('x = 2\nemit_log("begun")\nwhile True: pass', {
    signal: cancelling.signal,
    onLog: () => cancelling.abort(),
  })
  expect(await cell).toMatchObject({ status: 'cancelled', state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: 1 })
})
