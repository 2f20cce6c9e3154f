import { describe, expect, it } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

describe('PO-02: lease keys', () => {
  it('lends a sandbox again under the same key only, and counts its uses', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const seen: string[] = []
    for (const key of ['alice', 'bob', 'alice', 'bob']) {
      await using lease = await pool.checkout('default', { key })
      seen.push(`${lease.key} ${lease.sandbox.id} use ${lease.use}`)
    }
    expect(seen).toEqual(['alice s1 use 1', 'bob s2 use 1', 'alice s1 use 2', 'bob s2 use 2'])
  })

  it('has a unique default key per pool', async () => {
    const engine = fakeEngine()
    await using one = new SandboxPool({ engine, specs })
    await using other = new SandboxPool({ engine, specs })
    const [a, b, c] = [await one.checkout('default'), await one.checkout('default'), await other.checkout('default')]
    expect(a.key).toBe(b.key)
    expect(a.key).not.toBe(c.key)
    for (const lease of [a, b, c]) await lease.release()
  })

  it('prefers the idle one of the same key that was returned last, then a fresh one, then a new one', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 3, maxOverflow: 1 })
    await pool.prewarm()
    const [a, b] = [await pool.checkout('default', { key: 'k' }), await pool.checkout('default', { key: 'k' })]
    expect([a.sandbox.id, b.sandbox.id]).toEqual(['s1', 's2'])
    await b.release()
    await a.release()
    const leases = []
    for (let number = 0; number < 4; number += 1) leases.push(await pool.checkout('default', { key: 'k' }))
    expect(leases.map((lease) => lease.sandbox.id)).toEqual(['s1', 's2', 's3', 's4'])
    for (const lease of leases) await lease.release()
  })

  it('at capacity destroys the idle one of another key that was returned first', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const [a, b] = [await pool.checkout('default', { key: 'a' }), await pool.checkout('default', { key: 'b' })]
    await b.release()
    await a.release()
    await using c = await pool.checkout('default', { key: 'c' })
    expect(c.sandbox.id).toBe('s3')
    expect(engine.alive().map((sandbox) => sandbox.id)).toEqual(['s1', 's3'])
    expect(pool.stats()).toMatchObject({ hits: 1, misses: 2, waits: 0 })
  })
})

describe('PO-02: a checkout of one sandbox by its id', () => {
  it('returns it when it is idle, even when another of the key was returned later', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
    const [a, b] = [await pool.checkout('default'), await pool.checkout('default')]
    await a.release()
    await b.release()
    await using lease = await pool.checkout('default', { sandboxId: a.sandbox.id })
    expect([lease.sandbox.id, lease.use]).toEqual([a.sandbox.id, 2])
  })

  it('returns a fresh one by its id', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 3 })
    await pool.prewarm()
    await using lease = await pool.checkout('default', { sandboxId: 's2' })
    expect(lease.sandbox.id).toBe('s2')
  })

  it('waits for exactly that one while it is leased under the same key, even if others are free', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
    await pool.prewarm()
    const first = await pool.checkout('default', { key: 'k' })
    const pinned = watch(pool.checkout('default', { key: 'k', sandboxId: first.sandbox.id }))
    const pinnedToo = watch(pool.checkout('default', { key: 'k', sandboxId: first.sandbox.id }))
    const any = await pool.checkout('default', { key: 'k' })
    await quiet()
    expect([pinned.state, pinnedToo.state, any.sandbox.id]).toEqual(['pending', 'pending', 's2'])
    await first.release()
    await quiet()
    expect([pinned.value?.sandbox.id, pinnedToo.state]).toEqual([first.sandbox.id, 'pending'])
    await pinned.value?.release()
    await quiet()
    expect(pinnedToo.value?.use).toBe(3)
    expect(pool.stats()).toMatchObject({ hits: 2, waits: 2 })
    await pinnedToo.value?.release()
    await any.release()
  })

  it('falls back to an ordinary checkout as soon as that one dies', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
    await pool.prewarm()
    const first = await pool.checkout('default', { key: 'k' })
    const pinned = watch(pool.checkout('default', { key: 'k', sandboxId: first.sandbox.id }))
    await quiet()
    engine.made[0]?.crash()
    await quiet()
    expect(pinned.value?.sandbox.id).toBe('s2')
    await pinned.value?.release()
    await first.release()
  })

  it('falls back when that one is retired on its return', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0, maxUses: 1 })
    const first = await pool.checkout('default')
    const pinned = watch(pool.checkout('default', { sandboxId: first.sandbox.id }))
    await first.release()
    await quiet()
    expect(pinned.value?.sandbox.id).toBe('s2')
    await pinned.value?.release()
  })

  it('neither returns nor waits for one of another key or one that has ended', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 2 })
    const alice = await pool.checkout('default', { key: 'alice' })
    await using bob = await pool.checkout('default', { key: 'bob', sandboxId: alice.sandbox.id })
    expect(bob.sandbox.id).toBe('s2')
    await using gone = await pool.checkout('default', { key: 'bob', sandboxId: 'no-such' })
    expect(gone.sandbox.id).toBe('s3')
    await alice.release()
  })

  it('names the sandbox when the wait for it ends at the deadline', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2 })
    await using lease = await pool.checkout('default')
    await expect(pool.checkout('default', { sandboxId: lease.sandbox.id, timeoutMs: 1 })).rejects.toThrow(
      'pool exhausted: no lease of sandbox s1 became free (1 leased, pool size 2, overflow 2, 1 waiting, after 1 ms)',
    )
  })
})
