import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { createSandglass, type Sandglass } from '../../../../src/sandglass.ts'
import { leastOf } from '../../../../src/testing/conformance/least-of.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { containers, docker, processesIn } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { watchAllGrowth } from '../../../support/memory.ts'
import { cpuMs } from '../../../support/processes.ts'
import { type DaemonProxy, proxyDaemon } from './daemon-proxy.ts'
import { findLeftContainers, ownContainers } from './own-containers.ts'

const { skip, image } = await requireDockerEngine()
const ATTACH = 'POST /containers/ID/attach'

describe.skipIf(skip)('the connection to a container', () => {
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  const open = (proxy: DaemonProxy): Promise<Sandglass> =>
    createSandglass({ engine: dockerEngine({ image, host: proxy.host }), poolSize: 1, maxOverflow: 0 })

  test('PO-03: may deliver byte by byte: results, output and binary files are the same', async () => {
    await using proxy = await proxyDaemon()
    proxy.treat = (request) =>
      request !== ATTACH
        ? undefined
        : {
            answer: async (chunk, client) => {
              for (const byte of chunk) {
                client.write(Uint8Array.of(byte))
                await turn()
              }
            },
          }
    await using sandglass = await open(proxy)
    const binary = Uint8Array.from({ length: 1024 }, (_, at) => at % 256)
    const result = await sandglass.run(
      `import os, sys
os.write(1, b'\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x05 looks like a header \\xc3\\xbc\\n')
print('ü€😀', file=sys.stderr)
open('copy.bin', 'wb').write(open('in.bin', 'rb').read()[::-1])
emit_result({'text': 'ü€😀' * 50, 'number': 1.5})`,
      { files: { 'in.bin': binary }, collect: ['copy.bin'] },
    )
    expect([result.status, result.error]).toEqual(['completed', null])
    expect(result.finalData).toEqual({ text: 'ü€😀'.repeat(50), number: 1.5 })
    expect(result.stdout).toBe('\u0000\u0001\u0000\u0000\u0000\u0000\u0000\u0005 looks like a header ü\n')
    expect(result.stderr).toBe('ü€😀\n')
    expect(result.files.map(({ path, content }) => [path, Buffer.from(content).toString('hex')])).toEqual([
      ['copy.bin', Buffer.from(binary.toReversed()).toString('hex')],
    ])
  })

  describe('that delivers invalid data in the middle of a run', () => {
    test.each([
      ['text of a broken proxy', Buffer.from('HTTP/1.1 502 Bad Gateway\r\n\r\n')],
      ['a header of no stream', Uint8Array.of(9, 0, 0, 0, 0, 0, 0, 1)],
    ])('%s: the sandbox is destroyed, and the next run gets another one', async (_what, bytes) => {
      await using proxy = await proxyDaemon()
      let spoil = false
      proxy.treat = (request) =>
        request !== ATTACH
          ? undefined
          : {
              answer: (chunk, client) => {
                if (spoil) client.write(bytes)
                spoil = false
                client.write(chunk)
              },
            }
      await using sandglass = await open(proxy)
      const before = await sandglass.run('emit_result(1)')
      spoil = true
      const spoilt = await sandglass.run('print(1)\nimport time\ntime.sleep(60)', {
        limits: { executionTimeoutSec: 20 },
      })
      expect([spoilt.status, spoilt.sandbox.id]).toEqual(['sandbox-lost', before.sandbox.id])
      const after = await sandglass.run('emit_result(2)')
      expect([after.status, after.finalData]).toEqual(['completed', 2])
      expect(after.sandbox.id).not.toBe(before.sandbox.id)
    })
  })

  test('that breaks in the middle of a run: sandbox-lost within 5 s, the container is gone, the next run works', async () => {
    await using proxy = await proxyDaemon()
    await using sandglass = await open(proxy)
    const first = await sandglass.run('emit_result(1)')
    const started = Promise.withResolvers<void>()
    const run = sandglass.run('print("started", flush=True)\nimport time\ntime.sleep(60)', {
      onEvent: () => started.resolve(),
    })
    await started.promise
    const from = performance.now()
    proxy.cut()
    const lost = await run
    expect([lost.status, lost.errorKind]).toEqual(['sandbox-lost', 'infrastructure'])
    expect(performance.now() - from).toBeLessThan(5000)
    // The daemon lives and closes the container's input.
    const left = await eventually(() => {
      const found = containers(undefined, first.sandbox.id).length
      return found === 0 ? undefined : `${found} left`
    }, 5000)
    expect(left).toBeUndefined()
    await proxy.restore()
    expect((await sandglass.run('emit_result(3)')).finalData).toBe(3)
  })

  test('that breaks while the container is paused: the container is still removed', async () => {
    await using proxy = await proxyDaemon()
    let connection: Socket | undefined
    proxy.treat = (request) =>
      request !== ATTACH
        ? undefined
        : {
            answer: (chunk, client) => {
              connection = client
              client.write(chunk)
            },
          }
    const engine = dockerEngine({ image, host: proxy.host })
    const sandbox = await engine.create({ limits: sandboxLimits(resolveLimits()) })
    docker(undefined, 'pause', sandbox.id)
    connection?.destroy()
    expect(await sandbox.channel.receive()).toBeNull()
    // Nothing else requests its end: the loss of the connection is enough.
    expect(await sandbox.closed).toMatchObject({ cause: 'signal', signal: 'SIGKILL' })
    expect(containers(undefined, sandbox.id)).toEqual([])
    await engine.close()
  })

  test('that nobody reads blocks the script: a flood of 1 GiB grows the host by less than 32 MiB', async () => {
    const most = await leastOf(2, 32, async () => {
      const engine = dockerEngine({ image })
      await using sandglass = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
      const limits = { maxOutputBytes: 4 * 2 ** 30, executionTimeoutSec: 120 }
      const grown = watchAllGrowth()
      for await (const event of sandglass.stream(FLOOD, { limits })) {
        if (event.type !== 'stdout') continue
        const [container] = ownContainers()
        const busyMs = (): number => processesIn(container?.id ?? '').reduce((sum, { pid }) => sum + cpuMs(pid), 0)
        let last = -1
        const moves = await eventually(() => {
          const now = busyMs()
          const problem = now - last < 1 ? undefined : `it worked for ${now - last} ms more`
          last = now
          return problem
        }, 20_000)
        expect(moves).toBeUndefined()
        break
      }
      const grewMiB = grown()
      console.log(`a flood of 1 GiB that nobody reads: the host grew by ${grewMiB.toFixed(1)} MiB`)
      return grewMiB
    })
    expect(most).toBeLessThan(32)
  }, 120_000)
})

const FLOOD = `import os
data = b'x' * 65535 + b'\\n'
for _ in range(16384):
    os.write(1, data)`
