import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Workspace } from '../../src/options/index.ts'
import type { Sandglass } from '../../src/sandglass.ts'
import { defineTool } from '../../src/tools/index.ts'
import { eventually } from './eventually.ts'

/** A program that says how many processes the sandbox has beside broker, zygote and itself. */
const OTHERS = ['sh', ['-c', 'cd /proc; set -- [0-9]*; echo $(($# - 3))']] as const
/** Daemons that it starts, and does not wait for. */
const LEAVES = `
import os
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        os.execlp('sleep', 'sleep', '1000')
`

/** Why its sessions have no checkpoints. */
const WHY_NONE = 'this sandbox has no checkpoints: its kernel cannot end what a cell started and nothing else'

/** Tests of a workspace whose scripts and programs run one at a time. */
export function testSerialActivities(at: { readonly sg: Sandglass; readonly ws: Workspace }): void {
  test('WS-04, WS-13: files, scripts and programs share a directory, one activity after the other', async () => {
    const { ws } = at
    expect(ws.trust).toBe('separate')
    await Promise.all([ws.put({ 'in/a.txt': 'hello' }), ws.put({ 'in/b.bin': new Uint8Array(300_000) })])
    const { exitCode, stdout, stderr } = await ws.exec('sh', ['-c', 'wc -c < in/a.txt; echo err >&2; exit 3'])
    expect([exitCode, stdout.trim(), stderr]).toEqual([3, '5', 'err\n'])
    const bytes = Buffer.alloc(1_000_000, 7)
    const sum = createHash('sha256').update(bytes).digest('hex')
    expect((await ws.exec('sha256sum', [], { stdin: bytes })).stdout).toBe(`${sum}  -\n`)
    const script = 'open("out.txt", "w").write("x"); emit_result(open("in/a.txt").read())'
    const run = await ws.run(script, { collect: ['*.txt'] })
    expect([run.finalData, run.files.map(({ path }) => path)]).toEqual(['hello', ['out.txt']])
    const found: string[] = []
    for await (const entry of ws.collect('**')) found.push(entry.path)
    expect(found.toSorted()).toEqual(['in/a.txt', 'in/b.bin', 'out.txt'])
    expect((await ws.get('in/b.bin')).length).toBe(300_000)
    expect((await ws.digest('in')).files).toBe(2)
  })

  test('WS-14: everything that an activity started is gone before the next one', async () => {
    const { ws } = at
    expect((await ws.exec('python3', ['-c', LEAVES])).exitCode).toBe(0)
    expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
    expect((await ws.run(`${LEAVES}\nemit_result(1)`)).finalData).toBe(1)
    expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
    const late = await ws.exec('sh', ['-c', 'setsid sleep 1000 & exec sleep 1000'], { timeoutSec: 0.5 })
    expect([late.timedOut, late.signal]).toEqual([true, 'SIGKILL'])
    const stopped = await ws.run('while True: pass', { limits: { executionTimeoutSec: 0.5 } })
    expect(stopped.status).toBe('timed-out')
    expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
  })

  test('a second activity is refused while a script or a program lives, and the first goes on', async () => {
    const { ws } = at
    const busy = { code: 'sandbox_busy', message: expect.stringContaining('docker without gVisor') as string }
    const refusals: unknown[] = []
    const first = await ws.exec('sh', ['-c', 'echo up; cat'], {
      stdin: (async function* () {
        for (const beside of [
          () => ws.exec('true'),
          () => ws.run('pass'),
          () => ws.put({ x: 'y' }),
          () => ws.stat('in'),
        ])
          refusals.push(
            await beside().then(
              () => 'served',
              (error: unknown) => error,
            ),
          )
        yield 'end\n'
      })(),
    })
    expect(refusals).toEqual(Array.from({ length: 4 }, () => expect.objectContaining(busy) as unknown))
    expect([first.exitCode, first.stdout]).toEqual([0, 'up\nend\n'])
    expect((await ws.run('emit_result(1)')).finalData).toBe(1)
  })

  test('a script that is refused leaves none of its files, also beside one whose files are on their way', async () => {
    const { ws } = at
    const files = (name: string): Record<string, string> => ({ [`${name}.txt`]: name, 'shared.txt': name })
    const outcome = (name: string): Promise<unknown> =>
      ws.run('emit_result(open("shared.txt").read())', { files: files(name) }).then(
        ({ finalData }) => finalData,
        (error: unknown) => error,
      )
    const busy: unknown = expect.objectContaining({ code: 'sandbox_busy' })
    expect(await Promise.all([outcome('first'), outcome('second'), outcome('third')])).toEqual(['first', busy, busy])
    // Where an operation on files is under way, the script cannot run, so its files are not put.
    const slow = Promise.withResolvers<string>()
    const putting = ws.put({
      'slow.txt': {
        stream: (async function* () {
          yield await slow.promise
        })(),
      },
    })
    expect(await outcome('fourth')).toEqual(busy)
    slow.resolve('slow')
    await putting
    // While files of a script are on their way, nothing else may begin that would keep it from running.
    const beside: unknown[] = []
    const mine = async function* (): AsyncGenerator<string> {
      for (const act of [() => ws.put({ 'fifth.txt': 'x' }), () => ws.exec('true')])
        beside.push(await act().catch((error: unknown) => error))
      yield 'mine'
    }
    const ran = await ws.run('emit_result(open("mine.txt").read())', { files: { 'mine.txt': { stream: mine() } } })
    expect([ran.finalData, beside]).toEqual(['mine', [busy, busy]])
    const names = (await ws.exec('ls')).stdout.split('\n')
    for (const name of ['second', 'third', 'fourth', 'fifth']) expect(names).not.toContain(`${name}.txt`)
    expect(Buffer.from(await ws.get('shared.txt')).toString()).toBe('first')
  })

  test('what needs several activities is refused with the engines that have it', async () => {
    const { ws } = at
    const refused = {
      code: 'activity_unavailable',
      message: expect.stringContaining('The engine local, and docker without gVisor') as string,
    }
    await expect(ws.start('cat')).rejects.toMatchObject(refused)
    await expect(ws.exec('cat', [], { tty: true })).rejects.toMatchObject(refused)
    expect(() => ws.dial(80)).toThrow(expect.objectContaining(refused) as Error)
    const noTool = defineTool({ name: 'no', description: 'No.', input: z.object({}), execute: () => null })
    const overSocket = ws.run('', { tools: [noTool], toolTransport: 'websocket' })
    await expect(overSocket).rejects.toMatchObject({ ...refused, code: 'websocket_unreachable' })
  })

  test('a session runs its cells one after the other, and what they leave lives until it is closed', async () => {
    const { ws } = at
    await using session = await ws.session()
    const first = await session.run('import subprocess\nx = [1]\np = subprocess.Popen(["sleep", "1000"])')
    const noCopies = {
      grade: 'none',
      lacks: [WHY_NONE],
    }
    expect(first).toMatchObject({ error: null, state: 'kept', checkpoint: noCopies })
    const secrets = { KEY: 'sesame-open-and-nothing-else' }
    const script = 'import os\nopen("out.txt", "w").write(open("in.txt").read())\nlen(os.environ["KEY"])'
    const second = await session.run(script, { secrets, files: { 'in.txt': 'given' }, collect: ['out.txt'] })
    expect([second.error, second.value, second.files.length]).toEqual([null, 28, 1])
    expect((await session.run('"KEY" in os.environ, p.poll(), x')).value).toEqual([false, null, [1]])
    expect(await session.complete('x.app')).toEqual(['append'])
    await session.close()
    expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
  })

  test('beside a session, files can be used between two cells, and nothing else begins', async () => {
    const { ws } = at
    await using session = await ws.session()
    await ws.put({ 'beside.txt': 'put' })
    await session.run('open("made.txt", "w").write(open("beside.txt").read() + " and read")')
    expect(Buffer.from(await ws.get('made.txt')).toString()).toBe('put and read')
    const busy = { code: 'sandbox_busy', message: expect.stringContaining('docker without gVisor') as string }
    for (const begin of [() => ws.exec('true'), () => ws.run('pass'), () => ws.session()])
      await expect(begin()).rejects.toMatchObject(busy)
    const beside: unknown[] = []
    const cell = await session.run('emit_log("begun")\nwhile True: pass', {
      onLog: async () => {
        beside.push(await ws.put({ 'late.txt': 'x' }).catch((error: unknown) => error))
        await session.interrupt()
      },
    })
    expect([cell.status, cell.state]).toEqual(['interrupted', 'kept'])
    expect(beside).toEqual([expect.objectContaining(busy)])
    expect((await session.run('import os; os.path.exists("late.txt")')).value).toBe(false)
  })

  test.for([
    ['a timeout', 'while True: pass', 'timed-out'],
    ['a segmentation fault', 'import ctypes; ctypes.string_at(0)', 'crashed'],
    ['the end of its process', 'import os; os._exit(0)', 'crashed'],
  ] as const)(
    'a session is lost by %s, with all that it started, and the workspace goes on',
    async ([, cell, status]) => {
      const { ws } = at
      await using session = await ws.session()
      await session.run('import subprocess; p = subprocess.Popen(["sleep", "1000"], start_new_session=True)')
      const lost = await session.run(cell, { timeoutSec: status === 'timed-out' ? 0.5 : 30 })
      expect([lost.status, lost.state]).toEqual([status, 'lost'])
      const message = expect.stringContaining(WHY_NONE) as string
      await expect(session.run('1')).rejects.toMatchObject({ code: 'session_lost', message })
      expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
    },
  )

  test('a session whose process ends between two cells is lost', async () => {
    const { ws } = at
    await using session = await ws.session()
    const leave = 'if os.fork() == 0: time.sleep(1000)\nthreading.Timer(1.5, os._exit, [3]).start()'
    await session.run(`import os, threading, time\n${leave}`)
    const problem = await eventually(
      () =>
        session.variables().then(
          () => 'it still answers',
          ({ message }: Error) => (message.includes('its process ended between two cells') ? undefined : message),
        ),
      20_000,
    )
    expect(problem).toBeUndefined()
    await expect(session.run('1')).rejects.toMatchObject({ code: 'session_lost' })
  })

  test('the next cell notices the end of a process whose sockets a copy of it still holds', async () => {
    const { ws } = at
    await using session = await ws.session()
    // A fork of a library in C, of which Python's hooks know nothing.
    const leave = 'if ctypes.CDLL(None).fork() == 0: time.sleep(1000)\nthreading.Timer(1.5, os._exit, [3]).start()'
    expect(await session.run(`import ctypes, os, threading, time\n${leave}`)).toMatchObject({
      error: null,
      state: 'kept',
    })
    const ends: unknown[] = []
    const problem = await eventually(async () => {
      const { status, state } = await session.run('1', { timeoutSec: 20 })
      ends.push([status, state])
      return state === 'lost' ? undefined : state
    }, 20_000)
    expect([problem, ends.at(-1)]).toEqual([undefined, ['crashed', 'lost']])
    expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
  })

  test('an activity is aborted, with all that it started, and the next one runs', async () => {
    const { ws } = at
    const abort = new AbortController()
    const aborted = ws.exec('sh', ['-c', 'echo up; sleep 1000 & exec sleep 1000'], {
      signal: abort.signal,
      onOutput: () => abort.abort(),
    })
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
    expect((await ws.exec(...OTHERS)).stdout).toBe('0\n')
  })

  test('secrets reach the activity that they are given to', async () => {
    const { ws } = at
    const secrets = { KEY: 'sesame-open-and-nothing-else' }
    expect((await ws.exec('sh', ['-c', 'echo "$KEY"; echo ${#KEY}'], { secrets })).stdout).toMatch(/^\[.*\]\n28\n$/)
    expect((await ws.exec('sh', ['-c', 'echo "[$KEY]"'])).stdout).toBe('[]\n')
  })

  test('report() says before that activities run one at a time', async () => {
    const { capabilities, probes } = await at.sg.report()
    expect([capabilities.workspaces, capabilities.concurrentActivities]).toEqual([true, false])
    expect(probes['activities_apart']).toBe('serial')
  })

  test('WS-15: a share of CPU time for one program is refused where a limit in force cannot be changed', async () => {
    const { capabilities } = await at.sg.report()
    const limited = at.ws.exec('true', [], { limits: { cpus: 0.5 } })
    const outcome = await limited.then(
      ({ exitCode }) => exitCode,
      ({ code }: { code: unknown }) => code,
    )
    expect(outcome).toBe(capabilities.lesserCpus === true ? 0 : 'limit_not_enforceable')
  })
}
