import assert from 'node:assert/strict'
import { ExecutionMode, type ExecutionResult, ScriptExecutor } from '../../executor/index.ts'
import type { EnforcedLimit, ResourceLimits, Sandbox, SandboxReport } from '../../sandbox/index.ts'
import { assertFarLess, WORK } from './cpu-share.ts'
import type { Fixture } from './fixture.ts'
import { leastOf } from './least-of.ts'
import { endingByExit, type HarnessPeer, memoryKillsIn, python } from './peer.ts'

const MiB = 1024 * 1024
/** The latest time after the deadline at which the host itself ends a run. */
const BACKSTOP_MS = 5000
const SMALL: ResourceLimits = { memoryBytes: 160 * MiB, diskBytes: 8 * MiB }

const needs =
  (...limits: EnforcedLimit[]) =>
  (report: SandboxReport): string | undefined => {
    const missing = limits.filter((limit) => !report.limitsEnforced.includes(limit))
    return missing.length === 0 ? undefined : `it does not enforce ${missing.join(', ')} here`
  }

/** Tests that limits hold, and that the ending names the limit that was reached. */
export function registerLimitTests(at: Fixture): void {
  const runIn = async <T>(limits: ResourceLimits, use: (sandbox: Sandbox) => Promise<T>): Promise<T> => {
    const sandbox = await at.create({ limits })
    try {
      return await use(sandbox)
    } finally {
      await sandbox.destroy()
    }
  }

  at.test(
    'memory: the script dies, and the ending says why',
    ['kernel', 'webassembly'],
    () =>
      runIn(SMALL, async (sandbox) => {
        const result = await run(sandbox, "emit_log('up')\nx = []\nwhile True: x.append(b'x' * 4_000_000)")
        assert.deepEqual(
          [result.status, result.errorKind, result.logs],
          ['memory-limit', 'oom', [{ level: 'info', message: 'up' }]],
        )
        // An engine may refuse the memory instead of killing the script, which then ends by its MemoryError.
        assert.equal(result.ending.cause, result.error === 'MemoryError' ? 'exit' : 'memory-limit')
      }),
    needs('memory'),
  )

  at.test(
    'memory: child processes count together',
    ['kernel'],
    () =>
      at.with({ limits: SMALL }, async (peer, sandbox) => {
        const script = python`
          import os, time
          for _ in range(8):
              if os.fork() == 0:
                  x = b'x' * 40_000_000
                  time.sleep(60)
        `
        const request = peer.request(`${script}while not os.WIFSIGNALED(os.wait()[1]): pass`)
        await peer.send(request)
        let frame = await peer.next()
        while (frame !== null && frame.type !== 'script_done') frame = await peer.next()
        if (frame === null) {
          // The sandbox's own kernel, as gVisor has one, ends as a whole.
          assert.equal((await sandbox.closed).cause, 'memory-limit')
          return
        }
        const done = frame
        assert.ok(memoryKillsIn(done, sandbox) > 0)
        if (!done.reusable) return
        const result = await run(sandbox, `${script}time.sleep(60)`, { executionTimeoutSec: 2 })
        assert.ok(['memory-limit', 'timed-out'].includes(result.status), result.status)
      }),
    (report) =>
      needs('memory')(report) ?? (report.capabilities.processes ? undefined : 'scripts cannot start processes'),
  )

  at.test(
    'pids: a fork fails once the sandbox is full, and works again in the next run',
    ['kernel'],
    () =>
      at.with({ limits: { pids: 24 } }, async (peer) => {
        const script = python`
          import errno, os, signal
          made = 0
          try:
              while made < 1000:
                  if os.fork() == 0:
                      signal.pause()
                      os._exit(0)
                  made += 1
          except OSError as error:
              emit_result([errno.errorcode[error.errno], 5 < made < 24])
        `
        for (const _ of [1, 2]) {
          const { result, done } = await peer.run(script)
          assert.deepEqual([result, done.ending, done.reusable], [['EAGAIN', true], endingByExit(), true])
        }
      }),
    (report) => needs('pids')(report) ?? (report.capabilities.processes ? undefined : 'scripts cannot start processes'),
  )

  at.test(
    'disk: each writable file system is full at its size, and empty in the next run',
    ['kernel', 'webassembly'],
    () =>
      at.with({ limits: { diskBytes: 8 * MiB } }, async (peer) => {
        const script = python`
          import errno, os
          got = {}
          for name, directory in (('workspace', os.getcwd()), ('tmp', '/tmp'), ('var_tmp', '/var/tmp'), ('shm', '/dev/shm')):
              written = 0
              try:
                  with open(directory + '/fill', 'wb', buffering=0) as file:
                      while written < 64 << 20:
                          written += file.write(b'x' * 65536)
                  got[name] = 'unlimited'
              except OSError as error:
                  got[name] = [errno.errorcode[error.errno], written]
          emit_result(got)
        `
        const full = (bytes: number): unknown => ['ENOSPC', bytes]
        const want = { workspace: full(8 * MiB), tmp: full(2 * MiB), var_tmp: full(MiB / 2), shm: full(2 * MiB) }
        for (const _ of [1, 2]) {
          const { result, done } = await peer.run(script)
          assert.deepEqual([result, done.reusable], [want, true])
        }
      }),
    needs('disk'),
  )

  at.test(
    'disk: a full workspace gives an error that the script can catch, and files that do not fit are refused',
    ['broker', 'kernel'],
    () =>
      at.with({ limits: { diskBytes: MiB } }, async (peer) => {
        const request = peer.request("emit_log('ran')")
        const content_base64 = Buffer.alloc(192 * 1024, 'x').toString('base64')
        for (let n = 0; n < 8; n += 1) {
          const offset = n * 192 * 1024
          await peer.send({
            type: 'file_put',
            execution_id: request.execution_id,
            path: 'big',
            mode: 0o644,
            offset,
            content_base64,
          })
        }
        await peer.send(request)
        const { events, done } = await peer.finish(request.execution_id)
        assert.deepEqual(
          [events.map((event) => [event['type'], event['kind']]), done.ending?.cause, done.reusable],
          [[['error', 'request']], 'not-started', true],
        )
        assert.equal((await peer.run("open('f', 'w').write('x')\nemit_result(1)")).result, 1)
      }),
    needs('disk'),
  )

  at.test(
    'output: the run ends once it said too much, and what came before stays',
    ['broker'],
    () =>
      runIn({}, async (sandbox) => {
        const script = "emit_log('first')\nwhile True: print('x' * 1000)"
        const result = await run(sandbox, script, { maxOutputBytes: 20_000 })
        assert.deepEqual(
          [result.status, result.errorKind, result.ending.cause, result.logs],
          ['output-limit', 'output_limit', 'output-limit', [{ level: 'info', message: 'first' }]],
        )
        assert.ok(result.stdout.startsWith('xxx') && result.stdout.length <= 20_000)
        assert.equal((await run(sandbox, 'emit_result(1)')).finalData, 1)
      }),
    needs('output'),
  )

  at.test(
    'output: a line without an end, and a value that is too big, end the run the same way',
    ['broker'],
    () =>
      at.withAny(async (peer) => {
        for (const script of ["import os\nwhile True: os.write(1, b'x' * 65536)", "emit_result('x' * 1_000_000)"]) {
          const { events, done } = await peer.run(script, { max_output_bytes: 100_000 })
          assert.deepEqual(events.at(-1), {
            type: 'error',
            message: 'the output went over the limit of 100000 bytes',
            traceback: null,
            kind: 'output_limit',
          })
          assert.deepEqual([done.ending?.cause, done.reusable], ['output-limit', true])
        }
      }),
    needs('output'),
  )

  at.test(
    'output: harness and host count the same, whatever the timing, and end a run at the same byte',
    ['broker'],
    () =>
      runIn({}, async (sandbox) => {
        const rest = python`
          os.write(2, 'ü€😀\0\n"\\'.encode() + b'\xff')
          emit_log('hi')
          emit_intermediate('p', [1])
        `
        const whole = "import os, time\nos.write(1, b'x' * 300)\n"
        const cut = "import os, time\nfor _ in range(300): os.write(1, b'x'); time.sleep(0.0001)\n"
        for (const [end, title] of [
          ['emit_result({"a": 1})', 'step'],
          ['1/0', 'error'],
        ] as const) {
          const counts: number[] = []
          for (const start of [whole, cut]) counts.push((await run(sandbox, start + rest + end)).outputBytes)
          const [bytes = 0] = counts
          assert.deepEqual(counts, [bytes, bytes], title)
          const exact = await run(sandbox, cut + rest + end, { maxOutputBytes: bytes })
          assert.deepEqual([exact.outputBytes, exact.ending.cause], [bytes, 'exit'], title)
          const short = await run(sandbox, cut + rest + end, { maxOutputBytes: bytes - 1 })
          assert.equal(short.ending.cause, 'output-limit', title)
        }
      }),
    needs('output'),
  )

  at.test(
    'cpu: a script gets no more than its share',
    ['kernel'],
    () =>
      at.with({ limits: { cpus: 1 } }, (whole) =>
        at.with({ limits: { cpus: 0.2 } }, async (part) => {
          const workOf = async (peer: HarnessPeer): Promise<number> => Number((await peer.run(WORK)).result)
          await assertFarLess(
            () => workOf(part),
            () => workOf(whole),
          )
        }),
      ),
    needs('cpu'),
  )

  at.test(
    'cpu: a script that uses up its share with many processes still ends within 1 s after its deadline',
    ['kernel'],
    async () => {
      const script = python`
        import os
        reading, writing = os.pipe()
        for _ in range(40):
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)
                while True: pass
        os.close(writing)
        while True: pass
      `
      const timeoutSec = 2
      const twice = async (sandbox: Sandbox): Promise<number> => {
        let beyondMs = Number.NEGATIVE_INFINITY
        for (let round = 0; round < 2; round += 1) {
          const { status, tookMs } = await timedRun(sandbox, script, { executionTimeoutSec: timeoutSec })
          assert.equal(status, 'timed-out')
          // If nothing can lift the limit, the process that ends the run gets no more CPU than each process of the script.
          const lateMs = sandbox.liftCpuLimit === undefined ? BACKSTOP_MS : 1000
          beyondMs = Math.max(beyondMs, tookMs - timeoutSec * 1000 - lateMs)
          const next = await run(sandbox, 'emit_result(1)')
          // With so little CPU, the broker may not prove in time that no process is left. The sandbox then ends with the run.
          if (sandbox.liftCpuLimit === undefined && next.status === 'sandbox-lost') return beyondMs
          assert.deepEqual([next.status, next.finalData], ['completed', 1])
        }
        return beyondMs
      }
      const beyondMs = await leastOf(3, 0, () => runIn({ cpus: 0.1 }, twice))
      assert.ok(beyondMs <= 0, `it took ${beyondMs} ms too long`)
    },
    (report) => needs('cpu')(report) ?? (report.capabilities.processes ? undefined : 'scripts cannot start processes'),
  )

  at.test(
    'cpu: a run may ask for less than its sandbox has, where the limit can be changed',
    ['kernel'],
    () =>
      runIn({ cpus: 1 }, async (sandbox) => {
        if (sandbox.lowerCpuLimit === undefined) {
          await assert.rejects(run(sandbox, WORK, { cpus: 0.2 }), { code: 'limit_not_enforceable' })
          return
        }
        const workWith = async (limits?: ResourceLimits): Promise<number> =>
          Number((await run(sandbox, WORK, limits)).finalData)
        await assertFarLess(() => workWith({ cpus: 0.2 }), workWith)
      }),
    needs('cpu'),
  )

  at.test(
    'a run may ask for less than its sandbox has',
    ['harness', 'kernel'],
    () =>
      at.withAny(async (peer) => {
        const script = python`
          try:
              x = b'x' * 300_000_000
              emit_result('got it')
          except MemoryError:
              emit_result('MemoryError')
        `
        const limits = { memory_bytes: 200 * MiB }
        assert.deepEqual((await peer.run(script, { limits })).result, 'MemoryError')
        assert.deepEqual((await peer.run(script)).result, 'got it')
      }),
    (report) => (report.capabilities.processes ? undefined : 'it has no limits per process'),
  )
}

async function run(sandbox: Sandbox, script: string, limits: ResourceLimits = {}): Promise<ExecutionResult> {
  return new ScriptExecutor({ mode: ExecutionMode.INTERACTIVE, limits }).run({ sandbox, script })
}

/** The same; also the milliseconds from its start to its end. */
async function timedRun(
  sandbox: Sandbox,
  script: string,
  limits: ResourceLimits,
): Promise<{ readonly status: string; readonly tookMs: number }> {
  const executor = new ScriptExecutor({ mode: ExecutionMode.INTERACTIVE, limits })
  let startedAt = Number.NaN
  for await (const event of executor.stream({ sandbox, script })) {
    if (event.type === 'started') startedAt = performance.now()
    if (event.type === 'result') return { status: event.result.status, tookMs: performance.now() - startedAt }
  }
  return assert.fail('the run ended without a result')
}
