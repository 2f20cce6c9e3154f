import { describe, expect, it } from 'vitest'
import { type ExecutionResult, ScriptExecutor } from '../../../src/executor/index.ts'
import { type Lease, type PoolOptions, SandboxPool } from '../../../src/pool/index.ts'
import type { Sandbox } from '../../../src/sandbox/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const MISUSE = 'the run was cancelled: its lease had been released; keep the lease until the run has settled'
const RESULT = { type: 'final_result', execution_id: 'late', data: 1 }

/** A pool of one sandbox, whose scripts never end. */
function onePool(
  bytes: Uint8Array = wireLines(),
  recovered?: () => Promise<void>,
  options: Partial<PoolOptions> = {},
): SandboxPool {
  let made = 0
  const engine = {
    ...fakeEngine(),
    create: () => {
      made += 1
      const sandbox = replayChannel(bytes, { after: 'open' })
      return Promise.resolve(Object.assign(sandbox, { id: `s${made}`, ...(recovered && { recovered }) }))
    },
  }
  return new SandboxPool({ engine, specs: { default: fakeSpec() }, poolSize: 1, maxOverflow: 0, ...options })
}

function runIn(sandbox: Sandbox): Promise<ExecutionResult> {
  return new ScriptExecutor().run({ sandbox, script: 'while True: pass', executionId: 'late' })
}

describe('a lease that is released during its run', () => {
  it('is not leased again: the run is cancelled, the sandbox retired, and the misuse reported', async () => {
    await using pool = onePool()
    const first = await pool.checkout('default', { key: 'k' })
    const running = runIn(first.sandbox)
    await quiet()
    await first.release()
    await using second = await pool.checkout('default', { key: 'k' })
    expect(second.sandbox.id).toBe('s2')
    const { status, error, warnings, sandbox } = await running
    expect({ status, error, warnings, id: sandbox.id }).toEqual({
      status: 'cancelled',
      error: MISUSE,
      warnings: [{ code: 'lease_released', message: MISUSE, traceback: null }],
      id: 's1',
    })
  })

  it('is not given to a waiting checkout either', async () => {
    await using pool = onePool()
    const first = await pool.checkout('default')
    const waiting = watch(pool.checkout('default', { sandboxId: first.sandbox.id }))
    const running = runIn(first.sandbox)
    await quiet()
    await first.release()
    expect((await running).status).toBe('cancelled')
    await quiet()
    expect(waiting.value?.sandbox.id).toBe('s2')
  })

  it('keeps its result, with the misuse as a warning', async () => {
    await using pool = onePool(wireLines(RESULT))
    const first = await pool.checkout('default')
    const running = runIn(first.sandbox)
    await quiet()
    await first.release()
    const { status, finalData, warnings } = await running
    expect({ status, finalData, codes: warnings.map(({ code }) => code) }).toEqual({
      status: 'completed',
      finalData: 1,
      codes: ['cancelled', 'lease_released'],
    })
  })

  it('is the same for `await using` and a run that was returned without `await`', async () => {
    await using pool = onePool()
    const forget = async (): Promise<{ running: Promise<ExecutionResult> }> => {
      await using lease: Lease = await pool.checkout('default')
      return { running: runIn(lease.sandbox) }
    }
    expect((await (await forget()).running).error).toBe(MISUSE)
    await using next = await pool.checkout('default')
    expect(next.sandbox.id).toBe('s2')
  })
})

describe('a run that was started after its lease', () => {
  it('is cancelled at the next checkout, which gets another sandbox', async () => {
    await using pool = onePool()
    const first = await pool.checkout('default')
    await first.release()
    const running = runIn(first.sandbox)
    await quiet()
    await using second = await pool.checkout('default')
    expect(second.sandbox.id).toBe('s2')
    expect(await running).toMatchObject({ status: 'cancelled', error: MISUSE })
  })

  it('is cancelled when its sandbox has recovered, and no checkout hangs', async () => {
    const recovery = Promise.withResolvers<void>()
    await using pool = onePool(wireLines(), () => recovery.promise)
    const first = await pool.checkout('default')
    await first.release()
    const waiting = watch(pool.checkout('default'))
    const running = runIn(first.sandbox)
    await quiet()
    recovery.resolve()
    expect(await running).toMatchObject({ status: 'cancelled', error: MISUSE })
    await quiet()
    expect(waiting.value?.sandbox.id).toBe('s2')
  })

  it('is cancelled when it starts while the health of its sandbox is checked', async () => {
    const health = Promise.withResolvers<boolean>()
    const options = { isHealthy: () => health.promise, healthCheckAfterIdleMs: 0 }
    await using pool = onePool(wireLines(), undefined, options)
    const first = await pool.checkout('default')
    await first.release()
    const waiting = watch(pool.checkout('default'))
    await quiet()
    const running = runIn(first.sandbox)
    await quiet()
    health.resolve(true)
    expect(await running).toMatchObject({ status: 'cancelled', error: MISUSE })
    await quiet()
    expect(waiting.value?.sandbox.id).toBe('s2')
  })

  it('is cancelled when another event serves the queue', async () => {
    await using pool = onePool()
    const first = await pool.checkout('default')
    await first.release()
    const running = runIn(first.sandbox)
    await quiet()
    await pool.prewarm()
    expect(await running).toMatchObject({ status: 'cancelled', error: MISUSE })
  })
})
