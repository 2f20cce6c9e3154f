import { once } from 'node:events'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { ExecutionResult } from '../../../src/executor/index.ts'
import type { Workspace } from '../../../src/options/index.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { watchAllGrowth } from '../../support/memory.ts'
import type { OnEngine } from './on-engine.ts'

/** Python of hostile scripts that use their connection directly: `sock` is a copy of its socket, `frame` makes a frame. */
const OWN_SOCKET = `
import os, socket, stat, struct, time
def find():
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                sock = socket.socket(fileno=os.dup(fd))
                if sock.family == socket.AF_INET:
                    return sock
        except OSError:
            pass
sock = find()
def frame(payload, kind=1, last=True):
    if isinstance(payload, str):
        payload = payload.encode()
    first = (0x80 if last else 0) | kind
    size = len(payload)
    head = struct.pack(">BB", first, size) if size < 126 else struct.pack(">BBQ", first, 127, size)
    return head + payload
def send(data):
    try:
        sock.sendall(data)
    except OSError:
        pass
def attempt(n=1):
    try:
        return count(n=n)
    except ToolError as error:
        return [error.code, str(error)]
`

/** Connects to each port that listens on the loopback, with a wrong token, and prints the status of the answers. */
const INTRUDER = `
import socket
REQUEST = ("GET / HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nAuthorization: Bearer x\\r\\n\\r\\n").encode()
print("ready", flush=True)
silent = []
while True:
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    for port in {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"}:
        try:
            silent = [*silent[-8:], socket.create_connection(("127.0.0.1", port), 0.5)]
            with socket.create_connection(("127.0.0.1", port), 0.5) as sock:
                sock.sendall(REQUEST)
                print(sock.recv(64)[9:12].decode(), flush=True)
        except OSError:
            pass
`

/** Tools over a WebSocket, in a workspace without a network. */
export function webSocketTests(at: OnEngine): void {
  let ws: Workspace
  beforeAll(async () => {
    ws = await at.sg.workspace()
  }, 60_000)
  afterAll(() => ws.close())

  const execute = vi.fn<(input: { n: number }) => number>(({ n }) => n)
  const count = defineTool({
    name: 'count',
    description: 'Counts.',
    input: z.object({ n: z.int(), text: z.string().optional() }),
    output: z.int(),
    effect: 'read',
    execute,
  })

  const run = (script: string, more: object = {}): Promise<ExecutionResult> =>
    ws.run(script, { tools: [count], toolTransport: 'websocket', limits: { executionTimeoutSec: 30 }, ...more })
  const dataOf = async (script: string, more: object = {}): Promise<unknown> => {
    const { error, finalData } = await run(script, more)
    expect(error).toBeNull()
    return finalData
  }

  test('CA-07 the script calls by name and arguments, at the same time and in bulk; the marker is not output', async () => {
    const types: string[] = []
    const script = `
import asyncio, threading
print("before")
one = count(n=1)
async def main():
    return await asyncio.gather(*[count(n=n) for n in range(40)])
many = asyncio.run(main())
got = []
threads = [threading.Thread(target=lambda n=n: got.append(count(n=n))) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
try:
    count(n="x")
except ToolError as error:
    wrong = error.code
emit_result([one, many == list(range(40)), sorted(got), count(n=2, text="x" * 3_000_000), wrong])`
    const result = await run(script, { onEvent: ({ type }: { type: string }) => void types.push(type) })
    expect(result.error).toBeNull()
    expect(result.finalData).toEqual([1, true, [0, 1, 2, 3, 4, 5, 6, 7], 2, 'invalid_arguments'])
    expect([result.stdout, result.stdoutBytes, result.truncated]).toEqual(['before\n', 7, false])
    expect(result.toolCalls.slice(0, 51).filter(({ ok }) => ok)).toHaveLength(50)
    expect(result.toolCalls[0]).toMatchObject({ name: 'count', ok: true })
    expect(types[0]).toBe('started')
  })

  test('CA-07 the connection is the only one: a second one and a reconnection are refused', async () => {
    const connected = defineTool({
      name: 'dial',
      description: 'Dials.',
      input: z.object({ port: z.int() }),
      output: z.string(),
      effect: 'read',
      execute: async ({ port }) => {
        const connection = ws.dial(port)
        const [error] = (await once(connection, 'error')) as [{ code: string }]
        return error.code
      },
    })
    const script = `${OWN_SOCKET}
port = sock.getsockname()[1]
def again():
    try:
        socket.create_connection(("127.0.0.1", port), 5)
    except ConnectionRefusedError:
        return "refused"
before = [sock.getsockname()[0], again(), dial(port=port)]
sock.shutdown(socket.SHUT_RDWR)
emit_result([*before, again(), attempt()[0]])`
    expect(await dataOf(script, { tools: [count, connected] })).toEqual([
      '127.0.0.1',
      'refused',
      'connection_refused',
      'refused',
      'cancelled',
    ])
  })

  test.each([
    ['closes the connection', 'sock.shutdown(socket.SHUT_RDWR)', 'the connection to the host has ended'],
    ['sends what is no call', 'send(frame("x"))', expect.stringContaining('1008') as string],
    ['sends a ping', 'send(frame(b"x", 9))', expect.stringContaining('1008') as string],
    ['sends a pong', 'send(frame(b"x", 10))', expect.stringContaining('1008') as string],
  ])('a script that %s during a call aborts its function, and goes on', async (_what, act, expected) => {
    const slow = defineTool({
      name: 'slow',
      description: 'Slow.',
      input: z.object({}),
      effect: 'read',
      execute: (_input, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            // While the script still runs.
            void ws.put({ aborted: '' })
            reject(signal.reason as Error)
          })
          void ws.put({ begun: '' })
        }),
    })
    for (const name of ['begun', 'aborted']) await ws.remove(name).catch(() => undefined)
    const script = `${OWN_SOCKET}
import threading
def act():
    while not os.path.exists("begun"):
        time.sleep(0.01)
    ${act}
threading.Thread(target=act).start()
try:
    slow()
except ToolError as error:
    while not os.path.exists("aborted"):
        time.sleep(0.01)
    emit_result([error.code, str(error)])`
    expect(await dataOf(script, { tools: [slow] })).toEqual(['cancelled', expected])
  })

  test('a script that closes the connection while a call waits for a person keeps its deadline', async () => {
    const asked = defineTool({
      name: 'asked',
      description: 'Asks.',
      input: z.object({}),
      effect: 'write',
      approve: true,
      execute: () => 1,
    })
    const script = `${OWN_SOCKET}
import threading
threading.Timer(0.2, lambda: sock.shutdown(socket.SHUT_RDWR)).start()
try:
    asked()
except ToolError:
    pass
while True:
    time.sleep(1)`
    const { status, durationMs } = await run(script, { tools: [asked], limits: { executionTimeoutSec: 1 } })
    expect(status).toBe('timed-out')
    expect(durationMs).toBeLessThan(6000)
    expect(at.sg.pending()).toEqual([])
  })

  test.each([
    ['a frame over the limit', 'send(frame("x" * (5 << 20)))', /1009/],
    [
      'a message over the limit in fragments',
      'send(frame("x" * (3 << 20), 1, False) + frame("x" * (3 << 20), 0, False))',
      /1009/,
    ],
    ['a flood of fragments', 'send(frame("x", 1, False) + frame("", 0, False) * 100)', /1008/],
    ['bytes', 'send(frame(b"x", 2))', /1003/],
    ['a ping', 'send(frame(b"x", 9))', /1008/],
    ['no call', 'send(frame(\'{"type":"stdout","text":"x"}\'))', /1008/],
    [
      'a call of another run',
      'send(frame(\'{"type":"tool_call","execution_id":"x","id":"1","name":"count","args":{"n":7}}\'))',
      /1008/,
    ],
    ['no JSON', 'send(frame("x"))', /1008/],
    ['no UTF-8', 'send(frame(b"\\xff"))', /1007/],
    ['a masked frame', 'send(b"\\x81\\x81abcdx")', /1002/],
    ['a reserved bit', 'send(b"\\xc1\\x01x")', /1002/],
  ])('%s closes the connection with a code, and executes nothing', async (_what, attack, expected) => {
    execute.mockClear()
    const [code, message] = (await dataOf(
      `${OWN_SOCKET}\n${attack}\ntime.sleep(0.05)\nemit_result(attempt())`,
    )) as string[]
    expect(code).toBe('cancelled')
    expect(message).toMatch(expected)
    expect(execute.mock.calls).toEqual([])
    // The workspace serves the next run.
    expect(await dataOf('emit_result(count(n=3))')).toBe(3)
  })

  test('a forged call is one that the script could make; calls on the channel are ignored', async () => {
    execute.mockClear()
    const script = `${OWN_SOCKET}
import json
send(frame(json.dumps({"type": "tool_call", "execution_id": "mine", "id": "a", "name": "count", "args": {"n": 7}})))
send(frame(json.dumps({"type": "tool_call", "execution_id": "mine", "id": "b", "name": "secret", "args": {}})))
os.write(3, b'{"type":"tool_call","id":"c","name":"count","args":{"n":8}}\\n')
emit_result(count(n=1))`
    const { finalData, toolCalls, ignoredFrames } = await run(script, { executionId: 'mine' })
    expect(finalData).toBe(1)
    expect(execute.mock.calls.map(([{ n }]) => n).toSorted((a, b) => a - b)).toEqual([1, 7])
    expect(toolCalls.map(({ name, ok }) => [name, ok])).toEqual([
      ['count', true],
      ['secret', false],
      ['count', true],
    ])
    expect(ignoredFrames).toBe(1)
  })

  test('another activity that tries every port without the token is refused by the endpoint, and stops no run', async () => {
    await ws.put({ 'intruder.py': INTRUDER })
    const intruder = await ws.start('python3', ['intruder.py'])
    try {
      const isSeen = (): boolean => intruder.log().text.includes('401')
      for (let n = 0; n < 30 || (!isSeen() && n < 1000); n += 1)
        expect(await dataOf(`emit_result(count(n=${n}))`)).toBe(n)
      expect(isSeen()).toBe(true)
      expect(intruder.log().text).not.toContain('101')
    } finally {
      await intruder.kill()
    }
  })

  test('a flood of calls whose answers nobody reads ends at the deadline, and the host keeps little of it', async () => {
    const large = defineTool({
      name: 'large',
      description: 'Large.',
      input: z.object({ text: z.string() }),
      output: z.string(),
      effect: 'read',
      execute: () => 'x'.repeat(1024 * 1024),
    })
    const script = `${OWN_SOCKET}
import json
call = {"type": "tool_call", "execution_id": flood, "args": {"text": "x" * 1000}}
while True:
    for n in range(100_000):
        send(frame(json.dumps({**call, "id": str(n), "name": "large" if n % 2 else "x" * 200})))`
    const limits = { executionTimeoutSec: 2, maxToolWaitSec: 0 }
    // The larger share of its bounds that a flood takes: 4500 ms, and 400 MiB of the host.
    let flood = 0
    const taken = await leastOf(3, 1, async () => {
      flood += 1
      const grown = watchAllGrowth()
      const executionId = `flood-${flood}`
      const result = await run(script, { executionId, inputs: { flood: executionId }, tools: [large], limits })
      expect(result.status).toBe('timed-out')
      const grewMiB = grown()
      console.log(`a flood of calls: ${Math.round(result.durationMs)} ms, the host grew by ${grewMiB.toFixed(1)} MiB`)
      expect(await dataOf('emit_result(count(n=4))')).toBe(4)
      return Math.max(result.durationMs / 4500, grewMiB / 400)
    })
    expect(taken).toBeLessThan(1)
  }, 60_000)

  test('a call waits for a person, as on the channel', async () => {
    const asked = defineTool({
      name: 'asked',
      description: 'Asks.',
      input: z.object({ n: z.int() }),
      output: z.int(),
      effect: 'write',
      approve: true,
      execute: ({ n }) => n,
    })
    const running = run('emit_result(asked(n=1))', { tools: [asked] })
    const [call] = await vi.waitUntil(() => (at.sg.pending().length > 0 ? at.sg.pending() : undefined), 10_000)
    expect(call).toMatchObject({ tool: 'asked', args: { n: 1 }, line: 1 })
    await at.sg.approve(call?.id ?? '', { args: { n: 5 } })
    expect((await running).finalData).toBe(5)
  })

  test('a printed marker is output like any other', async () => {
    const { stdout } = await run('print("INITIALIZED SERVER 1")\ncount(n=1)')
    expect(stdout).toBe('INITIALIZED SERVER 1\n')
  })

  test('the token is in no variable, argument or file of the run', async () => {
    const script = `
import os, re
paths = [os.path.join(root, name) for top in ("/workspace", "/tmp", "/dev/shm") for root, _, names in os.walk(top) for name in names]
paths = [path for path in paths if os.path.isfile(path) and not path.endswith("intruder.py")]
def text_of(path):
    try:
        return open(path, errors="replace").read()
    except OSError:
        return ""
seen = [*os.environ.values(), *map(text_of, [*paths, "/proc/self/cmdline", "/proc/self/environ"])]
emit_result([text for text in seen if re.search(r"(?<![\\w-])[\\w-]{43}(?![\\w-])", text)])`
    expect(await dataOf(script)).toEqual([])
  })

  test('a run without tools opens no port', async () => {
    const script = `${OWN_SOCKET}\nemit_result(sock is None)`
    expect(await dataOf(script, { tools: [] })).toBe(true)
  })

  test('the deadline holds during a call, and a cancelled run ends', async () => {
    const never = defineTool({
      name: 'never',
      description: 'Never.',
      input: z.object({}),
      effect: 'read',
      execute: () => new Promise(() => {}),
    })
    const timedOut = await run('never()', {
      tools: [never],
      limits: { executionTimeoutSec: 1, maxToolWaitSec: 0 },
    })
    expect(timedOut.status).toBe('timed-out')
    const controller = new AbortController()
    const onEvent = ({ type }: { type: string }): void => {
      if (type === 'started') controller.abort()
    }
    const cancelled = await run('never()', { tools: [never], signal: controller.signal, onEvent })
    expect(cancelled.status).toBe('cancelled')
    for (let n = 0; n < 10; n += 1) {
      const during = new AbortController()
      const calling = { ...never, execute: () => (during.abort(), new Promise(() => {})) }
      const { status } = await run('never()', { tools: [calling], signal: during.signal })
      expect(status).toBe('cancelled')
    }
  })

  test('refuses a sandbox of the pool that has no address, and names a workspace as the remedy', async () => {
    await expect(at.sg.run('1', { tools: [count], toolTransport: 'websocket' })).rejects.toMatchObject({
      code: 'websocket_unreachable',
      message: expect.stringContaining('sg.workspace()') as string,
    })
    await expect(at.sg.run('1', { toolTransport: 'udp' as 'stdio' })).rejects.toMatchObject({ code: 'invalid_request' })
  })
}
