import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSandglass, type CellResult, type Sandglass, type Workspace } from '../../../src/index.ts'

let sg: Sandglass
let workspace: Workspace
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
  workspace = await sg.workspace()
})
afterAll(() => sg?.close())

/** A cell whose child does something, and whose value is the exit code of that child. */
const inChild = (does: string): string =>
  `import os, sys\npid = os.fork()\nif pid == 0:\n    where = "child"\n    ${does}\n"child" if pid == 0 else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])`

test.for([
  ['goes on to the end of the cell', 'pass', 0],
  ['raises an exception', 'raise ValueError("of the child")', 1],
  ['exits', 'sys.exit(3)', 3],
] as const)('a child of a cell that %s neither reports as the cell nor runs later ones', async ([, does, code]) => {
  await using session = await workspace.session()
  await session.run('where = "parent"')
  const cell = await session.run(inChild(does))
  expect(cell).toMatchObject({ error: null, state: 'kept', value: code, checkpoint: { grade: 'whole' } })
  expect(cell.displays.map(({ data }) => data['text/plain'])).toEqual([String(code)])
  expect(cell.stderr).toBe(
    code === 1
      ? 'Traceback (most recent call last):\n  File "<cell 2>", line 5, in <module>\n    raise ValueError("of the child")\nValueError: of the child\n'
      : '',
  )
  const later: unknown[] = []
  for (let count = 0; count < 6; count++) later.push((await session.run('where')).value)
  expect(later).toEqual(Array(6).fill('parent'))
  // A copy that takes over is another process than the one that was forked.
  expect(await session.run('where = "gone"\nos._exit(1)')).toMatchObject({ state: 'rolled-back', missing: [] })
  expect(await session.run(inChild(does))).toMatchObject({ error: null, value: code })
  expect(await session.run('where')).toMatchObject({ value: 'parent' })
})

test('a child of a cell lives on beside later cells, and ends with a rollback', async () => {
  await using session = await workspace.session()
  await session.run('import os, time\nwhere, (gate, opens) = "parent", os.pipe()')
  const forked = await session.run(
    'if (pid := os.fork()) == 0:\n    where = os.read(gate, 1).decode()\n    print("child", where)\nNone',
  )
  expect(forked).toMatchObject({ state: 'kept', stdout: '', error: null })
  const later = await session.run('os.write(opens, b"x"); os.waitpid(pid, 0)[1], where')
  expect(later).toMatchObject({ value: [0, 'parent'], stdout: 'child x\n' })
  await session.run('if os.fork() == 0: time.sleep(1000)')
  expect(await session.run('os._exit(1)')).toMatchObject({ state: 'rolled-back', ended: [expect.any(String)] })
  expect(await session.run('where')).toMatchObject({ value: 'parent' })
})

test('what forks in other places of Python leaves one process that runs cells', async () => {
  await using session = await workspace.session()
  const check = async (cell: string): Promise<CellResult> => {
    const result = await session.run(cell)
    expect(result).toMatchObject({ state: 'kept', error: null })
    const pids = new Set<unknown>()
    for (let count = 0; count < 4; count++) pids.add((await session.run('import os; os.getpid()')).value)
    expect(pids.size).toBe(1)
    return result
  }
  // The child has no socket for commands.
  const socket = 'import os, stat\nif (pid := os.fork()) == 0: os._exit(stat.S_ISSOCK(os.fstat(4).st_mode))'
  expect(await check(`${socket}\nstat.S_ISSOCK(os.fstat(4).st_mode), os.waitpid(pid, 0)[1]`)).toMatchObject({
    value: [true, 0],
  })
  // In a cell that awaits, whose loop both processes have. Only the child has a value.
  const awaits = 'import asyncio, os\nawait asyncio.sleep(0)\npid = os.fork()'
  expect(await check(`${awaits}\n"child" if pid == 0 else print(os.waitpid(pid, 0)[1])`)).toMatchObject({
    value: null,
    displays: [],
    stdout: '0\n',
  })
  expect(await check('await asyncio.sleep(0.01, 5)')).toMatchObject({ value: 5 })
  // In a thread, which is all that its child has.
  expect(
    await check(
      'import threading\ncodes = []\ndef f():\n    pid = os.fork()\n    if pid: codes.append(os.waitpid(pid, 0)[1])\nt = threading.Thread(target=f); t.start(); t.join(); codes',
    ),
  ).toMatchObject({ value: [0] })
  // In the text of a value, which is shown at the end of a cell.
  const shown = await check(
    'class V:\n    def __repr__(self):\n        pid = os.fork()\n        pid and os.waitpid(pid, 0)\n        return "of " + ("parent" if pid else "child")\nV()',
  )
  expect(shown.displays.map(({ data }) => data['text/plain'])).toEqual(['of parent'])
  // In the names of an object, which are completed between two cells.
  await session.run('class W:\n    def __dir__(self): return ["parent" if os.fork() else "child"]\nw = W()')
  expect(await session.complete('w.')).toEqual(['parent'])
  expect(await check('os.wait()[1]')).toMatchObject({ value: 0, stderr: '' })
  // In a handler of a signal, while the session waits for the next cell.
  const betweenCells = `import signal, sys, threading, time
def fork(*_):
    global child
    child = os.fork()
signal.signal(signal.SIGPROF, fork)
main = threading.get_ident()
def kill():
    while sys._current_frames()[main].f_code.co_name != "receive_with_fds": time.sleep(0.001)
    signal.pthread_kill(main, signal.SIGPROF)
thread = threading.Thread(target=kill); thread.start()`
  await session.run(betweenCells)
  const names = async (): Promise<string[]> => (await session.variables()).map(({ name }) => name)
  await expect.poll(names).toContain('child')
  expect(await check('thread.join(); os.waitpid(child, 0)[0] == child')).toMatchObject({ value: true })
  // By multiprocessing and by a program.
  expect(
    await check(
      'import multiprocessing, subprocess, sys\nwith multiprocessing.get_context("fork").Pool(2) as pool: squares = pool.map(abs, [-1, -2])\nsquares + [subprocess.run([sys.executable, "-c", "import os; os.fork()"]).returncode]',
    ),
  ).toMatchObject({ value: [1, 2, 0] })
  // By a library in C, of which Python knows nothing.
  await check('import ctypes\npid = ctypes.CDLL(None).fork()\nNone if pid == 0 else os.waitpid(pid, 0)[1]')
})

test('a script reports what its own process does, not what its child does', async () => {
  const run = async (does: string): Promise<unknown[]> => {
    const script = `import os, sys\npid = os.fork()\nif pid == 0: ${does}\nelse: emit_result(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`
    const { status, error, finalData, stderr } = await sg.run(script)
    return [status, error, finalData, stderr.split('\n').at(-2)]
  }
  expect(await run('raise ValueError("of the child")')).toEqual(['completed', null, 1, 'ValueError: of the child'])
  expect(await run('sys.exit(3)')).toEqual(['completed', null, 3, undefined])
  expect(await run('pass')).toEqual(['completed', null, 0, undefined])
})

test('a child that has closed all descriptors forks without losing the files that it then opens', async () => {
  await using session = await workspace.session()
  const daemon = `import os
if os.fork() == 0:
    os.closerange(3, 100)
    files = [open(f"{n}.txt", "w") for n in range(6)]
    if os.fork() == 0:
        for n, file in enumerate(files): file.write(str(n)); file.flush()
        os._exit(0)
    os.wait(); os._exit(0)
os.wait()
[open(f"{n}.txt").read() for n in range(6)]`
  expect(await session.run(daemon)).toMatchObject({ error: null, value: ['0', '1', '2', '3', '4', '5'] })
})
