import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { storeInMemory } from '../../../src/artifacts/index.ts'
import { createSandglass, defineTool, type Sandglass, type SessionCheckpoint } from '../../../src/index.ts'
import { eventually } from '../../support/eventually.ts'

let sg: Sandglass
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
})
afterAll(() => sg?.close())

test('a session goes back to a checkpoint, more than once, and what ran in it ends', async () => {
  await using session = await sg.session()
  await session.run('x = 1')
  const checkpoint = await session.checkpoint('one')
  expect(checkpoint).toMatchObject({ name: 'one', grade: 'whole', lacks: [], files: null })
  for (const value of [2, 3]) {
    await session.run(`import subprocess\nx = ${value}\np = subprocess.Popen(["sleep", "1000"])`)
    const restored = await session.restore(checkpoint)
    expect(restored).toMatchObject({ ended: ['sleep'], checkpoint: { grade: 'whole' } })
    expect(restored.missing).toContain('files, shared memory and the effects of host tools were not rolled back')
    expect(await session.run('x')).toMatchObject({ value: 1 })
  }
  expect(await session.run('x = 5\nimport os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
  await session.restore(checkpoint.id)
  expect(await session.run('x')).toMatchObject({ value: 1 })
  await expect(session.restore('other')).rejects.toMatchObject({
    code: 'checkpoint_unavailable',
    message: 'the session has no checkpoint "other"; the names of its checkpoints are "one"',
  })
})

test('a name finds the newest checkpoint that has it, an id comes first, and a branch has no names of its origin', async () => {
  await using session = await sg.session()
  const before = async (x: number, name?: string): Promise<SessionCheckpoint> => {
    await session.run(`x = ${x}`)
    return session.checkpoint(name)
  }
  const first = await before(1, 'before')
  const second = await before(2, 'before')
  await before(3, first.id)
  const restored = async (checkpoint: SessionCheckpoint | string): Promise<unknown> => {
    await session.restore(checkpoint)
    return (await session.run('x')).value
  }
  expect(await restored('before')).toBe(2)
  expect(await restored(first.id)).toBe(1)
  await session.release('before')
  expect(await restored('before')).toBe(1)
  await session.release('before')
  // The id is now a name alone.
  expect(await restored(first.id)).toBe(3)
  for (const gone of ['before', second, second.id])
    await expect(session.restore(gone)).rejects.toMatchObject({
      code: 'checkpoint_unavailable',
      message: expect.stringMatching(
        /^the session has no checkpoint ".+"; the names of its checkpoints are ".+"$/,
      ) as string,
    })
  const [branch] = await session.branch(1)
  await expect(branch?.restore(first.id)).rejects.toThrow(/^the session has no checkpoint "[^"]+"$/)
  await session.close()
  await expect(session.restore('before')).rejects.toMatchObject({ code: 'session_closed' })
})

test('a loop that keeps a checkpoint before each cell releases the oldest ones, and then goes back to one that it kept', async () => {
  await using session = await sg.session()
  await session.run('import ctypes; ctypes.CDLL(None).prctl(15, b"loop", 0, 0, 0)\nx = 0')
  const kept: SessionCheckpoint[] = []
  const keep = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n += 1) {
      kept.push(await session.checkpoint())
      await session.run('x += 1')
    }
  }
  await keep(32)
  await expect(session.checkpoint()).rejects.toThrow('32 checkpoints already; release() ends one')
  for (const each of kept.splice(0, 30)) await session.release(each)
  await keep(2)
  const count =
    'sum(open(f"/proc/{p}/comm").read() == "copy:loop\\n" for p in __import__("os").listdir("/proc") if p.isdigit())'
  // The copy of the state before this cell is one of them.
  await expect.poll(async () => (await session.run(count)).value, { timeout: 20_000 }).toBe(5)
  await session.restore(kept[0]?.id ?? '')
  expect(await session.run('x')).toMatchObject({ value: 30 })
  await session.release(kept[0]?.id ?? '')
  for (const use of ['restore', 'release'] as const)
    await expect(session[use](kept[0]?.id ?? '')).rejects.toMatchObject({ code: 'checkpoint_unavailable' })
  expect(await session.run('x = 7\nimport os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: 30 })
})

test.each(['restore', 'release'] as const)(
  '%s of what is no checkpoint is refused, and the session goes on',
  async (use) => {
    await using session = await sg.session()
    await session.run('x = 1')
    for (const id of ['', 'x'.repeat(257), '\uD800', 'other'])
      await expect(session[use](id)).rejects.toMatchObject({ code: 'checkpoint_unavailable' })
    for (const value of [undefined, null, 5, {}, { id: 5 }] as never[])
      await expect(session[use](value)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await session.run('x')).toMatchObject({ value: 1 })
  },
)

test('with files, a checkpoint and its restore include those of the workspace, and without a store nothing is kept', async () => {
  await using session = await sg.session({ persist: 'files-of-a-session', store: storeInMemory() })
  await session.run('x = 1\nopen("a.txt", "w").write("one")')
  const both = await session.checkpoint('both', { files: true })
  expect(both.files).not.toBeNull()
  await session.run('x = 2\nopen("a.txt", "w").write("two")\nopen("b.txt", "w").close()')
  const { missing } = await session.restore(both, { files: true })
  expect(missing).toEqual(['shared memory and the effects of host tools were not rolled back'])
  const look = async (): Promise<unknown> =>
    (await session.run('import os\n[x, open("a.txt").read(), sorted(os.listdir())]')).value
  expect(await look()).toEqual([1, 'one', ['a.txt']])
  await session.run('x = 3\nopen("a.txt", "w").write("three")')
  await session.restore('both', { files: true })
  expect(await look()).toEqual([1, 'one', ['a.txt']])
  await using plain = await sg.session()
  for (let n = 0; n < 33; n += 1)
    await expect(plain.checkpoint('both', { files: true })).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await plain.checkpoint()).toMatchObject({ grade: 'whole', files: null })
})

test('no cell runs between the two halves of a checkpoint or a restore with files', async () => {
  const store = storeInMemory()
  await using session = await sg.session({ persist: 'halves', store })
  await session.run('x = 1\nopen("a.txt", "w").write("one")')
  const refused: unknown[] = []
  /** Tries to run a cell each time the store is used. */
  const during = async <T>(act: () => Promise<T>): Promise<T> => {
    const spies = (['put', 'open'] as const).map((name) => {
      const original = store[name].bind(store) as (...args: unknown[]) => unknown
      return vi.spyOn(store, name).mockImplementation((async (...args: unknown[]) => {
        refused.push(await session.run('x = 2\nopen("a.txt", "w").write("two")').then(() => 'ran', codeOf))
        return original(...args)
      }) as never)
    })
    return act().finally(() => spies.forEach((spy) => spy.mockRestore()))
  }
  const checkpoint = await during(() => session.checkpoint('both', { files: true }))
  await session.run('x = 3\nopen("a.txt", "w").write("three")')
  await during(() => session.restore(checkpoint, { files: true }))
  expect(new Set(refused)).toEqual(new Set(['sandbox_busy']))
  expect(await session.run('[x, open("a.txt").read()]')).toMatchObject({ value: [1, 'one'] })
})

test('the end of a session settles a checkpoint whose store does not answer', async () => {
  const store = storeInMemory()
  await using workspace = await sg.workspace({ persist: 'hanging', store })
  const session = await workspace.session()
  await session.run('open("a.txt", "w").write("one")')
  const asked = Promise.withResolvers<void>()
  const stuck = Promise.withResolvers<never>()
  const put = vi.spyOn(store, 'put').mockImplementation(() => {
    asked.resolve()
    return stuck.promise
  })
  const checkpoint = session.checkpoint('both', { files: true }).then(() => 'kept', codeOf)
  await asked.promise
  await session.close()
  expect(await checkpoint).toBe('session_closed')
  put.mockRestore()
  stuck.reject(new Error('no answer')) // the workspace waits for it when it closes
})

test('options that do not exist and places outside of the code are refused', async () => {
  await using session = await sg.session()
  await session.run('numbers = [1]')
  const wrong = { file: true } as object
  await expect(session.checkpoint('one', wrong)).rejects.toThrow('checkpoint: unknown option "file"')
  const checkpoint = await session.checkpoint()
  await expect(session.restore(checkpoint, wrong)).rejects.toThrow('restore: unknown option "file"')
  for (const cursor of [-1, 5, 0.5, Number.NaN])
    await expect(session.complete('numb', cursor)).rejects.toMatchObject({
      code: 'invalid_request',
      message: `cursor: ${cursor} is not a whole number from 0 to 4`,
    })
  await expect(session.complete(undefined as never)).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await session.complete('numb')).toEqual(['numbers'])
})

test('a checkpoint tells what it lacks without copies after each cell, too', async () => {
  await using session = await sg.session({ checkpoints: 'off' })
  await session.run(
    'import threading\ngate = threading.Event()\nthreading.Thread(target=gate.wait, name="waits").start()',
  )
  expect(await session.checkpoint()).toMatchObject({ grade: 'partial', lacks: ['thread waits'] })
})

test('no copy waits beside a session that uses more than 45 % of its memory limit, and it says so', async () => {
  await using session = await sg.session({ limits: { memoryBytes: 256 << 20 } })
  const lacks = ['the session uses more than 45% of its memory limit']
  const large = await session.run('x = b"a" * (130 << 20)')
  expect(large).toMatchObject({ state: 'kept', checkpoint: { grade: 'none', lacks } })
  await expect(session.checkpoint()).rejects.toMatchObject({ code: 'checkpoint_unavailable' })
  expect(await session.run('x = 1')).toMatchObject({ state: 'kept', checkpoint: { grade: 'whole' } })
  expect(await session.run('x = b"a" * (130 << 20)')).toMatchObject({ checkpoint: { grade: 'none', lacks } })
  const broken = await session.run('import os; os._exit(1)')
  expect(broken).toMatchObject({ status: 'crashed', state: 'lost', checkpoint: { lacks } })
})

test('a state with native threads, which a copy could wait for without end, is not kept, and never counts as whole again', async () => {
  await using session = await sg.session()
  const threads = `import ctypes
libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)
libc.pthread_setname_np(thread, b"polars-0")
x = 1`
  const lacks = ['the native thread polars-0']
  expect(await session.run(threads)).toMatchObject({ state: 'kept', checkpoint: { grade: 'partial', lacks } })
  const refused = {
    code: 'checkpoint_unavailable',
    message: expect.stringContaining(
      'a copy would lack the native thread polars-0, and may wait for them forever',
    ) as string,
  }
  await expect(session.checkpoint()).rejects.toMatchObject(refused)
  await expect(session.branch(2)).rejects.toMatchObject(refused)
  // The copy beside each cell is made all the same: most of the state goes on without the library.
  const missing = ['lost: the native thread polars-0']
  expect(await session.run('import os; os._exit(1)')).toMatchObject({ state: 'rolled-back', missing })
  const lost = ['the native thread polars-0, lost in an earlier rollback']
  expect(await session.run('x')).toMatchObject({ value: 1, checkpoint: { grade: 'partial', lacks: lost } })
  await expect(session.checkpoint()).rejects.toMatchObject(refused)
})

test('native threads that OpenBLAS could have are told once they have outlived a fork', async () => {
  await using session = await sg.session()
  // A name among the mapped files is what tells that the library is loaded.
  const threads = `import ctypes, mmap, os
with open("libopenblas.so", "wb+") as file:
    file.write(b"a"); file.flush()
    loaded = mmap.mmap(file.fileno(), 1, mmap.MAP_PRIVATE)
libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)`
  expect(await session.run(threads)).toMatchObject({ checkpoint: { grade: 'whole' } })
  const lacks = ['native threads of an unknown library']
  const branch = session.branch(1)
  await expect(branch).rejects.toMatchObject({ code: 'checkpoint_unavailable' })
  const broken = await session.run('os._exit(1)')
  expect(broken).toMatchObject({ state: 'rolled-back', missing: lacks.map((each) => `lost: ${each}`) })
  const lost = lacks.map((each) => `${each}, lost in an earlier rollback`)
  expect(broken.checkpoint).toEqual({ grade: 'partial', lacks: lost })
  // A copy lacks them from the next cell on, too.
  await session.run('libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)')
  expect(await session.run('')).toMatchObject({ checkpoint: { grade: 'partial', lacks: [...lacks, ...lost] } })
})

test('copies are made while a thread waits to print, because nobody reads between two cells', async () => {
  await using workspace = await sg.workspace()
  await using session = await workspace.session()
  await session.run(`import threading
x = 1
def fill():
    open("prints", "w").close()
    print("x" * 1_000_000)
threading.Timer(0.05, fill).start()`)
  const prints = async (): Promise<string | undefined> => {
    for await (const { path } of workspace.list()) if (path === 'prints') return undefined
    return 'it does not print yet'
  }
  expect(await eventually(prints, 5000)).toBeUndefined()
  const checkpoint = await session.checkpoint()
  expect(await session.run('x = 2\nimport os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
  expect(await session.run('print("once")\nx')).toMatchObject({ value: 1, stdout: 'once\n' })
  await session.restore(checkpoint)
  expect(await session.run('import sys; sys.stdout.reconfigure(encoding="utf-8")\nprint("once")\nx')).toMatchObject({
    value: 1,
    stdout: 'once\n',
  })
})

test('branches begin with the same state, go on side by side, and end apart', async () => {
  await using session = await sg.session()
  await session.run('x = [0]')
  const branches = await session.branch(3)
  const values = await Promise.all(
    branches.map(async (branch, n) => (await branch.run(`import time\ntime.sleep(0.05)\nx.append(${n})\nx`)).value),
  )
  expect(values).toEqual([
    [0, 0],
    [0, 1],
    [0, 2],
  ])
  expect(await session.run('x')).toMatchObject({ value: [0] })
  const [first, second, third] = branches
  // Each has programs of its own, which a rollback of another one does not end.
  await second?.run('import subprocess\np = subprocess.Popen(["sleep", "1000"], start_new_session=True)')
  await first?.run('import subprocess\nq = subprocess.Popen(["sleep", "1000"], start_new_session=True)')
  const broken = await first?.run('x.append(9)\nwhile True: pass', { timeoutSec: 0.3 })
  expect(broken).toMatchObject({ state: 'rolled-back', ended: ['sleep'] })
  expect(await first?.run('x')).toMatchObject({ value: [0, 0] })
  expect(await second?.run('[x, p.poll()]')).toMatchObject({ value: [[0, 1], null] })
  await second?.close()
  await expect(second?.run('x')).rejects.toMatchObject({ code: 'session_closed' })
  expect(await third?.run('x')).toMatchObject({ value: [0, 2] })
  expect(await session.run('import os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
  expect(await third?.run('x')).toMatchObject({ value: [0, 2] })
})

test('branches survive their first cells, and a session the one that follows at once', async () => {
  await using session = await sg.session()
  await session.run('import os\nx = [0]')
  const crash = 'x.append(1)\nos._exit(1)'
  const branches = await session.branch(3)
  const error = "the script's process ended with exit code 1 before the script was done"
  for (const ended of await Promise.all(branches.map((branch) => branch.run(crash))))
    expect(ended).toMatchObject({ status: 'crashed', state: 'rolled-back', error })
  for (const values of [[0], [0, 2]]) {
    for (const branch of branches) expect(await branch.run('x')).toMatchObject({ value: values })
    await Promise.all(branches.map((branch) => branch.run('x.append(2)')))
    expect(await branches[0]?.run(crash)).toMatchObject({ state: 'rolled-back' })
  }
})

test('the time of a tool is not that of its cell, however busy another branch is', async () => {
  const tool = defineTool({
    name: 'slow',
    description: 'Takes longer than the cell may.',
    input: z.object({}),
    effect: 'read',
    execute: () => sleep(2000, 1),
  })
  await using session = await sg.session()
  const [busy] = await session.branch(1)
  const begun = Promise.withResolvers<void>()
  const other = busy?.run('emit_log("begun")\nwhile True: pass', { onLog: () => begun.resolve() })
  await begun.promise
  expect(await session.run('slow()', { tools: [tool], timeoutSec: 1.5 })).toMatchObject({ error: null, value: 1 })
  await busy?.interrupt()
  expect(await other).toMatchObject({ status: 'interrupted' })
})

test('a process that takes the mark of another branch outlives a rollback, but not that branch', async () => {
  await using workspace = await sg.workspace()
  await using session = await workspace.session()
  await session.run('import resource, subprocess')
  const [first, second] = await session.branch(2)
  const start = `def lower():
    mark = resource.getrlimit(resource.RLIMIT_RTTIME)[1] - 1  # of the second branch
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))
p = subprocess.Popen(["sleep", "1000"], preexec_fn=lower, start_new_session=True)
p.pid`
  const { value: pid } = (await first?.run(start)) ?? {}
  expect(await first?.run('import os; os._exit(1)')).toMatchObject({ state: 'rolled-back', ended: [] })
  const lives = async (): Promise<unknown> =>
    (await session.run(`import os; os.path.exists("/proc/${String(pid)}")`)).value
  expect(await lives()).toBe(true)
  await second?.close()
  expect(await lives()).toBe(false)
})

test('a branch goes on when the session that it comes from is closed', async () => {
  await using workspace = await sg.workspace()
  const session = await workspace.session()
  await session.run('x = 1')
  const [branch] = await session.branch(1)
  await session.close()
  expect(await branch?.run('x')).toMatchObject({ value: 1 })
  expect(await branch?.run('while True: pass', { timeoutSec: 0.3 })).toMatchObject({ state: 'rolled-back' })
  expect(await branch?.run('x')).toMatchObject({ value: 1 })
  await branch?.close()
  const countLeft = async (): Promise<number> =>
    Number((await workspace.exec('sh', ['-c', 'ls /proc | grep -c "^[0-9]"'])).stdout)
  // The broker, the zygote, a spare with its keeper, the shell's own keeper, shell and pipe.
  await expect.poll(countLeft, { timeout: 20_000 }).toBeLessThanOrEqual(8)
})

test('variables are listed, and names completed', async () => {
  await using session = await sg.session()
  await session.run('numbers = [1, 2, 3]\ndef _hidden(): pass\nname = "text"')
  const found = await session.variables()
  expect(found.map(({ name, type }) => [name, type])).toEqual([
    ['numbers', 'list'],
    ['_hidden', 'function'],
    ['name', 'str'],
  ])
  expect(await session.complete('numbers.ap')).toEqual(['append'])
  expect(await session.complete('num + 1', 3)).toEqual(['numbers'])
})

const codeOf = (error: { code?: string }): unknown => error.code
