import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  dockerEngine,
  type JournalEvent,
  type JournalStore,
  localEngine,
  memoryStore,
  SandboxPool,
  SandglassError,
  type SandboxEngine,
} from '../../../src/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { fakeEngine } from '../../support/pool/fake-engine.ts'
import { onLocalAndPyodide } from './engine-alone.ts'
import { lostSandboxTests, orchestrator, specs, TASK } from './lost-sandboxes.ts'

const { skip } = await requireLocalEngine()
describe('a pool without a sandbox gives a result and does not throw (PO-04)', () => {
  test('with an unknown spec', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs })
    for (const policy of ['off', 'strict'] as const) {
      const result = await orchestrator(pool, { policy }).execute(TASK, 'defualt')
      expect(result).toMatchObject({
        success: false,
        finalData: null,
        record: { status: 'infrastructure', sandboxName: 'defualt', attempts: [{ status: 'infrastructure' }] },
      })
      expect(result.error).toMatch(/defualt.*\(unknown_spec\)$/)
    }
  })

  test('after it was closed', async () => {
    const pool = new SandboxPool({ engine: fakeEngine(), specs })
    await pool.close()
    for (const policy of ['off', 'strict'] as const) {
      const result = await orchestrator(pool, { policy }).execute(TASK)
      expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
      expect(result.error).toMatch(/\(pool_closed\)$/)
    }
  })

  test('with an engine that fails, in both modes', async () => {
    const engine = fakeEngine()
    engine.failure = new SandglassError('docker_unreachable', 'no Docker daemon at unix:///nowhere')
    await using pool = new SandboxPool({ engine, specs, checkoutTimeoutMs: 200 })
    const { policy } = { policy: 'off' } as const
    for (const run of [
      () => orchestrator(pool, { policy }).execute(TASK),
      () => orchestrator(pool, { policy }).executeInteractive(TASK),
      () => orchestrator(pool).execute(TASK),
    ]) {
      const result = await run()
      expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
      expect(result.error).toContain('no Docker daemon at unix:///nowhere')
      expect(result.toAgentContext()).toContain('status="infrastructure"')
    }
  })

  test('with an engine that throws a foreign error', async () => {
    const engine = fakeEngine()
    engine.failure = new Error('boom')
    await using pool = new SandboxPool({ engine, specs, checkoutTimeoutMs: 200 })
    const result = await orchestrator(pool, { policy: 'off' }).execute(TASK)
    expect(result.record.status).toBe('infrastructure')
    expect(result.error).toContain('boom')
  })

  test('with a Docker daemon that is down', async () => {
    const engine: SandboxEngine = dockerEngine({ host: 'tcp://127.0.0.1:1', hostPathMap: { '/': '/' } })
    await using pool = new SandboxPool({ engine, specs, checkoutTimeoutMs: 10_000 })
    const result = await orchestrator(pool).execute(TASK)
    expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
    expect(result.error).toMatch(/127\.0\.0\.1:1.*\(docker_unreachable\)$/)
    await engine.close()
  }, 30_000)
})

await onLocalAndPyodide(lostSandboxTests)

describe.skipIf(skip)('a journal that fails, on the local engine', () => {
  let engine: SandboxEngine
  beforeAll(() => {
    engine = localEngine()
  })
  afterAll(() => engine.close())

  test('a journal that cannot be written is an infrastructure failure, and the result is kept', async () => {
    await using pool = new SandboxPool({ engine, specs })
    const full = (): never => {
      throw new Error('disk full')
    }
    for (const append of [full, async () => full()]) {
      const journal: JournalStore = { ...memoryStore(), append }
      const result = await orchestrator(pool, { journal }).execute(TASK)
      expect(result).toMatchObject({
        success: false,
        error: 'the journal cannot be written: disk full',
        record: { status: 'infrastructure', task: TASK },
      })
    }
  })

  test('an answer is partial when the journal cannot store its end: nothing counts without its record', async () => {
    await using pool = new SandboxPool({ engine, specs })
    const store = memoryStore()
    const append = (event: JournalEvent): void => {
      if (event.type === 'run_ended') throw new Error('disk full')
      void store.append(event)
    }
    const result = await orchestrator(pool, { journal: { ...store, append } }).execute(TASK)
    expect(result).toMatchObject({
      success: false,
      finalData: null,
      error: 'the journal cannot be written: disk full',
      partial: 1,
      record: { status: 'infrastructure', partial: 1 },
    })
  })
})
