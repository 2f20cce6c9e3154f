import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('PO-01: close', () => {
  it('POL-013: destroys leased sandboxes after the grace period, refuses later checkouts, and may be called twice', async () => {
    const engine = fakeEngine()
    const pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const lease = await pool.checkout('default')
    await quiet()
    const closed = watch(pool.close({ graceMs: 2_000 }))
    await vi.advanceTimersByTimeAsync(1_999)
    expect(closed.state).toBe('pending')
    expect(engine.alive().map((sandbox) => sandbox.id)).toEqual(['s1'])
    await vi.advanceTimersByTimeAsync(1)
    expect(closed.state).toBe('fulfilled')
    expect(engine.alive()).toEqual([])
    await expect(pool.checkout('default')).rejects.toMatchObject({ code: 'pool_closed' })
    await expect(pool.prewarm()).rejects.toMatchObject({ code: 'pool_closed' })
    await pool.close()
    await pool[Symbol.asyncDispose]()
    await lease.release()
    expect(engine.made.map((sandbox) => sandbox.destroyCalls)).toEqual([1, 1])
    expect(pool.stats()).toMatchObject({ created: 2, destroyed: 2, idle: 0, leased: 0, starting: 0, waiting: 0 })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends when all leases were returned within the grace period, and keeps none of them', async () => {
    const engine = fakeEngine()
    const pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const [a, b] = [await pool.checkout('default'), await pool.checkout('default')]
    const closed = watch(pool.close({ graceMs: 60_000 }))
    await a.release()
    await quiet()
    expect([closed.state, engine.alive().length]).toEqual(['pending', 1])
    await b.release()
    await quiet()
    expect([closed.state, engine.alive().length, vi.getTimerCount()]).toEqual(['fulfilled', 0, 0])
  })

  it('rejects waiting checkouts and prewarms', async () => {
    const engine = fakeEngine()
    engine.manual = true
    const pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const all = [watch(pool.prewarm()), watch(pool.checkout('default')), watch(pool.checkout('default'))]
    await quiet()
    const closed = watch(pool.close())
    await quiet()
    expect(all.map((one) => one.error)).toMatchObject(Array.from(all, () => ({ code: 'pool_closed' })))
    expect([closed.state, engine.pending[0]?.signal?.aborted]).toEqual(['pending', true])
    engine.pending[0]?.fail(new Error('aborted'))
    await quiet()
    expect(closed.state).toBe('fulfilled')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits for active creations and for the end of their sandboxes', async () => {
    const engine = fakeEngine()
    engine.manual = true
    const gone = Promise.withResolvers<void>()
    engine.destroying = () => gone.promise
    const pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const warm = watch(pool.prewarm())
    const closed = watch(pool.close())
    engine.pending[0]?.succeed()
    await quiet()
    expect([warm.state, closed.state, engine.made[0]?.destroyCalls]).toEqual(['rejected', 'pending', 1])
    gone.resolve()
    await quiet()
    expect(closed.state).toBe('fulfilled')
    expect(engine.alive()).toEqual([])
  })

  it('stops the retries of a failing engine', async () => {
    const engine = fakeEngine()
    engine.failure = new Error('down')
    const pool = new SandboxPool({ engine, specs, poolSize: 1 })
    await expect(pool.prewarm()).rejects.toThrow('down')
    await pool.close()
    const { calls } = engine
    await vi.advanceTimersByTimeAsync(60_000)
    expect([engine.calls, vi.getTimerCount()]).toEqual([calls, 0])
  })

  it('closes by `await using`, with leases of a live scope', async () => {
    const engine = fakeEngine()
    {
      await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
      await using _lease = await pool.checkout('default')
    }
    expect(engine.alive()).toEqual([])
  })
})
