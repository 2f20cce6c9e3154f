import { expect, test } from 'vitest'
import type { Sandglass, Session } from '../../src/index.ts'

/** Writes to the descriptors of the harness, whose numbers a cell can find out. */
const FORGE = `
import json, os, socket, struct
frames, control = 3, socket.socket(fileno=os.dup(4))
`
const HOARD = 'def hoard(*_):\n    kept = []\n    while True: kept.append(bytearray(1 << 24))\n'

/** What hostile cells do to their session and its neighbours: nothing that no result tells. @param sandglass gives an open one. */
export function describeHostileCells(sandglass: () => Sandglass): void {
  test.for([
    ['forges the end of the cell', `${FORGE}os.write(frames, b'{"type":"finished"}\\n')\nwhile True: pass`],
    [
      'claims a checkpoint of nonsense',
      `${FORGE}os.write(frames, b'{"type":"finished","checkpoint":{"grade":7,"lacks":[1,{}]}}\\n')`,
    ],
    [
      'floods the socket for commands',
      `${FORGE}\nfor _ in range(5000):\n    try: control.send(b"Y{}", socket.MSG_DONTWAIT)\n    except OSError: pass`,
    ],
    [
      'answers what was not asked',
      `${FORGE}\nfor kind in b"RYNAVX\\0": control.send(bytes([kind]) + b'{"grade": "whole", "missing": 5')`,
    ],
    ['sends descriptors with its answers', `${FORGE}\nsocket.send_fds(control, [b"Y"], [0, 1, 2])`],
    ['closes the descriptors of the harness', 'import os\nos.closerange(3, 100)'],
    [
      'has its copy close the socket in place of an answer',
      'import os, time\nfrom sandglass_harness.session import head\nhead.Head._take_over = lambda *_: (os.close(4), time.sleep(1000))',
    ],
    ['hangs in a fork', 'import os, time\nos.register_at_fork(before=lambda: time.sleep(1000))'],
    ['fails in a fork', 'import os, threading\nos.register_at_fork(after_in_child=lambda: os._exit(0))'],
    [
      'makes forks that go on',
      'import os, threading, time\nos.register_at_fork(after_in_child=lambda: threading.Thread(target=time.sleep, args=(1000,)).start())',
    ],
    ['replaces fork', 'import os\nos.fork = lambda: 1 / 0'],
    ['replaces fork by a pid', 'import os\nos.fork = lambda: 12345'],
    ['takes the memory of processes', 'import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))'],
    ['leaves no descriptors', 'import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))'],
    [
      'raises between cells',
      'import signal\ndef late(*_): raise RuntimeError\nsignal.signal(signal.SIGALRM, late)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)',
    ],
    [
      'raises from the interpreter',
      'import sys\nsys.excepthook = sys.settrace = None\nimport builtins\nbuiltins.len = None',
    ],
  ] as const)('a cell that %s harms its own session at most', async ([, cell]) => {
    await using workspace = await sandglass().workspace()
    await using neighbour = await workspace.session()
    await neighbour.run('x = 1')
    await using session = await workspace.session()
    // Its copies, and what it forks, have the name of the head.
    await session.run('y = 1\nimport ctypes; ctypes.CDLL(None).prctl(15, b"hostile", 0, 0, 0)')
    const started = performance.now()
    const hostile = await session.run(cell, { timeoutSec: 1 })
    expect(['kept', 'rolled-back', 'lost']).toContain(hostile.state)
    for (const next of ['y', 'import os; os._exit(1)', 'y']) {
      const outcome = await session.run(next, { timeoutSec: 1 }).catch(({ code }: { code: string }) => code)
      expect(typeof outcome === 'string' ? outcome : 'settled').toMatch(/^(session_lost|settled)$/)
    }
    expect(performance.now() - started).toBeLessThan(4 * 6000)
    expect(await neighbour.run('x')).toMatchObject({ value: 1, state: 'kept' })
    await session.close()
    const left = await workspace.exec('sh', ['-c', 'cat /proc/[0-9]*/comm | grep -c hostile'])
    expect(left.stdout.trim()).toBe('0')
  })

  test('a cell of 10,000 characters in a name, and a value that raises, are told as they are', async () => {
    await using session = await sandglass().session()
    const named = await session.run(`class V:\n    def __repr__(self): raise RuntimeError("no text")\nV()`)
    expect(named).toMatchObject({ state: 'kept', value: null })
    const long = await session.run(`${'a'.repeat(10_000)} = 1\n${'a'.repeat(10_000)} + 1`)
    expect(long).toMatchObject({ state: 'kept', value: 2 })
    expect((await session.variables()).length).toBeGreaterThan(0)
  })

  test('a socket whose close would wait for its peer holds up no other activity', async () => {
    await using workspace = await sandglass().workspace()
    await using session = await workspace.session()
    const cell = await session.run(`${FORGE}
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
peer, _ = listener.accept()
sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
sender.setblocking(False)
try:
    while True: sender.send(bytes(65536))
except BlockingIOError: pass
for _ in range(3): control.send(b"Y" + b"[" * 30000)
lasts = sender.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
socket.send_fds(control, [b"Y"], [sender.fileno()])
os.close(sender.detach())
lasts`)
    // Where the broker is the last one to close it, it would wait here.
    expect(await workspace.run('emit_result(1)')).toMatchObject({ status: 'completed' })
    expect(cell).toMatchObject({
      status: 'step-done',
      displays: [{ data: { 'text/plain': String.raw`b'\x00\x00\x00\x00\x00\x00\x00\x00'` } }],
    })
  })

  test('a cell cannot kill its parent, and the copy that it kills is told as gone', async () => {
    await using session = await sandglass().session()
    await session.run('x = 1')
    const checkpoint = await session.checkpoint()
    const parent = await session.run(
      'import os\ntry: os.kill(os.getppid(), 9); killed = True\nexcept OSError: killed = False\nkilled',
    )
    expect(parent).toMatchObject({ state: 'kept', value: false })
    const others = `x = 2\nfor pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try: pid in (1, os.getpid()) or os.kill(pid, 9)
    except OSError: pass`
    expect(await session.run(others)).toMatchObject({ state: 'kept' })
    await expect(session.restore(checkpoint)).rejects.toMatchObject({ code: 'checkpoint_unavailable' })
    expect(await session.run('x = 3\nos._exit(1)')).toMatchObject({ state: 'rolled-back' })
    expect(await session.run('x')).toMatchObject({ value: 2 })
  })

  test.for([
    ['in Python', 'def f(): f()\nf()'],
    [
      'in C',
      'import sys\nsys.setrecursionlimit(10 ** 9)\ndeep = []\nfor _ in range(10 ** 5): deep = [deep]\nrepr(deep)',
    ],
    ['in its value', 'deep = []\nfor _ in range(50_000): deep = [deep]\ndeep'],
    ['in the end of its value', 'deep = []\nfor _ in range(200_000): deep = [deep]\ndel deep'],
    ['in its source', `${'('.repeat(20_000)}1${')'.repeat(20_000)}`],
    ['in its operators', `${'-'.repeat(20_000)}1`],
    [
      'in its exceptions',
      'e = None\nfor _ in range(50_000):\n    n = ValueError(1)\n    n.__cause__, e = e, n\nraise e',
    ],
  ] as const)('recursion that is too deep %s ends the cell at most', async ([, cell]) => {
    await using session = await sandglass().session()
    await session.run('x = 1')
    expect(['kept', 'rolled-back']).toContain((await session.run(cell, { timeoutSec: 10 })).state)
    expect(await session.run('x')).toMatchObject({ state: 'kept', value: 1 })
    expect(await session.run('x = 2\nimport os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
    expect(await session.run('x')).toMatchObject({ state: 'kept', value: 1 })
  })

  test('names and files that shadow those of Python and of the harness change a session for its cells alone', async () => {
    await using session = await sandglass().session()
    await session.run('x = 1')
    const names = [
      'print',
      'len',
      'str',
      'type',
      'repr',
      'open',
      'dict',
      'list',
      'isinstance',
      'display',
      'emit_result',
    ]
    const modules = ['os', 'sys', 'json', 'asyncio', 'linecache', 'random', 'threading', '__name__', '_']
    const shadows = `${[...names, ...modules, 'Exception', 'BaseException', 'KeyboardInterrupt'].join(' = ')} = None`
    expect(await session.run(shadows)).toMatchObject({ state: 'kept', error: null })
    expect(await session.run('1 / 0')).toMatchObject({ state: 'kept', error: 'ZeroDivisionError: division by zero' })
    expect(await session.run('[x, len, _]')).toMatchObject({ state: 'kept', value: [1, null, null] })
    for (const file of ['asyncio', 'random', 'inspect', 'ctypes', 'subprocess', 'concurrent', 'ast'])
      await session.run(
        `with (lambda: 0).__globals__["x"] and __import__("io").open("${file}.py", "w") as f: f.write("1 / 0")`,
      )
    expect(await session.run('x = 2\n__import__("os")._exit(1)')).toMatchObject({ state: 'rolled-back' })
    expect(await session.run('await f()')).toMatchObject({ state: 'kept' })
    expect((await session.variables()).map(({ name }) => name)).toContain('x')
    expect(await session.complete('x.bit_l')).toEqual(['bit_length'])
    expect(await session.run('x')).toMatchObject({ state: 'kept', value: 1 })
  })

  test.for([
    ['in the cell', 'hoard()'],
    ['in the text of its value', 'class V: __repr__ = hoard\nV()'],
    ['in the methods of a display', 'class V: _repr_html_ = hoard\ndisplay(V())'],
    ['in the end of its variables', 'class V: __del__ = hoard\nv = V()\ndel v'],
    ['in a thread of it', 'import threading\nthreading.Thread(target=hoard).start()'],
    ['in a program of it', 'import os\nif os.fork() == 0: hoard()'],
    ['before its copy is made', 'import os\nos.register_at_fork(before=hoard)'],
    ['in its copy', 'import os\nos.register_at_fork(after_in_child=hoard)'],
    ['after its copy is made', 'import os\nos.register_at_fork(after_in_parent=hoard)'],
  ] as const)('memory that runs out %s never leaves a state that is silently wrong', async ([, cell]) => {
    await using session = await sandglass().session({ limits: { memoryBytes: 192 << 20 } })
    await session.run('x = 1')
    const { state } = await session.run(`${HOARD}x = 2\n${cell}`, { timeoutSec: 20 })
    expect(['kept', 'rolled-back']).toContain(state)
    expect(await findSilentChanges(session, state === 'kept' ? 2 : 1)).toEqual([])
  })
}

/** Changes of `x` that no result tells. What hoards between two cells ends the process then, or the session. */
async function findSilentChanges(session: Session, first: number): Promise<string[]> {
  const changes: string[] = []
  let present: unknown = first
  for (let n = 0; n < 5; n += 1) {
    const next = await session.run('x', { timeoutSec: 20 }).catch(({ code }: { code: string }) => code)
    if (typeof next === 'string') return next === 'session_lost' ? changes : [...changes, next]
    if (next.state === 'lost') return changes
    const isTold = next.warnings.length > 0 || next.missing.some((text) => text.includes('earlier cells'))
    if (isTold) present = undefined
    if (next.state === 'rolled-back') continue
    if (present !== undefined && next.value !== present)
      changes.push(JSON.stringify([present, next.value, next.status, next.error]))
    present = next.value
  }
  return changes
}
