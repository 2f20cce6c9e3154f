import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type DockerEngineOptions, dockerEngine } from '../../../../src/engines/docker/index.ts'
import { overheadOf } from '../../../../src/engines/docker/runtime-needs.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import type { SandglassOptions } from '../../../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../../../src/sandglass.ts'
import { docker } from '../../../support/containers.ts'
import { startGvisor } from '../../../support/gvisor.ts'
import { findLeftContainers } from './own-containers.ts'

const gvisor = await startGvisor()
const { skip, host, image } = gvisor
afterAll(() => gvisor[Symbol.asyncDispose](), 60_000)

const MiB = 1024 * 1024
const SMALL = { memoryBytes: 160 * MiB, diskBytes: 8 * MiB, pids: 24 }

const engineOf = (runtime: string, options: DockerEngineOptions = {}): ReturnType<typeof dockerEngine> =>
  dockerEngine({ host, image, runtime, ...options })
const open = (options: SandglassOptions = {}): Promise<Sandglass> =>
  createSandglass({ engine: engineOf('runsc'), poolSize: 1, maxOverflow: 0, ...options })

/** The limits requested from the daemon: memory and processes of the group. */
function groupOf(name: string): { memory: number; pids: number } {
  const [memory = '', pids = ''] = docker(
    host,
    'inspect',
    '--format',
    '{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}',
    name,
  )
    .trim()
    .split(' ')
  return { memory: Number(memory), pids: Number(pids) }
}

describe.skipIf(skip)('a runtime', () => {
  afterEach(async () => expect(await findLeftContainers(host)).toBeUndefined())

  test.each([
    ['runsc', 'gvisor', 'gvisor'],
    // The level comes from the kernel that the harness sees, not from the name.
    ['nameless', 'gvisor', 'gvisor'],
    ['runsc-by-name', 'container', 'plain'],
    ['runc', 'container', 'plain'],
  ] as const)('called %s is of the level %s, and gets the limits that it needs', async (runtime, level, kind) => {
    const engine = engineOf(runtime)
    const limits = sandboxLimits(resolveLimits(SMALL))
    const sandbox = await engine.create({ limits })
    try {
      expect([sandbox.info.level, sandbox.info.limitsEnforced]).toEqual([
        level,
        ['memory', 'pids', 'cpu', 'disk', 'output', 'wall'],
      ])
      const { memoryBytes, pids } = overheadOf(kind, limits)
      expect(groupOf(sandbox.id)).toEqual({ memory: SMALL.memoryBytes + memoryBytes, pids: SMALL.pids + pids })
      // runsc of this version cannot change a container that runs.
      expect(sandbox.liftCpuLimit === undefined).toBe(kind === 'gvisor')
    } finally {
      await sandbox.destroy()
      await engine.close()
    }
  })

  test('is in the report, with the limits in force and what scripts can do', async () => {
    const engine = engineOf('runsc')
    const { usable, level, reasons, limitsEnforced, capabilities, probes } = await engine.report()
    await engine.close()
    expect([usable, level, reasons, limitsEnforced]).toEqual([
      true,
      'gvisor',
      [],
      ['memory', 'pids', 'cpu', 'disk', 'output', 'wall'],
    ])
    const { concurrentActivities, lesserCpus, sessions, ...others } = capabilities
    expect([concurrentActivities, lesserCpus, sessions]).toEqual([false, false, 'cells'])
    expect(Object.values(others)).toEqual(Object.values(others).map(() => true))
    expect(probes).toMatchObject({
      gvisor: true,
      sealed: true,
      input_protected: true,
      descriptors_hidden: false,
      last_pid_moves: false,
    })
  })
})

describe.skipIf(skip)('a script in gVisor', () => {
  afterEach(async () => expect(await findLeftContainers(host)).toBeUndefined())

  test('over the memory limit ends its sandbox and reports why; the next script gets a new sandbox', async () => {
    await using sandglass = await open({ limits: SMALL })
    for (const script of [
      "emit_log('up')\nx = []\nwhile True: x.append(b'x' * 4_000_000)",
      "emit_log('up')\nimport os, time\nfor _ in range(12):\n    if os.fork() == 0: x = b'x' * 40_000_000; time.sleep(60)\ntime.sleep(60)",
    ]) {
      const killed = await sandglass.run(script)
      expect([killed.status, killed.errorKind, killed.ending.cause, killed.logs]).toEqual([
        'memory-limit',
        'oom',
        'memory-limit',
        [{ level: 'info', message: 'up' }],
      ])
      expect(killed.error).toContain(`the limit is ${SMALL.memoryBytes} bytes`)
      const next = await sandglass.run('emit_result(1)')
      expect([next.finalData, next.sandbox.use]).toEqual([1, 1])
      expect(next.sandbox.id).not.toBe(killed.sandbox.id)
    }
  })

  test('shares one warm sandbox with the scripts before and after it', async () => {
    await using sandglass = await open()
    const uses: unknown[] = []
    for (let n = 0; n < 5; n += 1) {
      const { status, sandbox } = await sandglass.run(n === 2 ? '1/0' : 'emit_result(1)')
      uses.push([status, sandbox.use])
    }
    expect(uses).toEqual([
      ['completed', 1],
      ['completed', 2],
      ['failed', 3],
      ['completed', 4],
      ['completed', 5],
    ])
  })

  test('cannot signal the broker, neither directly nor through a descriptor, although its kernel allows it', async () => {
    await using sandglass = await open()
    const script = `
import ctypes, errno, fcntl, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
numbers = {'x86_64': (200, 234, 129, 297), 'aarch64': (130, 131, 138, 240)}[os.uname().machine]
info = ctypes.create_string_buffer(128)
struct.pack_into('=iii', info, 0, 9, 0, -1)
def call(*args):
    if libc.syscall(*args) == -1: raise OSError(ctypes.get_errno(), '')
one, other = socket.socketpair()
calls = {
    'kill': lambda: os.kill(1, 9), 'tkill': lambda: call(numbers[0], 1, 9), 'tgkill': lambda: call(numbers[1], 1, 1, 9),
    'sigqueue': lambda: call(numbers[2], 1, 9, info), 'tgsigqueue': lambda: call(numbers[3], 1, 1, 9, info),
    'F_SETOWN': lambda: fcntl.fcntl(one, fcntl.F_SETOWN, 1), 'F_SETOWN group': lambda: fcntl.fcntl(one, fcntl.F_SETOWN, -1),
    'F_SETOWN_EX': lambda: fcntl.fcntl(one, 15, struct.pack('ii', 1, 1)),
    'FIOSETOWN': lambda: fcntl.ioctl(one, 0x8901, struct.pack('i', 1)),
}
got = {}
for name, attempt in calls.items():
    try: attempt(); got[name] = 'done'
    except OSError as error: got[name] = errno.errorcode[error.errno]
emit_result(got)`
    const { finalData, sandbox } = await sandglass.run(script)
    expect(new Set(Object.values(finalData as object))).toEqual(new Set(['EPERM']))
    expect((await sandglass.run('emit_result(1)')).sandbox).toMatchObject({ id: sandbox.id, use: 2 })
  })

  test('that forges the end of its run on the broker’s descriptors is ignored, and its sandbox is destroyed', async () => {
    await using sandglass = await open()
    const script = `
import os, time
done = '{"type":"script_done","execution_id":"known","ending":{"cause":"exit","exit_code":0,"signal":null,"by":"script"},"duration_ms":1,"stdout_bytes":0,"stderr_bytes":0,"limits_hit":[],"warnings":[],"reusable":true,"use":99}'
for name in os.listdir('/proc/1/fd'):
    try: os.write(os.open('/proc/1/fd/' + name, os.O_WRONLY | os.O_NONBLOCK), (done + '\\n').encode())
    except OSError: pass
time.sleep(60)`
    const forged = await sandglass.run(script, { executionId: 'known', limits: { executionTimeoutSec: 5 } })
    expect([forged.status, forged.sandbox.use]).toEqual(['sandbox-lost', 0])
    expect(forged.error).toContain('something in the sandbox wrote to the channel beside the harness')
    expect((await sandglass.run('emit_result(1)')).sandbox.id).not.toBe(forged.sandbox.id)
  })

  test("can open the broker's input, but leaves neither a request nor half a line there", async () => {
    await using sandglass = await open()
    const script = `
import errno, json, os
known = {'mode': 'plan', 'timeout_sec': 30, 'max_output_bytes': 1 << 20, 'inputs': {}, 'secrets': {}, 'required_secrets': [], 'collect': [], 'limits': {}}
forged = json.dumps({'type': 'execute', 'execution_id': 'forged', 'script': 'while True: pass', **known}) + '\\n'
links = {name: os.readlink('/proc/1/fd/' + name) for name in os.listdir('/proc/1/fd') if int(name) >= 10}
channel = sorted((name for name in links if links[name].startswith('host:')), key=int)
fds = [os.open('/proc/1/fd/' + channel[0], flags | os.O_NONBLOCK) for flags in (os.O_WRONLY, os.O_RDWR)]
file = os.open('/tmp/forged', os.O_RDWR | os.O_CREAT)
os.write(file, forged.encode())
def splice(fd):
    from_, to = os.pipe()
    os.write(to, forged.encode())
    os.splice(from_, fd, len(forged))
calls = {
    'write': lambda fd: os.write(fd, forged.encode()), 'half a line': lambda fd: os.write(fd, b'{"type":'),
    'splice': splice, 'sendfile': lambda fd: os.sendfile(fd, file, 0, len(forged)),
}
got = {}
for name, attempt in calls.items():
    for fd in fds:
        try: got[name] = attempt(fd)
        except OSError as error: got[name] = errno.errorcode[error.errno]
emit_result([len(channel), got])
if os.fork() == 0:
    while True:
        for name in calls:
            for fd in fds:
                try: calls[name](fd)
                except OSError: pass`
    const { status, finalData, sandbox } = await sandglass.run(script)
    const refused = { write: 'EBADF', 'half a line': 'EBADF', splice: 'EBADF', sendfile: 'EBADF' }
    expect([status, finalData]).toEqual(['completed', [2, refused]])
    const next = await sandglass.run('emit_result(1)')
    expect([next.finalData, next.sandbox]).toEqual([1, { ...sandbox, use: 2 }])
  })

  test("that reads the host's requests from the broker’s descriptors does not outlive its cancellation", async () => {
    await using sandglass = await open()
    const script = `
import os
fds = []
for name in os.listdir('/proc/1/fd'):
    try: fds.append(os.open('/proc/1/fd/' + name, os.O_RDONLY | os.O_NONBLOCK))
    except OSError: pass
emit_log('up')
while True:
    for fd in fds:
        try: os.read(fd, 65536)
        except OSError: pass`
    const abort = new AbortController()
    let cancelledAt = Number.NaN
    const stolen = await sandglass.run(script, {
      signal: abort.signal,
      onEvent: ({ type }) => {
        if (type !== 'log') return
        cancelledAt = performance.now()
        abort.abort()
      },
    })
    expect(stolen.status).toBe('cancelled')
    expect(performance.now() - cancelledAt).toBeLessThan(5000)
    expect((await sandglass.run('emit_result(1)')).finalData).toBe(1)
  })

  test('that kills all processes it can reach loses its sandbox and affects no other run', async () => {
    await using sandglass = await open()
    const { status, sandbox } = await sandglass.run(
      "import os, time\nos.kill(-1, 9)\ntime.sleep(0.1)\nemit_result('alive')",
    )
    expect(status).toBe('completed')
    expect((await sandglass.run('emit_result(1)')).sandbox.id).not.toBe(sandbox.id)
  })

  test('that leaves sockets in flight, which its kernel never frees, loses its sandbox; the next script finds none', async () => {
    await using sandglass = await open()
    const { status, sandbox } = await sandglass.run(
      `import socket
named = socket.socket(socket.AF_UNIX)
named.bind("\\0note")
a, b = socket.socketpair()
for one in (a, b):
    socket.send_fds(one, [b"x"], [named.fileno(), a.fileno(), b.fileno()])`,
    )
    expect(status).toBe('step-done')
    const next = await sandglass.run('emit_result("note" in open("/proc/net/unix").read())')
    expect([next.finalData, next.sandbox.id === sandbox.id]).toEqual([false, false])
    expect((await sandglass.run('emit_result(1)')).sandbox.id).toBe(next.sandbox.id)
  })
})
