import { describe, expect, it } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

describe('PO-01: warm sandboxes per spec', () => {
  it('starts nothing before the first checkout, then fills up to poolSize in the background', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 3 })
    await quiet()
    expect(engine.calls).toBe(0)
    await using lease = await pool.checkout('default')
    await quiet()
    expect(lease.use).toBe(1)
    expect(pool.stats()).toEqual({
      hits: 0,
      misses: 1,
      waits: 0,
      refills: 2,
      created: 3,
      destroyed: 0,
      retired: 0,
      failures: 0,
      cpuTimeMs: null,
      idle: 2,
      idleBytes: 2 * 16 * 1024 ** 2,
      leased: 1,
      starting: 0,
      waiting: 0,
    })
  })

  it('prewarm resolves when poolSize sandboxes are ready, and later checkouts are hits', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
    const warm = watch(pool.prewarm('default'))
    await quiet()
    engine.pending[0]?.succeed()
    await quiet()
    expect(warm.state).toBe('pending')
    engine.pending[0]?.succeed()
    await quiet()
    expect(warm.state).toBe('fulfilled')
    await using _one = await pool.checkout('default')
    await using _two = await pool.checkout('default')
    expect(pool.stats()).toMatchObject({ hits: 2, misses: 0, created: 2, leased: 2 })
  })

  it('prewarm without a name fills every spec, and stats without a name are totals', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs: { a: fakeSpec(10), b: fakeSpec(20) }, poolSize: 1 })
    await pool.prewarm()
    expect(engine.made.map((sandbox) => sandbox.info.limits.pids)).toEqual([10, 20])
    expect([pool.stats('a').idle, pool.stats('b').idle, pool.stats().idle]).toEqual([1, 1, 2])
  })

  it('prewarm of a pool of size 0 resolves at once', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 0, maxOverflow: 1 })
    await pool.prewarm()
    expect(engine.calls).toBe(0)
  })

  it('refills after a sandbox was destroyed', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const lease = await pool.checkout('default')
    await lease.destroy()
    await quiet()
    expect(pool.stats()).toMatchObject({ created: 2, destroyed: 1, refills: 1, idle: 1, leased: 0 })
  })

  it('replaces an idle sandbox that ends by itself, and frees its resources', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    await (await pool.checkout('default')).release()
    engine.made[0]?.crash()
    await quiet()
    expect(engine.made[0]?.destroyCalls).toBe(1)
    expect(pool.stats()).toMatchObject({ created: 2, destroyed: 1, failures: 1, idle: 1 })
  })

  it('gives an active creation to the checkout instead of starting another', async () => {
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const warm = watch(pool.prewarm())
    const checkout = watch(pool.checkout('default'))
    await quiet()
    expect(engine.calls).toBe(1)
    engine.pending[0]?.succeed()
    await quiet()
    expect([warm.state, checkout.state]).toEqual(['fulfilled', 'fulfilled'])
    expect(pool.stats()).toMatchObject({ hits: 0, misses: 1, waits: 0 })
    await checkout.value?.release()
  })
})

describe('PO-01: overflow', () => {
  it('makes up to maxOverflow more on demand and destroys each on return while poolSize others exist', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 2 })
    const [a, b, c] = [await pool.checkout('default'), await pool.checkout('default'), await pool.checkout('default')]
    expect(pool.stats()).toMatchObject({ leased: 3, created: 3 })
    await b.release()
    expect(engine.alive().map((sandbox) => sandbox.id)).toEqual(['s1', 's3'])
    await a.release()
    expect(engine.alive().map((sandbox) => sandbox.id)).toEqual(['s3'])
    await c.release()
    await quiet()
    expect(engine.alive().map((sandbox) => sandbox.id)).toEqual(['s3'])
    expect(pool.stats()).toMatchObject({ idle: 1, leased: 0, created: 3, destroyed: 2 })
  })

  it('gives an overflow sandbox to a waiting checkout instead of destroying it', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1 })
    const [a, b] = [await pool.checkout('default'), await pool.checkout('default')]
    const third = watch(pool.checkout('default'))
    await quiet()
    await b.release()
    await quiet()
    expect(third.value?.sandbox.id).toBe('s2')
    expect(third.value?.use).toBe(2)
    await a.release()
  })

  it('with poolSize 0 every checkout creates, waiting ones too, and nothing is kept', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 0, maxOverflow: 1 })
    const first = await pool.checkout('default')
    const second = watch(pool.checkout('default'))
    await first.release()
    await quiet()
    expect(second.value?.sandbox.id).toBe('s2')
    await second.value?.release()
    expect(pool.stats()).toMatchObject({ created: 2, destroyed: 2, idle: 0, leased: 0, misses: 1, waits: 1 })
  })

  it('POL-020: 50 parallel runs on a pool of 4 all succeed, never more than 4 at once', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 4, maxOverflow: 0 })
    const running = new Set<string>()
    let most = 0
    const run = async (number: number): Promise<number> => {
      await using lease = await pool.checkout('default')
      expect(running.has(lease.sandbox.id)).toBe(false)
      running.add(lease.sandbox.id)
      most = Math.max(most, running.size)
      await quiet()
      running.delete(lease.sandbox.id)
      return number
    }
    const numbers = Array.from({ length: 50 }, (_, number) => number)
    expect(await Promise.all(numbers.map(run))).toEqual(numbers)
    expect(most).toBe(4)
    expect(engine.made.length).toBe(4)
  })
})

describe('PO-01: specs and options', () => {
  it('refuses an unknown spec by name', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs })
    await expect(pool.checkout('gpu')).rejects.toMatchObject({
      code: 'unknown_spec',
      message: 'the pool has no spec "gpu"; it has "default"',
    })
    await expect(pool.prewarm('gpu')).rejects.toMatchObject({ code: 'unknown_spec' })
    expect(() => pool.stats('gpu')).toThrow(SandglassError)
  })

  it('adds specs: an equal one of the same name changes nothing, a different one is a TypeError', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs })
    pool.addSpec('default', fakeSpec())
    pool.addSpec('small', fakeSpec(9))
    expect(() => pool.addSpec('small', fakeSpec(10))).toThrow(
      new TypeError('specs.small: the pool has another spec of this name; use another name'),
    )
    await using lease = await pool.checkout('small')
    expect(lease.sandbox.info.limits.pids).toBe(9)
  })

  it('keeps the given spec when the caller changes the object later', async () => {
    const preload = ['json']
    const engine = fakeEngine()
    engine.manual = true
    await using pool = new SandboxPool({ engine, specs: { default: { ...fakeSpec(), preload } } })
    preload.push('os')
    const checkout = watch(pool.checkout('default'))
    await quiet()
    expect(engine.pending[0]?.spec.preload).toEqual(['json'])
    engine.succeedAll()
    await quiet()
    expect(checkout.state).toBe('fulfilled')
  })

  it.each([
    [{ poolSize: -1 }, 'poolSize: -1 is not a whole number of at least 0'],
    [{ poolSize: 1.5 }, 'poolSize: 1.5 is not a whole number of at least 0'],
    [{ maxOverflow: NaN }, 'maxOverflow: NaN is not a whole number of at least 0'],
    [{ poolSize: 0, maxOverflow: 0 }, 'maxOverflow: must be at least 1 when poolSize is 0'],
    [{ maxUses: 0 }, 'maxUses: 0 is not a whole number of at least 1'],
    [
      { checkoutTimeoutMs: Infinity },
      'checkoutTimeoutMs: Infinity is not a number of milliseconds from 0 to 2147483647',
    ],
    [{ healthCheckAfterIdleMs: -1 }, 'healthCheckAfterIdleMs: -1 is not a number of milliseconds of at least 0'],
    [{ isHealthy: 1 }, 'isHealthy: must be a function'],
    [{ engine: null }, 'engine: must be a SandboxEngine'],
    [{ specs: null }, 'specs: must be an object of sandbox specs by name'],
    [{ specs: { default: null } }, 'specs.default: must be a SandboxSpec'],
    [{ specs: { default: {} } }, 'specs.default.limits: must be an object with memoryBytes, cpus, pids, diskBytes'],
    [
      { specs: { default: { limits: { ...fakeSpec().limits, diskBytes: undefined } } } },
      'specs.default.limits.diskBytes: undefined is not a number above 0; a spec has each of memoryBytes, cpus, pids, diskBytes',
    ],
    [
      { poolsize: 3 },
      'poolsize: unknown option of SandboxPool; the options are engine, specs, poolSize, maxOverflow, checkoutTimeoutMs, ' +
        'maxUses, maxIdleBytes, healthCheckAfterIdleMs, isHealthy',
    ],
  ])('refuses %o', (wrong, message) => {
    const options = { engine: fakeEngine(), specs, ...wrong } as ConstructorParameters<typeof SandboxPool>[0]
    expect(() => new SandboxPool(options)).toThrow(new TypeError(message))
  })

  it('refuses a wrong time or key of a checkout', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs })
    await expect(pool.checkout('default', { timeoutMs: -1 })).rejects.toThrow(TypeError)
    await expect(pool.checkout('default', { key: 1 as unknown as string })).rejects.toThrow('key: must be a string')
    await expect(pool.close({ graceMs: NaN })).rejects.toThrow('graceMs')
  })
})
