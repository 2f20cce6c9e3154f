import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }
const down = new SandglassError('sandbox_setup_failed', 'the daemon is down')

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('PO-01: an engine that fails', () => {
  it('gives a checkout the error of its own creation', async () => {
    const engine = fakeEngine()
    engine.failure = down
    await using pool = new SandboxPool({ engine, specs, poolSize: 0, maxOverflow: 1 })
    await expect(pool.checkout('default')).rejects.toBe(down)
    expect(pool.stats()).toMatchObject({ failures: 1, misses: 1, starting: 0, waiting: 0 })
  })

  it('rejects each of many waiters, with one creation for each and one refill', async () => {
    const engine = fakeEngine()
    engine.failure = down
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 2 })
    const all = await Promise.allSettled(Array.from({ length: 50 }, () => pool.checkout('default')))
    expect(all).toEqual(all.map(() => ({ status: 'rejected', reason: down })))
    expect(engine.calls).toBe(51)
  })

  it('does not reject a waiter while another creation is active', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 0, maxOverflow: 2 })
    const [first, second] = [watch(pool.checkout('default')), watch(pool.checkout('default'))]
    await quiet()
    engine.pending[0]?.fail(down)
    await quiet()
    expect([first.state, second.state, engine.pending.length]).toEqual(['pending', 'pending', 1])
    engine.pending[0]?.succeed()
    await quiet()
    expect([first.value?.sandbox.id, second.state]).toEqual(['s1', 'pending'])
    engine.pending[0]?.fail(down)
    await quiet()
    expect(second.error).toBe(down)
    await first.value?.release()
  })

  it('a checkout that waited for a refill starts its own creation when that fails', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const warm = watch(pool.prewarm())
    const checkout = watch(pool.checkout('default'))
    await quiet()
    engine.pending[0]?.fail(down)
    await quiet()
    expect([warm.error, checkout.state, engine.pending.length]).toEqual([down, 'pending', 1])
    engine.pending[0]?.succeed()
    await quiet()
    expect(checkout.state).toBe('fulfilled')
    await checkout.value?.release()
  })

  it('prewarm throws the error, and the refill is retried after 100 ms, 200 ms … 10 s', async () => {
    const engine = fakeEngine()
    engine.failure = down
    await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
    await expect(pool.prewarm()).rejects.toBe(down)
    const gaps: number[] = []
    for (let sum = 0, calls = engine.calls; gaps.length < 9;) {
      await vi.advanceTimersByTimeAsync(100)
      sum += 100
      if (engine.calls === calls) continue
      expect(engine.calls - calls).toBe(2)
      calls = engine.calls
      gaps.push(sum)
      sum = 0
    }
    expect(gaps).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    engine.failure = undefined
    await vi.advanceTimersByTimeAsync(10_000)
    expect(pool.stats()).toMatchObject({ idle: 2, failures: 20 })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('prewarm does not wait for the next planned retry', async () => {
    const engine = fakeEngine()
    engine.failure = down
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    await expect(pool.prewarm()).rejects.toBe(down)
    engine.failure = undefined
    await pool.prewarm()
    expect(pool.stats().idle).toBe(1)
  })

  it('a waiter gets the last error of the engine as the cause at its deadline', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const first = await pool.checkout('default')
    const second = await pool.checkout('default')
    engine.failure = down
    engine.manual = false
    await first.destroy()
    await quiet()
    engine.manual = true
    const third = watch(pool.checkout('default', { timeoutMs: 50 }))
    await vi.advanceTimersByTimeAsync(50)
    expect(third.error).toMatchObject({ code: 'pool_exhausted', cause: down })
    expect((third.error as Error).message).toContain('; the last error of the engine: the daemon is down; ')
    engine.succeedAll()
    await second.release()
  })

  it('a waiter gets at its deadline the reason for which a sandbox that starts waits', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const early = watch(pool.checkout('default', { timeoutMs: 50 }))
    await quiet()
    engine.pending[0]?.wait('no node has room')
    engine.pending[0]?.wait('the image is pulled')
    await vi.advanceTimersByTimeAsync(50)
    expect((early.error as Error).message).toContain(
      ' after 50 ms); a sandbox that starts waits: the image is pulled; release leases sooner, ',
    )
    engine.pending[0]?.succeed()
    const lease = await pool.checkout('default')
    const late = watch(pool.checkout('default', { timeoutMs: 50 }))
    await vi.advanceTimersByTimeAsync(50)
    expect((late.error as Error).message).toContain(' after 50 ms); release leases sooner, ')
    await lease.release()
  })

  it('a success clears the last error, and a lease resets the back-off', async () => {
    const engine = fakeEngine()
    engine.failure = down
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    await expect(pool.prewarm()).rejects.toBe(down)
    await vi.advanceTimersByTimeAsync(700)
    engine.failure = undefined
    const lease = await pool.checkout('default')
    const late = watch(pool.checkout('default', { timeoutMs: 10 }))
    await vi.advanceTimersByTimeAsync(800)
    expect([(late.error as SandglassError).code, (late.error as Error).cause]).toEqual(['pool_exhausted', undefined])
    engine.failure = down
    await lease.destroy()
    await quiet()
    engine.failure = undefined
    await vi.advanceTimersByTimeAsync(99)
    expect(pool.stats().idle).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(pool.stats().idle).toBe(1)
  })

  it('a sandbox that dies right after its creation is replaced with a growing back-off', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const warm = watch(pool.prewarm())
    let made = 0
    for (let time = 0; time < 3_000; time += 100) {
      for (const sandbox of engine.succeedAll()) {
        sandbox.crash()
        made += 1
      }
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(warm.state).not.toBe('pending')
    expect(made).toBe(5)
    expect(engine.alive()).toEqual([])
  })

  it('an engine that throws instead of rejecting is treated the same', async () => {
    const engine = fakeEngine()
    engine.create = () => {
      throw down
    }
    await using pool = new SandboxPool({ engine, specs, poolSize: 0, maxOverflow: 1 })
    await expect(pool.checkout('default')).rejects.toBe(down)
  })
})

describe('PO-02: health', () => {
  const pool = (engine = fakeEngine(), isHealthy: (id: string) => Promise<boolean>, poolSize = 2): SandboxPool =>
    new SandboxPool({ engine, specs, poolSize, maxOverflow: 0, isHealthy: (sandbox) => isHealthy(sandbox.id) })

  it('checks only a sandbox that has been idle for healthCheckAfterIdleMs', async () => {
    const asked: string[] = []
    await using one = pool(fakeEngine(), async (id) => asked.push(id) > 0, 1)
    await one.prewarm()
    await vi.advanceTimersByTimeAsync(29_999)
    await (await one.checkout('default')).release()
    expect(asked).toEqual([])
    await vi.advanceTimersByTimeAsync(30_000)
    await (await one.checkout('default')).release()
    expect(asked).toEqual(['s1'])
    expect(one.stats()).toMatchObject({ hits: 2, destroyed: 0 })
  })

  it('destroys an unhealthy one, also when the check fails, and continues with the next', async () => {
    const engine = fakeEngine()
    await using one = pool(
      engine,
      async (id) => {
        if (id === 's1') return false
        if (id === 's2') throw new Error('no pong')
        return true
      },
      3,
    )
    await one.prewarm()
    await vi.advanceTimersByTimeAsync(30_000)
    await using lease = await one.checkout('default')
    expect(lease.sandbox.id).toBe('s3')
    expect(engine.made.slice(0, 2).map((sandbox) => sandbox.destroyCalls)).toEqual([1, 1])
    expect(one.stats()).toMatchObject({ hits: 1, misses: 0, failures: 2, destroyed: 2 })
  })

  it('treats 5 s without an answer as unhealthy', async () => {
    const engine = fakeEngine()
    await using one = pool(engine, () => new Promise(() => {}), 1)
    await one.prewarm()
    await vi.advanceTimersByTimeAsync(30_000)
    const checkout = watch(one.checkout('default'))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(checkout.value?.sandbox.id).toBe('s2')
    expect(engine.made[0]?.destroyCalls).toBe(1)
    await checkout.value?.release()
  })

  it('hides a sandbox from others during its check, and keeps it when its waiter has left', async () => {
    const engine = fakeEngine()
    const answer = Promise.withResolvers<boolean>()
    await using one = pool(engine, (id) => (id === 's1' ? answer.promise : Promise.resolve(true)), 2)
    await one.prewarm()
    await vi.advanceTimersByTimeAsync(30_000)
    const stop = new AbortController()
    const first = watch(one.checkout('default', { signal: stop.signal }))
    const second = watch(one.checkout('default'))
    const third = watch(one.checkout('default', { timeoutMs: 10 }))
    await quiet()
    expect([first.state, second.value?.sandbox.id, third.state]).toEqual(['pending', 's2', 'pending'])
    await vi.advanceTimersByTimeAsync(10)
    stop.abort()
    answer.resolve(true)
    await quiet()
    expect([first.error, third.error]).toMatchObject([{ code: 'aborted' }, { code: 'pool_exhausted' }])
    expect(one.stats()).toMatchObject({ idle: 1, leased: 1, destroyed: 0 })
    await second.value?.release()
  })

  it('a sandbox that dies during its check is replaced for its waiter', async () => {
    const engine = fakeEngine()
    await using one = pool(engine, () => new Promise(() => {}), 1)
    await one.prewarm()
    await vi.advanceTimersByTimeAsync(30_000)
    const checkout = watch(one.checkout('default'))
    await quiet()
    engine.made[0]?.crash()
    await quiet()
    expect(checkout.value?.sandbox.id).toBe('s2')
    await checkout.value?.release()
  })

  it('with healthCheckAfterIdleMs 0 checks every idle one, but none that was made for the checkout', async () => {
    const engine = fakeEngine()
    await using one = new SandboxPool({
      engine,
      specs,
      poolSize: 1,
      healthCheckAfterIdleMs: 0,
      isHealthy: () => Promise.resolve(false),
    })
    await (await one.checkout('default')).release()
    await using lease = await one.checkout('default')
    expect(lease.sandbox.id).toBe('s2')
  })
})
