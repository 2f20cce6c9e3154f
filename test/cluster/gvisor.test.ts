import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { kubernetesEngine } from '../../src/engines/kubernetes/index.ts'
import { createSandglass, defineTool, type Sandglass } from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { findGvisorClass, nameHandler } from '../support/gvisor-class.ts'
import { NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'
import { isFull } from '../support/walls.ts'

const cluster = await requireCluster()
const { admin } = cluster
const runtimeClassName = cluster.skip ? undefined : await findGvisorClass(cluster.config, cluster.options)
const options = { ...cluster.options, ...(runtimeClassName === undefined ? {} : { runtimeClassName }) }
const MiB = 1024 * 1024
const LIMITS = { memoryBytes: 160 * MiB, diskBytes: 8 * MiB, pids: 14 }
const REQUEST = {
  type: 'execute',
  execution_id: 'known',
  mode: 'interactive',
  timeout_sec: 60,
  max_output_bytes: 1 << 20,
  inputs: {},
  secrets: {},
  required_secrets: [],
  collect: [],
  limits: {},
}
const FORGED = 'something in the sandbox wrote to the channel beside the harness'

describe.skipIf(runtimeClassName === undefined)('a pod on gVisor', () => {
  const engine = kubernetesEngine(options)
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0, limits: LIMITS })
  })
  afterAll(async () => {
    await sg.close()
    await engine.close()
    expect(await podsOf(admin)).toEqual([])
  })

  test('runs scripts with tools of the host, one after the other in the same sandbox', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Answers.',
      effect: 'read',
      input: z.object({ word: z.string() }),
      output: z.string(),
      execute: ({ word }) => word.toUpperCase(),
    })
    const script = "import sys; print('seen'); print('err', file=sys.stderr); emit_result(ask(word='pod'))"
    const first = await sg.run(script, { tools: [ask] })
    expect(first).toMatchObject({
      status: 'completed',
      finalData: 'POD',
      stdout: 'seen\n',
      stderr: 'err\n',
      sandbox: { engine: 'kubernetes', level: 'gvisor', network: 'open', use: 1 },
    })
    const again = await sg.run('emit_result(1)')
    expect(again.sandbox).toMatchObject({ id: first.sandbox.id, use: 2 })
    const logs = ['sandbox', 'relay'].map((container) =>
      admin.readNamespacedPodLog({ name: first.sandbox.id, namespace: NAMESPACE, container }),
    )
    expect((await Promise.all(logs)).map((text) => text ?? '')).toEqual(['', ''])
  })

  test('shows a script neither the key nor a way to the relay, and its input takes and gives nothing', async () => {
    const before = await sg.run('emit_result(1)')
    const { status, finalData, sandbox } = await sg.run(String.raw`
import errno, json, os, socket
def outcome(act):
    try: return act() or 'done'
    except OSError as error: return errno.errorcode[error.errno]
name = next(line.split()[-1] for line in open('/proc/1/cmdline').read().split('\0') if line.startswith('{"name"') for line in ['x ' + json.loads(line)['name']])
found = {'others': sorted({open(f'/proc/{pid}/status').read().split('Uid:\t')[1].split()[0] for pid in os.listdir('/proc') if pid.isdigit()}) == [str(os.getuid())]}
for kind in ('STREAM', 'SEQPACKET', 'DGRAM'):
    one = socket.socket(socket.AF_UNIX, getattr(socket, 'SOCK_' + kind))
    found[kind] = outcome(lambda: one.connect('\0' + name))
for path in ('mem', 'exe', 'root', 'cwd', 'map_files'):
    found[path] = outcome(lambda: os.open('/proc/1/' + path, os.O_RDONLY) and None)
sockets = [fd for fd in os.listdir('/proc/1/fd') if outcome(lambda: os.readlink('/proc/1/fd/' + fd)).startswith('socket:')]
found['sockets'] = sorted({outcome(lambda: str(os.open('/proc/1/fd/' + fd, flags))) for fd in sockets for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)} - {'ENXIO'})
emit_result(found)`)
    const refused = { STREAM: 'ECONNREFUSED', SEQPACKET: 'ECONNREFUSED', DGRAM: 'ECONNREFUSED' }
    expect([status, finalData]).toEqual([
      'completed',
      {
        others: true,
        ...refused,
        mem: 'EACCES',
        exe: 'EACCES',
        root: 'EACCES',
        cwd: 'EACCES',
        map_files: 'ENOENT',
        sockets: [],
      },
    ])
    expect(sandbox.id).toBe(before.sandbox.id)
  })

  test('loses its sandbox to a script that writes to the broker’s output, where its version opens that', async () => {
    const forged = await sg.run(
      `
import os
done = '{"type":"script_done","execution_id":"known","ending":{"cause":"exit","exit_code":0,"signal":null,"by":"script"},"duration_ms":1,"stdout_bytes":0,"stderr_bytes":0,"limits_hit":[],"warnings":[],"reusable":true,"use":99}'
written = 0
for name in os.listdir('/proc/1/fd'):
    try: written += os.write(os.open('/proc/1/fd/' + name, os.O_WRONLY | os.O_NONBLOCK), (done + '\\n').encode()) > 0
    except OSError: pass
emit_result(written)
while written: pass`,
      { executionId: 'known', limits: { executionTimeoutSec: 5 } },
    )
    const { status, finalData, error, sandbox } = forged
    // Newer versions open nothing of the broker, so nothing was written.
    const isShut = finalData === 0
    expect([status, sandbox.use === 0, error?.includes(FORGED)]).toEqual(
      isShut ? ['completed', false, undefined] : ['sandbox-lost', true, true],
    )
    const next = await sg.run('emit_result(1)')
    expect([next.finalData, next.sandbox.id === sandbox.id]).toEqual([1, isShut])
  })

  test('is known by its kernel, whatever its RuntimeClass is called; over its memory limit it ends, and its node tells why', async () => {
    await using named = await nameHandler(cluster.config, `test-${randomUUID()}`, 'runsc')
    const other = kubernetesEngine({ ...options, runtimeClassName: named.runtimeClassName })
    await using sandbox = await other.create({ limits: sandboxLimits(resolveLimits(LIMITS)) })
    expect(sandbox.info.level).toBe('gvisor')
    const script = "x = []\nwhile True: x.append(b'x' * 4_000_000)"
    await sandbox.channel.send(Buffer.from(`${JSON.stringify({ ...REQUEST, script })}\n`))
    expect(await sandbox.closed).toMatchObject({ cause: 'memory-limit', by: 'kernel', signal: 'SIGKILL' })
    await other.close()
  })

  test.skipIf(!isFull())('that is called one and is none has the level container', async () => {
    await using named = await nameHandler(cluster.config, `test-gvisor-${randomUUID()}`, 'runc')
    const other = kubernetesEngine({ ...options, runtimeClassName: named.runtimeClassName })
    await using sandbox = await other.create({ limits: sandboxLimits(resolveLimits(LIMITS)) })
    expect([sandbox.info.level, sandbox.info.limitsEnforced.includes('memory')]).toEqual(['container', true])
    await other.close()
  })

  test('counts the processes of a script, which can kill no more than its sandbox', async () => {
    const bomb = await sg.run(`
import os, time
made = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        made += 1
except BlockingIOError: pass
emit_result(made)`)
    expect([bomb.status, (bomb.finalData as number) < LIMITS.pids]).toEqual(['completed', true])
    const { status, sandbox } = await sg.run("import os, time\nos.kill(-1, 9)\ntime.sleep(0.1)\nemit_result('alive')")
    expect(status).toBe('completed')
    const next = await sg.run('emit_result(len([p for p in __import__("os").listdir("/proc") if p.isdigit()]))')
    expect([next.status, next.sandbox.id === sandbox.id]).toEqual(['completed', false])
  })

  test('is in the report, with the limits in force', async () => {
    const { usable, level, limitsEnforced, capabilities, probes } = await engine.report()
    expect([usable, level, limitsEnforced]).toEqual([
      true,
      'gvisor',
      ['memory', 'pids', 'cpu', 'disk', 'output', 'wall'],
    ])
    const { concurrentActivities, lesserCpus, sessions } = capabilities
    expect([concurrentActivities, lesserCpus, sessions]).toEqual([false, false, 'cells'])
    expect(probes).toMatchObject({ gvisor: true, sealed: true, input_protected: true, last_pid_moves: false })
  })
})
