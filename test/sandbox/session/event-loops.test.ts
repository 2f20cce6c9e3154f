import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'

let sg: Sandglass
let workspace: Workspace
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
  workspace = await sg.workspace()
})
afterAll(() => sg?.close())

/** A server, a reader and a datagram socket: each of them would be ready without end after a rollback. */
const LISTENING = `import asyncio, os, socket
loop = asyncio.get_running_loop()
server = await asyncio.start_unix_server(lambda reader, writer: writer.close(), "socket")
serving = asyncio.create_task(server.serve_forever())
class Datagrams(asyncio.DatagramProtocol):
    calls, ends = 0, 0
    def datagram_received(self, *_): self.calls += 1
    def connection_lost(self, _): self.ends += 1
_, datagrams = await loop.create_datagram_endpoint(Datagrams, sock=socket.socketpair(type=socket.SOCK_DGRAM)[0])
out, into = os.pipe(); calls = []
loop.add_reader(out, lambda: calls.append(os.read(out, 9)))
near, far = socket.socketpair(); near.setblocking(False)
receiving = asyncio.create_task(loop.sock_recv(near, 9))
local, remote = socket.socketpair()
reader, _ = await asyncio.open_connection(sock=local)
reading = asyncio.create_task(reader.read())
await asyncio.sleep(0)`
const USED = `[len(calls), datagrams.calls, datagrams.ends, server.is_serving(), (await asyncio.wait([serving], timeout=5))[0] == {serving},
(await asyncio.wait_for(receiving, 5)).decode(), (await asyncio.wait_for(reading, 5)).decode(), (await asyncio.sleep(0.01)), len(calls), datagrams.calls]`
const USELESS = [0, 0, 1, false, true, '', '', null, 0, 0]

test('servers and readers of an event loop whose descriptors a rollback or a branch has closed are ended, and named', async () => {
  await using session = await workspace.session()
  await session.run(LISTENING)
  const [branch] = await session.branch(1)
  const broken = await session.run('os._exit(1)')
  const named = [
    'a server of asyncio is closed',
    expect.stringMatching(/^callbacks of an event loop for descriptor \d+ are removed$/),
    expect.stringMatching(/^callbacks of an event loop for descriptor \d+ are removed$/),
    expect.stringMatching(/^pipes and sockets are closed: /),
  ]
  expect(broken).toMatchObject({ state: 'rolled-back', missing: named })
  expect(branch?.missing).toEqual(named)
  for (const each of [session, branch]) {
    const used = await each?.run(`await asyncio.sleep(0)\n${USED}`)
    expect([used?.status, used?.error, used?.stderr, used?.value]).toEqual(['step-done', null, '', USELESS])
  }
  // A server that is started again serves.
  const again = `os.unlink("socket")
server = await asyncio.start_unix_server(lambda reader, writer: (writer.write(b"hey"), writer.close()), "socket")
reader, _ = await asyncio.open_unix_connection("socket")
(await reader.read()).decode()`
  expect(await session.run(again)).toMatchObject({ error: null, value: 'hey' })
})

/** Programs of asyncio: one that runs, and one that a task waits for. */
const PROGRAMS = `import asyncio, os
runs = await asyncio.create_subprocess_exec("sleep", "1000")
reads = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
waiting = asyncio.create_task(reads.wait())
async def tried(use):
    try: return await asyncio.wait_for(use, 5)
    except Exception as error: return f"{type(error).__name__}: {error}"
await asyncio.sleep(0)`
const WAITED = '[await tried(runs.wait()), await tried(reads.communicate()), await tried(waiting)]'

test('a rollback ends the programs of an event loop, and a branch names those that it lacks', async () => {
  await using session = await workspace.session()
  await session.run(PROGRAMS)
  const [branch] = await session.branch(1)
  const foreign = expect.stringMatching(
    /^ChildProcessError: process \d+ belongs to the session that this branch comes from$/,
  ) as string
  expect(await branch?.run(WAITED)).toMatchObject({ error: null, value: [foreign, foreign, foreign] })
  expect(await session.run('runs.returncode')).toMatchObject({ value: null })
  expect(await session.run('os._exit(1)')).toMatchObject({ state: 'rolled-back' })
  expect(await session.run(WAITED)).toMatchObject({ error: null, value: [-9, ['', null], -9] })
  const own = 'own = await asyncio.create_subprocess_exec("sh", "-c", "exit 3"); await tried(own.wait())'
  for (const each of [session, branch]) expect(await each?.run(own)).toMatchObject({ value: 3 })
})

test('a loop that an object of a variable has works after a rollback', async () => {
  await using session = await workspace.session()
  await session.run(`import asyncio, os
class Worker:
    def __init__(self): self.loop = asyncio.new_event_loop()
    def run(self): return self.loop.run_until_complete(asyncio.wait_for(asyncio.to_thread(abs, -3), 5))
worker = Worker(); worker.run()`)
  expect(await session.run('worker.loop.close(); os._exit(1)')).toMatchObject({ state: 'rolled-back', missing: [] })
  expect(await session.run('worker.run()')).toMatchObject({ error: null, value: 3 })
})

test('attributes that an object computes are not asked for, and cost no copy', async () => {
  await using session = await workspace.session()
  await session.run(`import asyncio, os
class Lazy:
    @property
    def __dict__(self): asked.append(1); raise KeyError
asked, lazy = [], Lazy()`)
  expect(await session.run('x = 1')).toMatchObject({ checkpoint: { grade: 'whole' } })
  const broken = await session.run('x = 2; os._exit(1)')
  expect(broken).toMatchObject({ state: 'rolled-back', missing: [] })
  expect(await session.run('[x, asked]')).toMatchObject({ value: [1, []] })
})
