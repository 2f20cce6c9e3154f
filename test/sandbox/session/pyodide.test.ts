import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type Sandglass, type Session, type Workspace } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { openSharedWorkspace, type SharedWorkspace } from '../../support/engines/pyodide/shared-workspace.ts'
import { allProcesses, commandLineOf } from '../../support/processes.ts'

const MiB = 1024 * 1024
let shared: SharedWorkspace
let sg: Sandglass
let ws: Workspace
/** The session of the tests that leave one alive. */
let kept: Session
beforeAll(async () => {
  shared = await openSharedWorkspace()
  ;({ sg, ws } = shared)
  kept = await ws.session()
}, 60_000)
afterAll(() => shared?.[Symbol.asyncDispose]())
const textOf = async (path: string): Promise<string> => Buffer.from(await ws.get(path)).toString()

test('a cell works as on other engines: value, display, semicolon, underscore, future, await, traceback, hint', async () => {
  expect(await kept.run('x = [1, 2]\nlen(x)')).toMatchObject({
    value: 2,
    state: 'kept',
    displays: [{ kind: 'result' }],
  })
  expect(await kept.run('x;')).toMatchObject({ value: null, displays: [] })
  expect(await kept.run('_ + 1')).toMatchObject({ value: 3 })
  await kept.run('from __future__ import annotations')
  expect(await kept.run('def f(a: undefined_name): return a\nf(1)')).toMatchObject({ error: null, value: 1 })
  const awaited = 'import asyncio\nasync def g():\n    await asyncio.sleep(0.001)\n    return x\nawait g()'
  expect(await kept.run(awaited)).toMatchObject({ error: null, value: [1, 2] })
  const first = await kept.run('def h():\n    return 1 / 0')
  const failed = await kept.run('y = 5\nh()')
  expect(failed).toMatchObject({ status: 'failed', state: 'kept', ending: { cause: 'exit', exitCode: 1 } })
  expect(failed.traceback).toContain(`File "<cell ${failed.number}>", line 2`)
  expect(failed.traceback).toContain(`File "<cell ${first.number}>", line 2, in h`)
  expect(await kept.run('y')).toMatchObject({ value: 5 })
  expect((await kept.run('!ls')).error).toContain('there are no programs here: write it in Python')
  expect((await kept.run('print(input())', { stdin: 'typed' })).stdout).toBe('typed\n')
  expect((await kept.run('input()')).error).toContain('input() has nothing to read in a session')
  const events = await Array.fromAsync(kept.stream('print("streamed")\nx'))
  expect(events.map(({ type }) => type).toSorted()).toEqual(['display', 'result', 'started', 'stdout'])
})

test('variables and names come from the same session, and code of the cells that hangs there is ended', async () => {
  await using session = await ws.session()
  await session.run('rows = [1, 2, 3]\nclass Slow:\n    def __dir__(self):\n        while True: pass\nslow = Slow()')
  expect(await session.variables()).toMatchObject([
    { name: 'rows', type: 'list', shape: [3] },
    { name: 'Slow', type: 'type' },
    { name: 'slow', type: 'Slow' },
  ])
  expect(await session.complete('rows.appe')).toEqual(['append'])
  await expect(session.complete('slow.')).rejects.toMatchObject({
    message: expect.stringContaining('did not answer') as string,
  })
  expect(await session.run('rows')).toMatchObject({ value: [1, 2, 3] })
})

test('tools belong to their cell, and an answer that a cell did not read is not read by the next one', async () => {
  const answers = { text: 'b'.repeat(2 * MiB) }
  const large = defineTool({
    name: 'large',
    description: 'A long text.',
    input: z.object({}),
    effect: 'read',
    execute: () => answers.text,
  })
  const cell = 'import asyncio\nasync def go():\n    return await asyncio.gather(large(), large())\n'
  expect(await kept.run(`${cell}sum(map(len, await go()))`, { tools: [large] })).toMatchObject({ value: 4 * MiB })
  const unread = `${cell}task = asyncio.ensure_future(go())\nawait asyncio.sleep(0)\n"begun"`
  expect(await kept.run(unread, { tools: [large] })).toMatchObject({ error: null, value: 'begun' })
  expect(await kept.run('large()')).toMatchObject({ error: "NameError: name 'large' is not defined" })
  answers.text = 'short'
  expect(await kept.run('large()', { tools: [large] })).toMatchObject({ error: null, value: 'short' })
})

test('a secret is hidden in later cells, also where a variable kept it, and its variable of the environment is gone', async () => {
  await using session = await ws.session()
  const secrets = { KEY: 'sesame-open-and-nothing-else' }
  const first = await session.run('import os\nheld = os.environ["KEY"]\nprint(held)\nheld', { secrets })
  expect([first.stdout, first.value]).toEqual(['[redacted:KEY]\n', '[redacted:KEY]'])
  const later = await session.run('print(held, os.environ.get("KEY"))\nraise ValueError(held)')
  expect([later.stdout, later.error]).toEqual(['[redacted:KEY] None\n', 'ValueError: [redacted:KEY]'])
  await session.run('globals()[held] = 1')
  expect((await session.variables()).map(({ name }) => name)).toEqual(['os', 'held', '[redacted:KEY]'])
  const look = 'import gc\nemit_result(any("sesame" + "-open-and-nothing-else" == thing for thing in gc.get_objects()))'
  expect(await ws.run(look)).toMatchObject({ finalData: false })
})

test('files go to the workspace after each cell, and what the host and scripts changed comes before the next one', async () => {
  await ws.put({ 'in/a.txt': 'a', 'in/b.txt': 'b', 'moves.txt': 'm' })
  const cell =
    'import os\nout = open("out.txt", "w+"); out.write("one"); out.flush(); os.mkdir("made"); os.chmod("in", 0)'
  expect(await kept.run(cell)).toMatchObject({ error: null, warnings: [] })
  expect(await textOf('out.txt')).toBe('one')
  // Objects of JavaScript, which keep the names of files, have some names from the start.
  await ws.put({ 'in/a.txt': 'changed', 'in/new.txt': 'new', constructor: 'c', 'in/toString/valueOf': 'v' })
  await ws.remove('in/b.txt')
  await ws.remove('made', { recursive: true })
  await ws.run('import os; open("script.txt", "w").write("s"); os.rename("moves.txt", "moved.txt")')
  const look =
    'os.chmod("in", 0o755)\nout.write(" two"); out.flush()\n[sorted(os.listdir()), sorted(os.listdir("in")), open("in/a.txt").read(), open("moved.txt").read()]'
  const seen = await kept.run(look, { files: { 'given.txt': 'g' } })
  expect([seen.error, seen.value]).toEqual([
    null,
    [
      ['constructor', 'given.txt', 'in', 'moved.txt', 'out.txt', 'script.txt'],
      ['a.txt', 'new.txt', 'toString'],
      'changed',
      'm',
    ],
  ])
  const texts = ['out.txt', 'in/new.txt', 'constructor', 'in/toString/valueOf'].map(textOf)
  expect(await Promise.all(texts)).toEqual(['one two', 'new', 'c', 'v'])
  await ws.put({ 'in/new.txt': new Uint8Array(40 * MiB) })
  const full = await kept.run(
    'try:\n    open("full", "wb").write(bytes(40 << 20))\nexcept OSError as error: message = error.strerror\nos.remove("full"); message',
  )
  expect([full.error, full.value]).toEqual([null, 'No space left on device'])
  await ws.remove('in', { recursive: true })
})

test('two sessions of a workspace share its files and nothing else, and one cell runs at a time', async () => {
  await using other = await ws.session()
  await kept.run('mine = 1\nimport builtins; builtins.left = 1\nopen("shared.txt", "w").write("s")')
  expect(
    await other.run('[open("shared.txt").read(), "mine" in globals(), hasattr(__builtins__, "left")]'),
  ).toMatchObject({
    value: ['s', false, false],
  })
  const beside: unknown[] = []
  const meet = defineTool({
    name: 'meet',
    description: 'Tries what else a workspace has.',
    input: z.object({}),
    execute: async () => {
      for (const call of [() => other.run('1'), () => kept.run('1'), () => ws.run('pass'), () => ws.get('shared.txt')])
        beside.push(await call().catch(({ code }: { code: string }) => code))
    },
  })
  expect(await kept.run('meet()', { tools: [meet] })).toMatchObject({ error: null })
  expect(beside).toEqual(['sandbox_busy', 'sandbox_busy', 'sandbox_busy', 'sandbox_busy'])
  expect(await other.run('2')).toMatchObject({ value: 2 })
})

const slow = defineTool({
  name: 'slow',
  description: 'Waits.',
  input: z.object({}),
  effect: 'read',
  execute: async (_, { signal }) => {
    await once(signal, 'abort')
    return 'late'
  },
})

test.for([
  ['that computes', 'while True: pass'],
  ['that sleeps', 'import time; time.sleep(100)'],
  ['that waits for a tool', 'slow()'],
  ['that awaits a tool', 'import asyncio\nawait asyncio.gather(slow(), slow())'],
])('a cell %s is interrupted, and the state stays', async ([, code]) => {
  const onLog = (): void => void kept.interrupt()
  const cell = await kept.run(`x = 7\nemit_log("begun")\n${code}`, { tools: [slow], timeoutSec: 20, onLog })
  expect([cell.status, cell.state]).toEqual(['interrupted', 'kept'])
  await kept.interrupt() // between two cells: nothing
  expect(await kept.run('x')).toMatchObject({ status: 'step-done', value: 7 })
})

test('an interrupt that comes before a request of several pieces has arrived reaches the cell', async () => {
  const running = kept.run(`#${'x'.repeat(300_000)}\nwhile True: pass`, { timeoutSec: 20 })
  await kept.interrupt()
  expect(await running).toMatchObject({ status: 'interrupted', state: 'kept' })
})

test('a timeout and an error of memory that Python takes leave the state as the cell left it', async () => {
  const late = await kept.run('x = 8\nwhile True: pass', { timeoutSec: 1 })
  expect([late.status, late.state]).toEqual(['timed-out', 'kept'])
  expect(late.traceback).toContain('line 2')
  const large = await kept.run('x = 9\nbytearray(900 << 20)')
  expect([large.status, large.state]).toEqual(['memory-limit', 'kept'])
  expect(await kept.run('x')).toMatchObject({ status: 'step-done', value: 9 })
})

const DEAF = 'while True:\n    try:\n        while True: pass\n    except BaseException: pass'
test.for([
  ['exits', 'import os; os._exit(3)', 'crashed', {}],
  ['overflows the stack', 'import sys; sys.setrecursionlimit(10**9)\ndef f(): return [f()]\nf()', 'crashed', {}],
  ['does not hear its timeout', DEAF, 'timed-out', { timeoutSec: 0.3 }],
  ['floods its output', 'while True: print("x" * 1000)', 'output-limit', { maxOutputBytes: 10_000 }],
  ['closes its way to the host', 'import os; os.close(3)', 'crashed', {}],
  ['is cancelled', 'while True: pass', 'cancelled', {}],
] as const)('a cell that %s ends the session, which says so', async ([, code, status, options]) => {
  const abort = new AbortController()
  const session = await ws.session()
  await session.run('x = 1\nopen("before.txt", "w").write("kept")')
  const onLog = (): void => (status === 'cancelled' ? abort.abort() : undefined)
  const cell = await session.run(`emit_log("begun")\n${code}`, { ...options, signal: abort.signal, onLog })
  expect([cell.status, cell.state, cell.checkpoint]).toEqual([
    status,
    'lost',
    { grade: 'none', lacks: ['WebAssembly has no processes that could be copied'] },
  ])
  await expect(session.run('x')).rejects.toMatchObject({ code: 'session_lost' })
  await expect(session.variables()).rejects.toMatchObject({ code: 'session_lost' })
  await session.close()
  expect(await textOf('before.txt')).toBe('kept')
})

test('a session whose process is killed between two cells is lost, and the workspace goes on', async () => {
  await using own = await sg.workspace({ files: { 'still.txt': 'still' } })
  const session = await own.session()
  await session.run('x = 1')
  for (const { pid } of allProcesses().filter(({ pid: each }) => commandLineOf(each).includes(own.id)))
    process.kill(pid, 'SIGKILL')
  const codeOfRun = (): Promise<unknown> => session.run('x').catch(({ code }: { code: string }) => code)
  await expect.poll(codeOfRun, { timeout: 20_000 }).toBe('session_lost')
  await using next = await own.session()
  expect(await next.run('open("still.txt").read()')).toMatchObject({ value: 'still' })
})

test('close ends a cell and its session alone, and nothing is left when the workspace is closed', async () => {
  await using own = await sg.workspace()
  const session = await own.session()
  const onLog = (): void => void session.close()
  const cell = await session.run('emit_log("begun")\nwhile True: pass', { onLog })
  expect([cell.status, cell.state]).toEqual(['cancelled', 'lost'])
  await expect(session.run('1')).rejects.toMatchObject({ code: 'session_closed' })
  await using next = await own.session()
  expect(await next.run('1')).toMatchObject({ value: 1 })
  await own.close()
  expect(allProcesses().filter(({ pid }) => commandLineOf(pid).includes(own.id))).toEqual([])
})

test('a task and an agent run their scripts as cells of such a session', async () => {
  const model = scriptedModel('a = [1]', 'a.append(2)\n1 / 0', (prompt) => {
    expect(prompt).toContain('Variables are as the script left them.')
    return 'emit_result(a)'
  })
  const task = { model, mode: 'interactive', session: true } as const
  expect(await sg.solve('Anything', { ...task, workspace: ws })).toMatchObject({ success: true, finalData: [1, 2] })
  await using session = await ws.session()
  const tool = sg.asTool({ session, limits: { maxOutputBytes: 10_000 } })
  expect(await tool.execute({ script: 'n = 2' })).toMatchObject({ ok: true })
  expect(await tool.execute({ script: 'n' })).toMatchObject({ value: '2' })
  const lost = await tool.execute({ script: 'open("gone.txt", "w").write("x")\nwhile True: print("x" * 1000)' })
  expect(lost).toMatchObject({ ok: false, state: 'lost' })
  expect(lost.note).toContain('what the script wrote to files is lost, too')
})
