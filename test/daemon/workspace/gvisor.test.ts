import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../src/engines/docker/index.ts'
import type { Workspace } from '../../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { anyGvisor } from '../../support/gvisor.ts'
import { testSerialActivities } from '../../support/serial-activities.ts'

const gvisor = await anyGvisor()
const { skip, host, image } = gvisor
afterAll(() => gvisor[Symbol.asyncDispose](), 60_000)

/** Opens the broker's input. Other descriptors of the broker may close at any time. */
const OPEN = `
import os
def target(name):
    try: return os.readlink(f'/proc/1/fd/{name}')
    except OSError: return ''
names = sorted((int(name) for name in os.listdir('/proc/1/fd') if int(name) >= 10))
channel = [name for name in names if target(name).startswith('host:')]
fd = os.open(f'/proc/1/fd/{channel[0]}', os.O_RDONLY | os.O_NONBLOCK)
def take(count):
    try: return os.read(fd, count)
    except OSError: return b''
print(len(channel), flush=True)
`

describe.skipIf(skip)('in a workspace on gVisor', () => {
  let sg: Sandglass
  let ws: Workspace
  beforeAll(async () => {
    sg = await createSandglass({ engine: dockerEngine({ host, image, runtime: 'runsc' }), poolSize: 0 })
    ws = await sg.workspace()
  }, 60_000)
  afterAll(() => sg.close())

  testSerialActivities({
    get sg() {
      return sg
    },
    get ws() {
      return ws
    },
  })

  test('a program that takes bytes of the host away loses its workspace, instead of having the rest read as requests', async () => {
    await using own = await sg.workspace()
    const forged = {
      argv: ['sleep', '1000'],
      env: {},
      cwd: '',
      stdin: 'none',
      tty: null,
      timeout_sec: null,
      limits: {},
    }
    const line = `${JSON.stringify({ type: 'start', execution_id: 'forged', ...forged, window: 1 })}\n`
    const thief = `${OPEN}
while not take(1): pass
os.read(0, 1 << 20)
import signal
signal.pause()`
    const isUp = Promise.withResolvers<void>()
    const stdin = (async function* () {
      await isUp.promise
      for (;;) yield line
    })()
    const stolen = own.exec('python3', ['-c', thief], { stdin, onOutput: () => isUp.resolve() })
    await expect(stolen).rejects.toMatchObject({ code: 'workspace_lost' })
    await expect(own.exec('true')).rejects.toMatchObject({ code: 'workspace_lost' })
  })

  test('what an activity leaves behind reads nothing of the next request', async () => {
    const spy = `${OPEN}
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    while True:
        data = take(65536)
        if data: open('stolen', 'ab').write(data)`
    expect(await ws.exec('python3', ['-c', spy])).toMatchObject({ stdout: '2\n', stderr: '' })
    const secrets = { KEY: 'sesame-open-and-nothing-else-opens-this-door' }
    expect((await ws.run('import os; emit_result(len(os.environ["KEY"]))', { secrets })).finalData).toBe(44)
    expect((await ws.exec('sh', ['-c', 'cat stolen; echo end'])).stdout).toBe('end\n')
  })

  test('over the memory limit, the workspace ends and says why', async () => {
    await using own = await sg.workspace()
    const { status } = await own.run('held = []\nwhile True: held.append(b"x" * (16 << 20))')
    expect(status).toBe('memory-limit')
    await expect(own.exec('true')).rejects.toMatchObject({ code: 'workspace_lost' })
  })
})
