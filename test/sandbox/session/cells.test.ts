import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createSandglass, defineTool, type Sandglass } from '../../../src/index.ts'
import { skipFor } from '../../support/required.ts'

const lacksFontconfig = !existsSync('/usr/bin/fc-list')
if (lacksFontconfig) skipFor('fontconfig', 'its Debian package has not been installed')

let sg: Sandglass
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
})
afterAll(() => sg?.close())

test('variables last from cell to cell, and the value of the last expression comes back', async () => {
  await using session = await sg.session()
  const first = await session.run('x = [1, 2]\nlen(x)')
  expect(first).toMatchObject({ status: 'step-done', state: 'kept', number: 1, value: 2 })
  const second = await session.run('x.append(3)\nprint("said")\nx')
  expect(second).toMatchObject({ status: 'step-done', state: 'kept', number: 2, value: [1, 2, 3], stdout: 'said\n' })
})

test('a value that is too large for JSON is not sent, and costs a cell neither time nor memory', async () => {
  await using session = await sg.session()
  for (const large of ['["a" * (1 << 20)] * 1000', '{"rows": [[0] * 1000] * 100_000}', '[[[[0] * 500] * 500] * 500]']) {
    const cell = await session.run(`n = 1\n${large}`)
    expect(cell).toMatchObject({ status: 'step-done', state: 'kept', value: null, displays: [{ kind: 'result' }] })
  }
  expect(await session.run('{"a": [1, (2, "b")]}')).toMatchObject({ value: { a: [1, [2, 'b']] } })
})

test.skipIf(lacksFontconfig)(
  'fontconfig finds its configuration in a run and in a cell, and says nothing',
  async () => {
    // As matplotlib asks for the fonts of the system, and as libraries in C do.
    const script = `import ctypes, subprocess
subprocess.run(["fc-list", "--format=%{file}"], check=True)
assert ctypes.CDLL("libfontconfig.so.1").FcInit() == 1`
    await using session = await sg.session()
    for (const shown of [await sg.run(script), await session.run(script)])
      expect(shown).toMatchObject({ error: null, stderr: '' })
  },
)

test('an exception keeps the state, and its traceback names the cell', async () => {
  await using session = await sg.session()
  await session.run('def f(x):\n    return 1 / x')
  const failed = await session.run('y = 1\nf(0)')
  expect(failed).toMatchObject({ status: 'failed', state: 'kept', error: 'ZeroDivisionError: division by zero' })
  expect(failed.traceback).toContain('File "<cell 2>", line 2, in <module>\n    f(0)\n')
  expect(failed.traceback).toContain('File "<cell 1>", line 2, in f\n    return 1 / x\n')
  expect(await session.run('y')).toMatchObject({ value: 1 })
})

test('a cell has tools, inputs, files and secrets of its own, and a secret stays hidden in later cells', async () => {
  await using session = await sg.session()
  const twice = defineTool({
    name: 'twice',
    description: 'Doubles a number.',
    input: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => n * 2,
  })
  const given = await session.run('import os\nkept = os.environ["KEY"]\ntwice(n) + len(open("a.txt").read())', {
    tools: [twice],
    inputs: { n: 20 },
    files: { 'a.txt': 'ab' },
    secrets: { KEY: 'a-secret-value' },
  })
  expect(given).toMatchObject({ error: null, value: 42, toolCalls: [{ name: 'twice', ok: true }] })
  const later = await session.run('print(kept, os.environ.get("KEY"))\ntwice(1)')
  expect(later).toMatchObject({ stdout: '[redacted:KEY] None\n', error: "NameError: name 'twice' is not defined" })
})

test('a cell that is refused leaves the session as it is', async () => {
  await using session = await sg.session()
  await session.run('x = 1')
  const refused = await session.run('x = 2', { requiredSecrets: ['KEY'] })
  expect(refused).toMatchObject({ state: 'kept', checkpoint: { grade: 'whole' } })
  expect(refused.error).toContain('required secrets are missing: KEY')
  expect(await session.run('x')).toMatchObject({ value: 1 })
})

test.each([
  ['a file that the host lacks', { files: { 'a.txt': { path: '/does/not/exist' } } }],
  ['a limit of the wrong type', { timeoutSec: 'long' }],
  ['an input that is not JSON', { inputs: { n: 1n } }],
  ['a value to hide that is not text', { hide: { KEY: 5 } }],
  ['a standard input of the wrong type', { stdin: 5 }],
])('a cell with %s is refused, and takes no number', async (_, options) => {
  await using session = await sg.session()
  const refused = (): Promise<unknown> => session.run('x = 1', options as object)
  const streamed = (): Promise<unknown> => Array.fromAsync(session.stream('x = 1', options as object))
  for (const call of [refused, streamed]) await expect(call()).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await session.run('1 / 0')).toMatchObject({ number: 1, state: 'kept' })
  expect(await session.run('2')).toMatchObject({ number: 2, value: 2 })
})

test('a cell that is left before it begins changes nothing', async () => {
  await using session = await sg.session()
  await session.run('x = 1')
  // One that ends could do so before the host takes note, on a busy machine.
  for await (const { type } of session.stream('x = 2\nwhile True: pass')) if (type === 'started') break
  expect(await session.run('x')).toMatchObject({ number: 3, state: 'kept', value: 1 })
})

test('an abort closes a session that is open, and not its workspace', async () => {
  await using workspace = await sg.workspace()
  const abort = new AbortController()
  const session = await workspace.session({ signal: abort.signal })
  const cell = await session.run('emit_log("begun")\nwhile True: pass', { onLog: () => abort.abort() })
  expect(cell).toMatchObject({ state: 'lost' })
  await expect(session.run('1')).rejects.toMatchObject({ code: 'session_closed' })
  expect(await workspace.run('emit_result(1)')).toMatchObject({ finalData: 1 })
  const late = workspace.session({ signal: abort.signal })
  await expect(late).rejects.toMatchObject({ code: 'aborted' })
})

test('each value that a name of a secret had stays hidden, and one that no cell can have spoils no later cell', async () => {
  await using session = await sg.session()
  await session.run('import os\na = os.environ["KEY"]', { secrets: { KEY: 'the-first-value' } })
  await session.run('b = os.environ["KEY"]', { secrets: { KEY: 'the-second-value' } })
  await session.run('c = "of a " + "host tool"', { hide: { TOOL: 'of a host tool' } })
  await expect(session.run('1', { secrets: { KEY: 5 as never } })).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(session.run('1', { hide: { LARGE: 'x'.repeat(32 * 1024) } })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining(
      '32828 bytes of secrets and hidden values to search for; the limit is 32768',
    ) as string,
  })
  const [branch] = await session.branch(1)
  const shown = '[redacted:KEY] [redacted:KEY] [redacted:TOOL]\n'
  for (const one of [session, branch]) {
    const later = await one?.run('print(a, b, c)', { hide: { KEY: 'another', TOOL: 'thing' } })
    expect(later).toMatchObject({ status: 'step-done', stdout: shown })
  }
})

test.each(['in the turn of the call', 'while its files are sent'])(
  'an interrupt that comes before the request of a cell, %s, reaches the cell',
  async (when) => {
    await using session = await sg.session()
    await session.run('x = 1')
    const source = async function* (): AsyncGenerator<string> {
      await session.interrupt()
      yield 'content'
    }
    const files = when === 'while its files are sent' ? { 'a.txt': { stream: source(), size: 7 } } : undefined
    const running = session.run('x = 2\nwhile True:\n    pass', { ...(files && { files }), timeoutSec: 20 })
    if (when === 'in the turn of the call') await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted', state: 'kept' })
    expect(await session.run('x in (1, 2)')).toMatchObject({ status: 'step-done', value: true })
  },
)

test('an interrupt keeps the state also where errors roll back', async () => {
  await using session = await sg.session({ onError: 'rollback' })
  await session.run('x = 1')
  const onLog = (): void => void session.interrupt()
  const cell = await session.run('x = 2\nemit_log("go")\nwhile True:\n    pass', { onLog })
  expect(cell).toMatchObject({ status: 'interrupted', state: 'kept', missing: [] })
  expect(await session.run('x')).toMatchObject({ value: 2 })
  expect(await session.run('x = 3\n1 / 0')).toMatchObject({ status: 'failed', state: 'rolled-back' })
  expect(await session.run('x')).toMatchObject({ value: 2 })
})

test('a session whose os.environ is gone serves cells, and none of its code runs between them', async () => {
  await using session = await sg.session()
  const replaced = 'class Counting(dict):\n    n = 0\n    def update(self, *a, **k):\n        Counting.n += 1\n'
  await session.run(`import os\n${replaced}os.environ = Counting(os.environ)`)
  await session.variables() // answered after the copy of that state, and after what follows it
  expect(await session.run('Counting.n')).toMatchObject({ state: 'kept', value: 0 })
  await session.run('os.environ = None')
  expect(await session.run('1 + 1')).toMatchObject({ status: 'step-done', state: 'kept', value: 2 })
})

test('a cell that is cancelled before it begins has the checkpoint of the session', async () => {
  await using session = await sg.session()
  const signal = AbortSignal.abort()
  const untouched = { status: 'cancelled', state: 'kept' }
  expect(await session.run('1', { signal })).toMatchObject({ ...untouched, checkpoint: { grade: 'whole', lacks: [] } })
  await session.run('import threading\nthreading.Thread(target=threading.Event().wait, name="T", daemon=True).start()')
  const { checkpoint } = await session.run('1')
  expect(checkpoint.grade).toBe('partial')
  expect(await session.run('1', { signal })).toMatchObject({ ...untouched, checkpoint })
})

test('a second cell is refused while one runs, and one that is interrupted keeps what it did', async () => {
  await using session = await sg.session()
  const running = session.run('n = 1\nemit_log("begun")\nwhile True: pass', {
    onLog: async () => {
      await expect(session.run('1')).rejects.toMatchObject({ code: 'sandbox_busy' })
      await session.interrupt()
    },
  })
  expect(await running).toMatchObject({ status: 'interrupted', errorKind: 'cancelled', state: 'kept' })
  expect(await session.run('n')).toMatchObject({ value: 1 })
})

test('threads and programs of a cell go on, and their output belongs to the next one', async () => {
  await using session = await sg.session()
  await session.run(
    'import subprocess, threading\ngate = threading.Event()\n' +
      'thread = threading.Thread(target=lambda: (gate.wait(), print("thread", flush=True)))\nthread.start()\np = subprocess.Popen(["cat"], stdin=subprocess.PIPE)',
  )
  const next = await session.run('gate.set()\np.communicate(b"program\\n")\nthread.join()\nthreading.active_count()')
  expect(next.stdout.split('\n').toSorted()).toEqual(['', 'program', 'thread'])
})

test('a session that is closed during a cell settles it, and serves no more', async () => {
  const session = await sg.session()
  const cell = session.run('emit_log("begun")\nwhile True: pass', { onLog: () => void session.close() })
  expect(await cell).toMatchObject({ status: 'cancelled', state: 'lost' })
  await expect(session.run('1')).rejects.toMatchObject({ code: 'session_closed' })
})
