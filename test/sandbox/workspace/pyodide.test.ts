import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Workspace } from '../../../src/options/index.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { openSharedWorkspace, type SharedWorkspace } from '../../support/engines/pyodide/shared-workspace.ts'
import { heldMemory } from '../../support/memory.ts'
import { allProcesses, commandLineOf } from '../../support/processes.ts'
import { testStagingByCopy } from '../../support/workspace-api-rules.ts'
import { testFileRules } from '../../support/workspace-file-rules.ts'

const MiB = 1024 * 1024
let shared: SharedWorkspace
let sg: Sandglass
let ws: Workspace
beforeAll(async () => {
  shared = await openSharedWorkspace()
  ;({ sg, ws } = shared)
}, 60_000)
afterAll(() => shared?.[Symbol.asyncDispose]())
const textOf = async (path: string): Promise<string> => Buffer.from(await ws.get(path)).toString()

testFileRules({
  get sg() {
    return sg
  },
  get ws() {
    return ws
  },
})

testStagingByCopy({
  get sg() {
    return sg
  },
})

test('files last from script to script, and nothing else does', async () => {
  await ws.put({ 'last/a': 'a', 'last/b': 'b', 'last/c': 'c' })
  const first = [
    'import json, os, builtins, sys',
    'os.remove("last/a"); open("last/b", "a").write("+"); os.rename("last/c", "last/d"); os.chmod("last/d", 0o600)',
    'os.makedirs("last/new/empty"); os.symlink("../b", "last/new/link"); os.utime("last/d", (1, 1))',
    'open("/tmp/left", "w").write("x"); os.environ["LEFT"] = "x"',
    'left = builtins.left = json.left = sys.left = os.getcwd = "x"',
  ].join('\n')
  expect(await ws.run(first)).toMatchObject({ status: 'step-done', warnings: [], sandbox: { id: ws.id } })
  const entries = await Array.fromAsync(ws.list('last'))
  expect(entries.map(({ path, kind, mode, target }) => [path, kind, mode, target])).toEqual([
    ['b', 'file', 0o644, undefined],
    ['d', 'file', 0o600, undefined],
    ['new', 'directory', 0o777, undefined],
    ['new/empty', 'directory', 0o777, undefined],
    ['new/link', 'link', 0o777, '../b'],
  ])
  expect((await ws.stat('last/d')).modifiedAt.getTime()).toBe(1000)
  expect([await textOf('last/new/link'), await textOf('last/d')]).toEqual(['b+', 'c'])
  const second = [
    'import json, os, builtins, sys',
    'names = [hasattr(thing, "left") for thing in (builtins, json, sys)]',
    'emit_result([names, "left" in globals(), os.environ.get("LEFT"), os.listdir("/tmp"), os.getcwd(), open("last/new/link").read()])',
  ].join('\n')
  expect((await ws.run(second)).finalData).toEqual([[false, false, false], false, null, [], '/workspace', 'b+'])
})

test('a later script finds no secret of an earlier one, and secrets need no option', async () => {
  expect(ws.trust).toBe('separate')
  const use = 'import os; kept = os.environ["KEY"]; emit_result(len(kept))'
  expect((await ws.run(use, { secrets: { KEY: 'sesame-open' } })).finalData).toBe(11)
  const look =
    'import gc, os\nemit_result([os.environ.get("KEY"), any("sesame" + "-open" == thing for thing in gc.get_objects())])'
  expect((await ws.run(look)).finalData).toEqual([null, false])
})

test('a script has tools, large inputs and answers, and collected files', async () => {
  const echo = defineTool({
    name: 'echo_back',
    description: 'the same again',
    input: z.object({ text: z.string() }),
    execute: () => 'b'.repeat(2 * MiB),
  })
  const text = 'ä'.repeat(MiB)
  const script = 'open("c.txt", "w").write(text[:300_000]); emit_result([len(echo_back("x")), text])'
  const options = { inputs: { text }, tools: [echo], collect: ['c.txt'], limits: { maxOutputBytes: 16 * MiB } }
  const { error, finalData, files } = await ws.run(script, options)
  expect([error, files.map(({ path, size }) => [path, size])]).toEqual([null, [['c.txt', 600_000]]])
  const [answered, returned] = finalData as [number, string]
  expect([answered, returned === text]).toEqual([2 * MiB, true])
})

test('one script runs at a time, and meanwhile its files are out of reach', async () => {
  const seen: Record<string, unknown> = {}
  const meet = defineTool({
    name: 'meet',
    description: 'looks at the workspace',
    input: z.object({}),
    execute: async () => {
      const calls = {
        run: ws.run('pass'),
        get: ws.get('before'),
        put: ws.put({ during: 'x' }),
        list: Array.fromAsync(ws.list()),
      }
      for (const [name, call] of Object.entries(calls))
        seen[name] = await call.then(
          () => 'served',
          ({ code }: { code: string }) => code,
        )
      return 'met'
    },
  })
  await ws.put({ before: 'b' })
  const { finalData } = await ws.run('open("before", "w").write("after"); emit_result(meet())', { tools: [meet] })
  expect(finalData).toBe('met')
  const busy = 'sandbox_busy'
  expect(seen).toEqual({ run: busy, get: busy, put: busy, list: busy })
  expect(await textOf('before')).toBe('after')
})

test('a script that stops in time keeps its files; what one that must be killed wrote is lost, and the result says so', async () => {
  await ws.put({ 'safe.txt': 'before' })
  const limits = { executionTimeoutSec: 3 }
  const late = await ws.run('open("safe.txt", "w").write("late")\nwhile True: pass', { limits })
  expect([late.status, late.warnings, await textOf('safe.txt')]).toEqual(['timed-out', [], 'late'])
  const deaf =
    'open("safe.txt", "w").write("deaf")\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass'
  const killed = await ws.run(deaf, { limits })
  expect([killed.status, killed.warnings.map(({ code }) => code)]).toEqual(['timed-out', ['files_not_kept']])
  const flood = 'open("safe.txt", "w").write("flood")\nwhile True: print("x" * 1000)'
  const flooded = await ws.run(flood, { limits: { maxOutputBytes: 10_000 } })
  expect([flooded.status, flooded.warnings.map(({ code }) => code)]).toEqual(['output-limit', ['files_not_kept']])
  for await (const event of ws.stream(
    'open("safe.txt", "w").write("left")\nprint("begun", flush=True)\nwhile True: pass',
  ))
    if (event.type === 'stdout') break
  const exited = await ws.run('import os; open("exited.txt", "w").write("x"); os._exit(7)')
  expect([exited.status, exited.warnings, await textOf('exited.txt')]).toEqual(['crashed', [], 'x'])
  expect(await textOf('safe.txt')).toBe('late')
})

test('the limits of files hold, for the host and for scripts', async () => {
  async function* zeros(): AsyncGenerator<Uint8Array, void, void> {
    for (;;) yield new Uint8Array(MiB)
  }
  await expect(ws.put({ 'full/a': 'kept', 'full/b': { stream: zeros() } })).rejects.toMatchObject({ code: 'no_space' })
  expect((await Array.fromAsync(ws.list('full'))).map(({ path }) => path)).toEqual(['a'])
  const fill =
    'try:\n    open("full/c", "wb").write(bytes(64 << 20))\nexcept OSError as error: emit_result(error.strerror)'
  expect((await ws.run(fill)).finalData).toBe('No space left on device')
  await ws.remove('full', { recursive: true })
  const { path } = await ws.addInput('own.ts', import.meta.filename)
  expect(
    (await ws.run(`import os; emit_result([os.access("${path}", os.W_OK), open("${path}").read(6)])`)).finalData,
  ).toEqual([false, 'import'])
})

test('names that scripts choose come back as they are, or not at all', async () => {
  const script = [
    'import os',
    'os.makedirs("odd"); os.chdir("odd")',
    'for name in ("line\\nbreak", "-rf", "ü", "\\U0001F600", "\\uffff", "a b", "constructor"): open(name, "w").write(name)',
    'os.symlink("/etc/passwd", "out"); os.symlink("x" * 4000, "long")',
    'for _ in range(300): os.mkdir("d"); os.chdir("d")',
  ].join('\n')
  expect(await ws.run(script)).toMatchObject({ error: null, warnings: [] })
  const names = (await Array.fromAsync(ws.list('odd', { patterns: '*' }))).map((entry) => entry.path)
  expect(names).toEqual(['-rf', 'a b', 'constructor', 'd', 'line\nbreak', 'long', 'out', 'ü', '\uffff', '\u{1F600}'])
  await expect(ws.get('odd/out')).rejects.toMatchObject({ code: 'path_refused' })
  const deep =
    'import os\nos.makedirs("deep"); os.chdir("deep")\nfor _ in range(30): os.mkdir("n" * 200); os.chdir("n" * 200)'
  expect((await ws.run(deep)).warnings).toMatchObject([{ code: 'files_not_kept' }])
  expect((await ws.stat('odd')).kind).toBe('directory')
  await expect(ws.stat('deep')).rejects.toMatchObject({ code: 'path_not_found' })
})

test('programs, terminals and connections are refused, with the engines that have them', async () => {
  const { capabilities } = await sg.report()
  expect(capabilities).toMatchObject({ workspaces: true, concurrentActivities: false, programs: false })
  const refused = { code: 'activity_unavailable', message: expect.stringMatching(/pyodide.*local.*docker/) as string }
  await expect(ws.exec('ls')).rejects.toMatchObject(refused)
  await expect(ws.exec('sh', [], { tty: true })).rejects.toMatchObject(refused)
  await expect(ws.start('ls')).rejects.toMatchObject(refused)
  expect(() => ws.dial(80)).toThrow(expect.objectContaining(refused))
  const noTool = defineTool({ name: 'no', description: 'No.', input: z.object({}), execute: () => null })
  const overSocket = ws.run('', { tools: [noTool], toolTransport: 'websocket' })
  await expect(overSocket).rejects.toMatchObject({ ...refused, code: 'websocket_unreachable' })
})

test('the files of a run that is over are held once', async () => {
  await using own = await sg.workspace()
  const write = 'import os\nopen("filled", "wb").write(os.urandom(16 << 20))'
  await own.run(write)
  const before = heldMemory()
  for (let runs = 0; runs < 3; runs += 1) await own.run(write)
  expect((heldMemory() - before) / MiB).toBeLessThan(24)
})

test('an instance that dies while it waits takes nothing with it', async () => {
  await using own = await sg.workspace({ files: { 'still.txt': 'still' } })
  const instances = allProcesses().filter(({ pid }) => commandLineOf(pid).includes(own.id))
  expect(instances.length).toBeGreaterThan(0)
  for (const { pid } of instances) process.kill(pid, 'SIGKILL')
  expect(await own.run('emit_result(open("still.txt").read())')).toMatchObject({ error: null, finalData: 'still' })
})

test('close ends a script, and nothing is left', async () => {
  const own = await sg.workspace()
  const begun = Promise.withResolvers<void>()
  const script = own.run('print("begun", flush=True)\nwhile True: pass', {
    onEvent: ({ type }) => type === 'stdout' && begun.resolve(),
  })
  await begun.promise
  await own.close()
  expect(await script).toMatchObject({ status: 'cancelled', ending: { cause: 'cancelled', by: 'host' } })
  await expect(own.run('pass')).rejects.toMatchObject({ code: 'workspace_closed' })
  await expect(own.get('x')).rejects.toMatchObject({ code: 'workspace_closed' })
  expect(allProcesses().filter(({ pid }) => commandLineOf(pid).includes(own.id))).toEqual([])
})
