import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { storeInMemory } from '../../../../src/artifacts/index.ts'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import type { ExecutionResult } from '../../../../src/executor/index.ts'
import type { SandglassOptions } from '../../../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../../../src/sandglass.ts'
import { type PrivateDaemon, requirePrivateDaemon, startDaemon } from '../../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { containers, docker } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { findLeftContainers } from './own-containers.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const STARTING_MS = 240_000
const MiB = 1024 * 1024

const ENDLESS = `print('started', flush=True)
while True:
    pass`

/** Starts an endless script; resolves when it runs. An object wraps the promise of its result, so that it is not awaited. */
async function endless(
  sandglass: Sandglass,
  executionTimeoutSec = 120,
): Promise<{ readonly result: Promise<ExecutionResult> }> {
  const started = Promise.withResolvers<void>()
  const result = sandglass.run(ENDLESS, { limits: { executionTimeoutSec }, onEvent: () => started.resolve() })
  await Promise.race([started.promise, result])
  return { result }
}

/* PO-04 for the pool: without a daemon it rejects with a code, does not wait, and recovers. */
describe.skipIf(noDocker || noDaemon)('a daemon', () => {
  let daemon: PrivateDaemon
  const open = (): Promise<Sandglass> =>
    createSandglass({ engine: dockerEngine({ image, host: daemon.host }), poolSize: 2, maxOverflow: 0 })
  beforeAll(async () => {
    daemon = await startDaemon({ runtimes: { broken: { path: '/no/such/runsc' }, kata: { path: 'runc' } } })
    await daemon.load(image)
  }, STARTING_MS)
  afterEach(async () => expect(await findLeftContainers(daemon.host)).toBeUndefined())
  afterAll(() => daemon?.close(), STARTING_MS)

  test.each([
    ['is stopped', () => daemon.stop()],
    ['is killed', () => daemon.kill()],
  ])(
    'FLT-004: that %s in the middle of a run: sandbox-lost within 10 s, and the pool recovers when it is back',
    async (_how, end) => {
      await using sandglass = await open()
      const { result } = await endless(sandglass)
      const from = performance.now()
      const ended = end()
      const lost = await result
      const tookMs = performance.now() - from
      expect([lost.status, lost.errorKind, lost.success]).toEqual(['sandbox-lost', 'infrastructure', false])
      expect(tookMs).toBeLessThan(10_000)
      console.log(`the daemon ${_how}: the run was lost after ${Math.round(tookMs)} ms`)
      await ended
      // The idle sandbox ended with the daemon, too. Until its end is read, a run may still get it, and lose it.
      const noticed = await eventually(() => (sandglass.stats().idle === 0 ? undefined : 'still idle'), 5000)
      expect(noticed).toBeUndefined()
      // A run without a daemon reports that and does not wait.
      await expect(sandglass.run('emit_result(0)', { checkoutTimeoutMs: 5000 })).rejects.toMatchObject({
        message: expect.stringContaining('no Docker daemon at') as string,
      })
      await daemon.restart()
      const back = await eventually(() => {
        const { idle } = sandglass.stats()
        return idle === 2 ? undefined : `${idle} idle sandboxes`
      }, 30_000)
      expect(back).toBeUndefined()
      expect((await sandglass.run('emit_result(1)')).finalData).toBe(1)
      // Memory kills are reported again, too: that needs a new connection for the daemon's events.
      const bomb = await sandglass.run('x = bytearray(1 << 30)\nemit_result(len(x))', {
        limits: { memoryBytes: 128 * MiB },
      })
      expect(bomb.status).toBe('memory-limit')
    },
    120_000,
  )

  test.each([
    ['is stopped', () => daemon.stop()],
    ['is killed', () => daemon.kill()],
  ])(
    'that %s loses of a persisted workspace what changed since the last synchronisation, and its error says when that was',
    async (_how, end) => {
      const store = storeInMemory()
      await using sandglass = await createSandglass({ engine: dockerEngine({ image, host: daemon.host }), poolSize: 0 })
      const first = await sandglass.workspace({ persist: 'w', store, files: { kept: '1' } })
      const { syncedAt } = await first.sync()
      const writing = first.run(`open('lost', 'w').write('2')\n${ENDLESS}`, { limits: { executionTimeoutSec: 120 } })
      const ended = end()
      await writing.catch(() => undefined)
      await expect(first.get('kept')).rejects.toMatchObject({
        code: 'workspace_lost',
        message: expect.stringContaining(`the store has its files of ${syncedAt.toISOString()}`) as string,
      })
      await first.close()
      await ended
      await daemon.restart()
      await using next = await sandglass.workspace({ persist: 'w', store })
      expect((await Array.fromAsync(next.list())).map(({ path }) => path)).toEqual(['kept'])
    },
    120_000,
  )

  describe('that loses the image', () => {
    const NAME = 'sandglass-test-image:1'
    /** Another image, with the same content. */
    const rebuild = (): void => {
      const container = docker(daemon.host, 'create', image, '/nothing').trim()
      docker(daemon.host, 'commit', container, NAME)
      docker(daemon.host, 'rm', container)
    }

    const openOn = (options: SandglassOptions): Promise<Sandglass> => {
      rebuild()
      return createSandglass({ engine: dockerEngine({ image: NAME, host: daemon.host }), ...options })
    }

    test('while the pool refills continues to refill while a container holds the image', async () => {
      await using sandglass = await openOn({ poolSize: 2, maxOverflow: 0, maxUses: 1 })
      docker(daemon.host, 'rmi', '--force', NAME)
      for (let number = 0; number < 4; number += 1) {
        expect((await sandglass.run(`emit_result(${number})`)).finalData).toBe(number)
      }
    }, 60_000)

    test('permanently names it in the error, and uses it again when it is back', async () => {
      await using sandglass = await openOn({ poolSize: 0, maxOverflow: 1 })
      expect((await sandglass.run('emit_result(1)')).finalData).toBe(1)
      expect(await findLeftContainers(daemon.host)).toBeUndefined()
      docker(daemon.host, 'rmi', '--force', NAME)
      await expect(sandglass.run('emit_result(2)')).rejects.toMatchObject({
        code: 'image_missing',
        message: expect.stringMatching(/^the image sandglass-test-image:1 is not on the Docker daemon/) as string,
      })
      rebuild()
      expect((await sandglass.run('emit_result(3)')).finalData).toBe(3)
    }, 60_000)

    test('because its name now refers to another image uses that image', async () => {
      await using sandglass = await openOn({ poolSize: 0, maxOverflow: 1 })
      const old = docker(daemon.host, 'inspect', '--format', '{{.Id}}', NAME).trim()
      rebuild()
      expect(await findLeftContainers(daemon.host)).toBeUndefined()
      docker(daemon.host, 'rmi', '--force', old)
      expect((await sandglass.run('emit_result(1)')).finalData).toBe(1)
    }, 60_000)
  })

  test('is asked for the runtime kata by name; the level follows from the probe, not from the name', async () => {
    await using sandglass = await createSandglass({
      engine: dockerEngine({ image, host: daemon.host, runtime: 'kata' }),
      poolSize: 1,
    })
    const { sandbox } = await sandglass.run('emit_result(1)')
    const asked = docker(daemon.host, 'inspect', '--format', '{{.HostConfig.Runtime}}', sandbox.id).trim()
    expect([asked, sandbox.level]).toEqual(['kata', 'container'])
  })

  test('that cannot start the program of a runtime names the runtime', async () => {
    const engine = dockerEngine({ image, host: daemon.host, runtime: 'broken' })
    const report = await engine.report()
    expect(report.reasons).toMatchObject([
      { code: 'runtime_unknown', message: expect.stringContaining('runsc') as string },
    ])
    await engine.close()
  })
})

/** A daemon with a full disk, and a Sandglass on it with one sandbox that was made before the disk was full. */
async function fullDaemon(options: { readonly maxUses?: number } = {}): Promise<FullDaemon> {
  const daemon = await startDaemon({ diskBytes: 1024 * MiB })
  try {
    await daemon.load(image)
    const engine = dockerEngine({ image, host: daemon.host })
    const sandglass = await createSandglass({ engine, poolSize: 1, maxOverflow: 0, ...options })
    expect((await sandglass.run('emit_result(0)')).finalData).toBe(0)
    const filler = join(daemon.directory, 'data/filler')
    fill(filler)
    const close = async (): Promise<void> => {
      await sandglass.close()
      await daemon[Symbol.asyncDispose]()
    }
    return { daemon, sandglass, filler, [Symbol.asyncDispose]: close }
  } catch (error) {
    await daemon[Symbol.asyncDispose]()
    throw error
  }
}

interface FullDaemon extends AsyncDisposable {
  readonly daemon: Awaited<ReturnType<typeof startDaemon>>
  readonly sandglass: Sandglass
  /** Its removal frees space. */
  readonly filler: string
}

// Each of the next two has a private daemon and waits for it most of the time.
describe.skipIf(noDocker || noDaemon).concurrent('a daemon whose disk is full', () => {
  test(
    'refuses new containers with no_space, keeps those that run, and makes new ones when there is room',
    async () => {
      await using full = await fullDaemon()
      const { daemon, sandglass, filler } = full
      // In memory alone: a run needs no space on the disk.
      expect((await sandglass.run('open("x", "w").write("y" * 100_000)\nemit_result(1)')).finalData).toBe(1)
      const engine = dockerEngine({ image, host: daemon.host })
      const report = await engine.report()
      expect(report.reasons.map(({ severity, code }) => [severity, code])).toEqual([['error', 'no_space']])
      rmSync(filler)
      expect((await engine.report()).usable).toBe(true)
      await engine.close()
      expect((await sandglass.run('emit_result(2)')).finalData).toBe(2)
      await sandglass.close()
      expect(await findLeftContainers(daemon.host)).toBeUndefined()
    },
    STARTING_MS,
  )
})

describe.skipIf(noDocker || noDaemon).concurrent('a daemon whose disk is full, with a sandbox for each run', () => {
  test(
    'fails runs with no_space in bounded time, and serves them when there is room',
    async () => {
      await using full = await fullDaemon({ maxUses: 1 })
      const { daemon, sandglass, filler } = full
      // One sandbox may have been made before the disk was full; the one after it cannot be.
      const answers: unknown[] = []
      const from = performance.now()
      for (let number = 0; number < 4 && answers.length === 0; number += 1) {
        await sandglass.run('emit_result(1)').catch((error: unknown) => answers.push(error))
      }
      expect(answers).toMatchObject([{ name: 'SandglassError', code: 'no_space' }])
      expect(performance.now() - from).toBeLessThan(30_000)
      await expect(sandglass.run('emit_result(2)')).rejects.toMatchObject({ code: 'no_space' })
      rmSync(filler)
      for (const number of [3, 4]) expect((await sandglass.run(`emit_result(${number})`)).finalData).toBe(number)
      await sandglass.close()
      expect(await findLeftContainers(daemon.host)).toBeUndefined()
    },
    STARTING_MS,
  )
})

describe.skipIf(noDocker || noDaemon)('a socket whose daemon is replaced by another one', () => {
  test(
    'settles active runs in bounded time; the next sandbox is on the new daemon, and nothing is left on either',
    async () => {
      await using old = await startDaemon()
      await using replacement = await startDaemon()
      await Promise.all([old.load(image), replacement.load(image)])
      const path = (daemon: PrivateDaemon): string => daemon.host.slice('unix://'.length)
      const kept = join(old.directory, 'kept.sock')
      await using sandglass = await createSandglass({
        engine: dockerEngine({ image, host: old.host }),
        poolSize: 2,
        maxOverflow: 0,
      })
      const { result } = await endless(sandglass, 5)
      const idle = sandglass.run('emit_result(1)') // a further sandbox, which is idle when the daemons change
      expect((await idle).finalData).toBe(1)
      linkSync(path(old), kept)
      const names = containers(`unix://${kept}`).map(({ name }) => name)
      expect(names.length).toBeGreaterThanOrEqual(2)
      linkSync(path(replacement), `${path(old)}.next`)
      renameSync(`${path(old)}.next`, path(old))
      const from = performance.now()
      const ended = await result
      expect(['timed-out', 'sandbox-lost']).toContain(ended.status)
      console.log(
        `a socket replaced: the run ended as ${ended.status} after ${Math.round(performance.now() - from)} ms`,
      )
      expect(performance.now() - from).toBeLessThan(5000 + 5000 + 5000)

      // The idle sandbox on the old daemon serves the next run or is replaced.
      expect((await sandglass.run('emit_result(2)')).finalData).toBe(2)
      await using second = await createSandglass({ engine: dockerEngine({ image, host: old.host }), poolSize: 1 })
      const next = await second.run('emit_result(3)')
      expect(containers(replacement.host, next.sandbox.id)).toHaveLength(1)

      await second.close()
      await sandglass.close()
      expect(await findLeftContainers(`unix://${kept}`, 15_000)).toBeUndefined()
      expect(await findLeftContainers(replacement.host)).toBeUndefined()
    },
    STARTING_MS,
  )
})

function fill(path: string): void {
  for (let size = 1 << 24; size >= 1; size >>= 1) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
    } catch {
      // full for pieces of this size
    }
  }
}
