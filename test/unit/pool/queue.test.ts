import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { type Lease, SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('PO-01: the queue', () => {
  it('POL-004: a checkout of an exhausted pool is rejected at its deadline with the sizes and leaves the queue', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const [a, b] = [await pool.checkout('default'), await pool.checkout('default')]
    const third = watch(pool.checkout('default', { timeoutMs: 500 }))
    await vi.advanceTimersByTimeAsync(499)
    expect(third.state).toBe('pending')
    expect(pool.stats().waiting).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(third.error).toBeInstanceOf(SandglassError)
    expect(third.error).toMatchObject({
      code: 'pool_exhausted',
      retryable: true,
      message:
        'pool exhausted: no sandbox of spec "default" became free ' +
        '(2 leased, pool size 2, overflow 0, 1 waiting, after 500 ms); ' +
        'release leases sooner, or raise poolSize, maxOverflow or checkoutTimeoutMs',
    })
    expect(pool.stats().waiting).toBe(0)
    await a.release()
    expect(pool.stats()).toMatchObject({ idle: 1, leased: 1 })
    await b.release()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('uses the checkoutTimeoutMs of the pool by default', async () => {
    await using pool = new SandboxPool({
      engine: fakeEngine(),
      specs,
      poolSize: 1,
      maxOverflow: 0,
      checkoutTimeoutMs: 70,
    })
    await using _lease = await pool.checkout('default')
    const late = watch(pool.checkout('default'))
    await vi.advanceTimersByTimeAsync(70)
    expect(late.error).toMatchObject({ code: 'pool_exhausted' })
  })

  it('a checkout whose own creation hangs is rejected at its deadline, and the late sandbox is kept', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const late = watch(pool.checkout('default', { timeoutMs: 100 }))
    await vi.advanceTimersByTimeAsync(100)
    expect((late.error as Error).message).toContain(
      '(0 leased, 1 starting, pool size 1, overflow 0, 1 waiting, after 100 ms)',
    )
    engine.pending[0]?.succeed()
    await quiet()
    expect(pool.stats()).toMatchObject({ idle: 1, starting: 0, created: 1, destroyed: 0 })
  })

  it('POL-007: ten waiters are served in order of arrival', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    let held: Lease = await pool.checkout('default')
    const served: number[] = []
    for (let number = 0; number < 10; number += 1) {
      void pool.checkout('default').then((lease) => {
        served.push(number)
        held = lease
      })
    }
    for (let number = 0; number < 10; number += 1) {
      await held.release()
      await quiet()
      expect(served.length).toBe(number + 1)
    }
    expect(served).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(pool.stats()).toMatchObject({ waits: 10, misses: 1, hits: 0, created: 1 })
    await held.release()
  })

  it("destroys a returned sandbox with another key than the first waiter's, and makes a new one for that waiter", async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const alice = await pool.checkout('default', { key: 'alice' })
    const bob = watch(pool.checkout('default', { key: 'bob' }))
    const aliceAgain = watch(pool.checkout('default', { key: 'alice' }))
    await alice.release()
    await quiet()
    expect(bob.value?.sandbox.id).toBe('s2')
    expect(aliceAgain.state).toBe('pending')
    await bob.value?.release()
    await quiet()
    expect(aliceAgain.value?.sandbox.id).toBe('s3')
    expect(engine.alive().map((sandbox) => sandbox.id)).toEqual(['s3'])
    await aliceAgain.value?.release()
  })

  it('a returned sandbox serves the first waiter, whose creation then serves the second', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1 })
    const first = await pool.checkout('default')
    engine.manual = true
    const second = watch(pool.checkout('default'))
    const third = watch(pool.checkout('default'))
    await quiet()
    expect(pool.stats()).toMatchObject({ misses: 2, waits: 1, starting: 1, waiting: 2 })
    await first.release()
    await quiet()
    expect([second.value?.sandbox.id, third.state]).toEqual(['s1', 'pending'])
    engine.pending[0]?.succeed()
    await quiet()
    expect(third.value?.sandbox.id).toBe('s2')
    await second.value?.release()
    await third.value?.release()
  })

  it('a destroyed sandbox frees a place for the first waiter', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const first = await pool.checkout('default')
    const second = watch(pool.checkout('default'))
    await first.destroy()
    await quiet()
    expect(second.value?.sandbox.id).toBe('s2')
    await second.value?.release()
  })

  it('an aborted waiter leaves the queue with the reason as cause, and the next one is served', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const first = await pool.checkout('default')
    const stop = new AbortController()
    const second = watch(pool.checkout('default', { signal: stop.signal }))
    const third = watch(pool.checkout('default'))
    stop.abort('changed my mind')
    await quiet()
    expect(second.error).toMatchObject({ code: 'aborted', cause: 'changed my mind' })
    expect(pool.stats().waiting).toBe(1)
    await first.release()
    await quiet()
    expect(third.state).toBe('fulfilled')
    await third.value?.release()
  })

  it('a signal that has already fired rejects at once and starts nothing', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs })
    await expect(pool.checkout('default', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
    expect(engine.calls).toBe(0)
  })

  it('a signal that fires after the checkout changes nothing', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const stop = new AbortController()
    const lease = await pool.checkout('default', { signal: stop.signal })
    stop.abort()
    await lease.release()
    expect(pool.stats()).toMatchObject({ idle: 1, destroyed: 0 })
  })

  it('the sandbox of an aborted checkout is kept idle and serves the next', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const stop = new AbortController()
    const first = watch(pool.checkout('default', { signal: stop.signal }))
    await quiet()
    stop.abort()
    await quiet()
    expect([first.state, engine.pending[0]?.signal?.aborted]).toEqual(['rejected', false])
    engine.pending[0]?.succeed()
    await quiet()
    expect(pool.stats()).toMatchObject({ idle: 1, destroyed: 0 })
    await using lease = await pool.checkout('default')
    expect(lease.sandbox.id).toBe('s1')
  })
})
