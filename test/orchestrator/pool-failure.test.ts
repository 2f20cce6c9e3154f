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
  ToolOrchestrator,
  type ToolOrchestratorOptions,
} from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { fakeEngine } from '../pool/fake-engine.ts'
import { onEachEngineAlone } from './each-engine-alone.ts'

const { skip } = await requireLocalEngine()
const specs = { default: { limits: sandboxLimits(resolveLimits({})) } }
const TASK = 'Anything'

function orchestrator(pool: SandboxPool, options: Partial<ToolOrchestratorOptions> = {}): ToolOrchestrator {
  return new ToolOrchestrator({ pool, llmCall: scriptedModel('emit_result(1)').call, ...options })
}

describe('a pool without a sandbox: a value, and nothing thrown (PO-04)', () => {
  test('a spec that it does not have', async () => {
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

  test('a pool that is closed', async () => {
    const pool = new SandboxPool({ engine: fakeEngine(), specs })
    await pool.close()
    for (const policy of ['off', 'strict'] as const) {
      const result = await orchestrator(pool, { policy }).execute(TASK)
      expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
      expect(result.error).toMatch(/\(pool_closed\)$/)
    }
  })

  test('an engine that makes none, in both modes', async () => {
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

  test('an engine that throws what is no error of Sandglass', async () => {
    const engine = fakeEngine()
    engine.failure = new Error('boom')
    await using pool = new SandboxPool({ engine, specs, checkoutTimeoutMs: 200 })
    const result = await orchestrator(pool, { policy: 'off' }).execute(TASK)
    expect(result.record.status).toBe('infrastructure')
    expect(result.error).toContain('boom')
  })

  test('a Docker daemon that is down', async () => {
    const engine: SandboxEngine = dockerEngine({ host: 'tcp://127.0.0.1:1', hostPathMap: { '/': '/' } })
    await using pool = new SandboxPool({ engine, specs, checkoutTimeoutMs: 10_000 })
    const result = await orchestrator(pool).execute(TASK)
    expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
    expect(result.error).toMatch(/127\.0\.0\.1:1.*\(docker_unreachable\)$/)
    await engine.close()
  }, 30_000)
})

onEachEngineAlone((at) => {
  test('a pool whose only sandbox is lent to another: checkoutTimeoutMs ends the wait (PO-04)', async () => {
    await using pool = new SandboxPool({ engine: at.engine, specs, poolSize: 0, maxOverflow: 1 })
    const other = await pool.checkout('default', { key: 'other' })
    const result = await orchestrator(pool, { checkoutTimeoutMs: 100, policy: 'off' }).execute(TASK)
    expect(result).toMatchObject({
      success: false,
      record: {
        status: 'infrastructure',
        attempts: [{ status: 'infrastructure', script: 'emit_result(1)', sandbox: null }],
      },
    })
    expect(result.error).toMatch(/\(pool_exhausted\)$/)
    await other.release()
    expect((await orchestrator(pool, { policy: 'off' }).execute(TASK)).finalData).toBe(1)
  }, 60_000)

  test('a sandbox that is lost in a step: the next attempt has another (PO-04)', async ({ skip: leave }) => {
    if (at.name === 'pyodide') {
      const reason = 'no script can end its sandbox: the broker runs in the process of the host'
      console.warn(`skipped: pyodide: a sandbox that is lost in a step: ${reason}`)
      leave(reason)
    }
    await using pool = new SandboxPool({ engine: at.engine, specs, poolSize: 1 })
    const model = scriptedModel(
      'emit_intermediate("a", 1)',
      'import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time\ntime.sleep(20)',
      'emit_result(collected[0]["data"])',
    )
    const result = await orchestrator(pool, { llmCall: model.call, policy: 'off' }).executeInteractive(TASK)
    expect(result).toMatchObject({ success: true, finalData: 1 })
    const attempts = result.record.steps.flatMap((step) => step.attempts)
    expect(attempts.map(({ status }) => status).at(-1)).toBe('completed')
    expect(attempts.length).toBe(3)
  }, 60_000)
})

describe.skipIf(skip)('a journal that fails, on the local engine', () => {
  let engine: SandboxEngine
  beforeAll(() => {
    engine = localEngine()
  })
  afterAll(() => engine.close())

  test('a journal that cannot be written is infrastructure, and the result is there all the same', async () => {
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

  test('an answer whose end the journal does not take is a partial one: nothing counts without its record', async () => {
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
