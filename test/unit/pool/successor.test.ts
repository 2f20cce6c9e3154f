import { describe, expect, it } from 'vitest'
import { type CheckoutOptions, SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

/** Checks out a sandbox and releases it at once, `count` times. Returns the ids of the sandboxes. */
async function use(pool: SandboxPool, count: number, options: CheckoutOptions = {}): Promise<string[]> {
  const ids: string[] = []
  for (let number = 0; number < count; number += 1) {
    await using lease = await pool.checkout('default', options)
    ids.push(lease.sandbox.id)
  }
  await quiet()
  return ids
}

describe('PO-01: the successor of a sandbox', () => {
  it('is made before the last tenth of its uses, and the first one is used up', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1, maxUses: 20 })
    await use(pool, 17)
    expect(engine.calls).toBe(1)
    await using lease = await pool.checkout('default')
    expect([lease.use, engine.calls, pool.stats().refills]).toEqual([18, 2, 1])
    await lease.release()
    await quiet()
    expect(pool.stats()).toMatchObject({ idle: 2, destroyed: 0 })
    expect(await use(pool, 3)).toEqual(['s1', 's1', 's2'])
    expect(engine.calls).toBe(2)
    expect(pool.stats()).toMatchObject({ hits: 20, misses: 1, waits: 0, created: 2, retired: 1, idle: 1 })
  })

  it('is made at most 50 uses before', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1, maxUses: 1000 })
    await use(pool, 949)
    expect(engine.calls).toBe(1)
    await use(pool, 1)
    expect(engine.calls).toBe(2)
  })

  it('serves a checkout that comes while the last use lasts, and stays when that ends', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1, maxUses: 3 })
    await use(pool, 2)
    const [last, next] = [await pool.checkout('default'), await pool.checkout('default')]
    expect([last.sandbox.id, last.use, next.sandbox.id]).toEqual(['s1', 3, 's2'])
    await last.release()
    await next.release()
    expect(engine.alive().map(({ id }) => id)).toEqual(['s2'])
    expect(pool.stats()).toMatchObject({ hits: 3, misses: 1, created: 2 })
  })

  it.each([
    { maxUses: 1, made: 4 },
    { maxUses: 2, made: 2 },
  ])('is made when a sandbox is retired if it serves $maxUses', async ({ maxUses, made }) => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 3, maxUses })
    for (let number = 1; number <= 3; number += 1) {
      await use(pool, 1)
      expect(engine.alive()).toHaveLength(1)
    }
    expect(engine.calls).toBe(made)
  })

  it('waits for a place if poolSize and maxOverflow allow no further sandbox', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 1, maxUses: 3 })
    const [a, b] = [await pool.checkout('default'), await pool.checkout('default')]
    await a.release()
    await b.release()
    const [first, second] = [await pool.checkout('default'), await pool.checkout('default')]
    await quiet()
    expect([first.use, second.use, engine.alive().length]).toEqual([2, 2, 3])
    await first.release()
    await second.release()
    await use(pool, 1)
    expect(engine.alive()).toHaveLength(3)
    await use(pool, 1)
    expect(engine.alive().map(({ id }) => id)).toEqual(['s3', 's4'])
    expect(pool.stats()).toMatchObject({ idle: 2, created: 4, retired: 2 })
  })

  it('is an overflow sandbox, if there is one', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 2, maxUses: 3 })
    await use(pool, 1)
    engine.manual = true
    const late = await pool.checkout('default')
    const other = watch(pool.checkout('default'))
    await quiet()
    expect(engine.calls).toBe(2)
    engine.succeedAll()
    await quiet()
    await other.value?.release()
    await late.release()
    await quiet()
    expect([engine.calls, engine.alive().map(({ id }) => id)]).toEqual([2, ['s1', 's2']])
  })

  it('does not keep more late sandboxes than poolSize', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 2, maxUses: 3 })
    const fresh = [await pool.checkout('default'), await pool.checkout('default')]
    const again = [watch(pool.checkout('default')), watch(pool.checkout('default')), watch(pool.checkout('default'))]
    for (const lease of fresh) await lease.release()
    await quiet()
    const leases = again.flatMap(({ value }) => value ?? [])
    expect(leases.map(({ sandbox, use: count }) => [sandbox.id, count])).toEqual([
      ['s1', 2],
      ['s3', 1],
      ['s2', 2],
    ])
    for (const lease of leases.toReversed()) await lease.release()
    await quiet()
    expect(engine.alive().map(({ id }) => id)).toEqual(['s1', 's3'])
  })

  it('serves other keys, while those of the first one use that up', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1, maxUses: 4 })
    await use(pool, 3, { key: 'a' })
    expect(await use(pool, 1, { key: 'b' })).toEqual(['s2'])
    expect(await use(pool, 1, { key: 'a' })).toEqual(['s1'])
    expect(engine.alive().map(({ id }) => id)).toEqual(['s2'])
  })

  it('serves the checkout that asked for a sandbox whose last use ended', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1, maxUses: 3 })
    await use(pool, 2)
    await using last = await pool.checkout('default')
    const pinned = watch(pool.checkout('default', { sandboxId: last.sandbox.id }))
    await quiet()
    expect(pinned.state).toBe('pending')
    await last.release()
    await quiet()
    expect(pinned.value?.sandbox.id).toBe('s2')
    await pinned.value?.release()
    expect(engine.calls).toBe(2)
  })

  it('is not made twice if the lease of a late sandbox is parked', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1, maxUses: 3 })
    await use(pool, 1)
    await using lease = await pool.checkout('default')
    await quiet()
    const unpark = lease.park()
    await quiet()
    expect([lease.use, engine.calls]).toEqual([2, 2])
    unpark()
    await lease.release()
    expect([engine.calls, engine.alive().length]).toEqual([2, 2])
  })

  it('is not made for a spec that keeps nothing warm', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs: {}, poolSize: 1, maxOverflow: 1, maxUses: 3 })
    pool.addSpec('default', fakeSpec(), { occasional: true })
    await use(pool, 2)
    expect(engine.calls).toBe(1)
    pool.dropIdle('default')
    await quiet()
    expect([engine.calls, engine.alive().length]).toEqual([1, 0])
    await using empty = new SandboxPool({ engine, specs, poolSize: 0, maxOverflow: 2, maxUses: 3 })
    expect(await use(empty, 3)).toEqual(['s2', 's3', 's4'])
    expect(engine.alive()).toEqual([])
  })

  it('is ended with its predecessor when the spec gives its idle sandboxes up', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxUses: 3 })
    await use(pool, 2)
    expect(pool.stats().idle).toBe(2)
    pool.dropIdle('default')
    await quiet()
    expect(pool.stats()).toMatchObject({ idle: 0, starting: 0, destroyed: 2 })
  })
})
