import { createServer } from 'node:net'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { leastOf, measureMs } from '../../../../src/testing/conformance/least-of.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { containers } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { type DaemonProxy, proxyDaemon } from './daemon-proxy.ts'
import { findLeftContainers, findLeftContainersOf } from './own-containers.ts'

/* These tests mostly wait for deadlines: those with long waits run concurrently. */

const { skip, image } = await requireDockerEngine()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
/** Long enough for a busy daemon, short enough for a test to wait for a hung one. */
const API_TIMEOUT_MS = 6000

const findOpenConnections = async (proxy: DaemonProxy): Promise<string | undefined> =>
  eventually(() => (proxy.open === 0 ? undefined : `${proxy.open} connections are open`), 5000)

test.concurrent('FLT-005: a socket that accepts and never answers: a typed error within the API timeout, and no connection stays', async () => {
  const place = mkdtempSync(join(tmpdir(), 'sandglass-silent-'))
  let open = 0
  const server = createServer((socket) => {
    open += 1
    socket.on('close', () => (open -= 1))
    socket.on('error', () => {})
    socket.resume()
  })
  server.listen(join(place, 'socket'))
  await once(server, 'listening')
  try {
    const engine = dockerEngine({ host: `unix://${join(place, 'socket')}`, apiTimeoutMs: API_TIMEOUT_MS })
    const timeOfError = (): Promise<number> =>
      measureMs(() =>
        expect(engine.create(SPEC)).rejects.toMatchObject({
          code: 'docker_unreachable',
          retryable: true,
          message: expect.stringMatching(/^Docker at unix:.* did not answer within 6000 ms/) as string,
        }),
      )
    expect(await leastOf(3, API_TIMEOUT_MS + 1000, timeOfError)).toBeLessThan(API_TIMEOUT_MS + 1000)
    const report = await engine.report()
    expect([report.usable, report.reasons.map(({ code }) => code)]).toEqual([false, ['docker_unreachable']])
    await engine.close()
    expect(await eventually(() => (open === 0 ? undefined : `${open} connections are open`), 2000)).toBeUndefined()
  } finally {
    server.close()
    rmSync(place, { recursive: true, force: true })
  }
})

describe.skipIf(skip).concurrent('a daemon that hangs', () => {
  afterAll(async () => expect(await findLeftContainers()).toBeUndefined())

  test.each([
    'POST /containers/create',
    'POST /containers/ID/attach',
    'POST /containers/ID/wait',
    'POST /containers/ID/start',
  ])('at %s: a typed error, and a late effect is undone', async (step) => {
    await using proxy = await proxyDaemon()
    const held = Promise.withResolvers<void>()
    let wakes = false
    proxy.treat = (request) => (request === step && !wakes ? { after: held.promise } : undefined)
    const times = { apiTimeoutMs: API_TIMEOUT_MS, startTimeoutMs: API_TIMEOUT_MS }
    const engine = dockerEngine({ image, host: proxy.host, ...times })
    await expect(engine.create(SPEC)).rejects.toMatchObject({ code: 'docker_unreachable' })
    wakes = true
    held.resolve()
    expect(await findLeftContainersOf(proxy)).toBeUndefined()
    // The same engine still works.
    await (await engine.create(SPEC)).destroy()
    await engine.close()
    expect(await findOpenConnections(proxy)).toBeUndefined()
  })

  test('in the middle of a run: the host times out the run, and nothing is left when the daemon comes back', async () => {
    await using proxy = await proxyDaemon()
    await using sandglass = await createSandglass({
      engine: dockerEngine({ image, host: proxy.host, apiTimeoutMs: API_TIMEOUT_MS }),
      poolSize: 1,
      maxOverflow: 0,
    })
    const { sandbox } = await sandglass.run('emit_result(1)')
    const from = performance.now()
    const run = sandglass.run('while True:\n    pass', { limits: { executionTimeoutSec: 1 } })
    proxy.freeze()
    const result = await run
    const tookMs = performance.now() - from
    expect(result.status).toBe('timed-out')
    // Deadline, the host's backstop and the bound of the destruction.
    expect(tookMs).toBeLessThan(1000 + 5000 + 2000 + 1000)
    console.log(`a daemon that hangs: a run with a deadline of 1 s ended after ${Math.round(tookMs)} ms`)
    await proxy.restore()
    const gone = await eventually(() => {
      const left = containers(undefined, sandbox.id).length
      return left === 0 ? undefined : `${left} left`
    }, 5000)
    expect(gone).toBeUndefined()
    expect((await sandglass.run('emit_result(2)')).finalData).toBe(2)
  })

  test('while sandboxes are idle: destroy settles within the API timeout', async () => {
    await using proxy = await proxyDaemon()
    const engine = dockerEngine({ image, host: proxy.host, apiTimeoutMs: API_TIMEOUT_MS })
    const timeOfEnd = async (): Promise<number> => {
      const sandboxes = await Promise.all([engine.create(SPEC), engine.create(SPEC)])
      proxy.freeze()
      const tookMs = await measureMs(() => Promise.all(sandboxes.map((sandbox) => sandbox.destroy())))
      expect(tookMs).toBeGreaterThan(API_TIMEOUT_MS - 100) // the request was sent and not answered
      expect((await Promise.all(sandboxes.map(({ closed }) => closed))).map(({ cause }) => cause)).toEqual([
        'destroyed',
        'destroyed',
      ])
      await proxy.restore()
      return tookMs
    }
    expect(await leastOf(3, API_TIMEOUT_MS + 1000, timeOfEnd)).toBeLessThan(API_TIMEOUT_MS + 1000)
    expect(await findLeftContainersOf(proxy)).toBeUndefined()
    await engine.close()
  })
})

describe.skipIf(skip)('a daemon that hangs for a second', () => {
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  test.each(['GET /images/IMAGE/json', 'GET /containers/json'])(
    'at %s: the request is aborted with the wait for it',
    async (step) => {
      await using proxy = await proxyDaemon()
      const held = Promise.withResolvers<void>()
      const path = step.replace('IMAGE', image)
      proxy.treat = (request) => (request === path ? { answerAfter: held.promise } : undefined)
      const engine = dockerEngine({ image, host: proxy.host, apiTimeoutMs: 4000 })
      await engine.create(SPEC).then(
        (sandbox) => sandbox.destroy(),
        (error: unknown) => expect(error).toMatchObject({ code: 'docker_unreachable' }),
      )
      expect(proxy.requests).toContain(path)
      await engine.close()
      expect(await findOpenConnections(proxy)).toBeUndefined()
      held.resolve()
    },
  )

  test('that is slow to create and to start: both may take twice the API timeout', async () => {
    await using proxy = await proxyDaemon()
    proxy.treat = (request) =>
      /POST \/containers\/(create|ID\/start)/.test(request) ? { answerAfter: sleep(4500) } : undefined
    const engine = dockerEngine({ image, host: proxy.host, apiTimeoutMs: 3000 })
    const sandbox = await engine.create(SPEC)
    expect(sandbox.ready.checks['pid']).toBe(1)
    await sandbox.destroy()
    await engine.close()
  })
})
