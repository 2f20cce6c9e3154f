import { describe, expect, it } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

describe('PO-02: releasing', () => {
  it('a second release, disposal or destroy does nothing, even if the sandbox is leased again', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const first = await pool.checkout('default')
    await first.release()
    await using second = await pool.checkout('default')
    await first.release()
    await first.destroy()
    await first[Symbol.asyncDispose]()
    expect(second.sandbox.id).toBe('s1')
    expect(engine.made[0]?.destroyCalls).toBe(0)
    expect(pool.stats()).toMatchObject({ leased: 1, idle: 0, destroyed: 0 })
  })

  it('a release after destroy waits for the end of the sandbox', async () => {
    const engine = fakeEngine()
    const gone = Promise.withResolvers<void>()
    engine.destroying = () => gone.promise
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const lease = await pool.checkout('default')
    const ends = [watch(lease.destroy()), watch(lease.release())]
    await quiet()
    expect(ends.map((end) => end.state)).toEqual(['pending', 'pending'])
    gone.resolve()
    await quiet()
    expect(ends.map((end) => end.state)).toEqual(['fulfilled', 'fulfilled'])
    expect(engine.made[0]?.destroyCalls).toBe(1)
  })

  it('POL-015: with maxUses 3, ten runs use four sandboxes and none fails', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0, maxUses: 3 })
    const runs: string[] = []
    for (let run = 0; run < 10; run += 1) {
      await using lease = await pool.checkout('default')
      runs.push(`${lease.sandbox.id} use ${lease.use}`)
    }
    expect(runs).toEqual(
      ['s1', 's2', 's3', 's4'].flatMap((id) => [1, 2, 3].map((use) => `${id} use ${use}`)).slice(0, 10),
    )
    expect(pool.stats()).toMatchObject({ retired: 3, destroyed: 3, created: 4 })
  })

  it('with maxUses 1 every lease has a sandbox of its own', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxUses: 1 })
    const ids = new Set<string>()
    for (let run = 0; run < 5; run += 1) {
      await using lease = await pool.checkout('default')
      ids.add(lease.sandbox.id)
    }
    expect(ids.size).toBe(5)
  })

  it('a sandbox that ended during its lease is not kept, and is destroyed on return only', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const lease = await pool.checkout('default')
    engine.made[0]?.crash()
    await quiet()
    expect([engine.made[0]?.destroyCalls, pool.stats().leased]).toEqual([0, 1])
    await lease.release()
    await quiet()
    expect(engine.made[0]?.destroyCalls).toBe(1)
    expect(pool.stats()).toMatchObject({ idle: 1, leased: 0, created: 2, destroyed: 1, retired: 0 })
  })

  it('a sandbox that was destroyed during its lease is not leased again while it ends', async () => {
    const engine = fakeEngine()
    const gone = Promise.withResolvers<void>()
    engine.destroying = (sandbox) => (sandbox.id === 's1' ? gone.promise : Promise.resolve())
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1 })
    const lease = await pool.checkout('default')
    void lease.sandbox.destroy()
    void lease.release()
    await using next = await pool.checkout('default')
    gone.resolve()
    expect([next.sandbox.id, pool.stats().retired]).toEqual(['s2', 0])
  })

  it('release never rejects, even when the end of the sandbox fails', async () => {
    const engine = fakeEngine()
    engine.destroying = () => Promise.reject(new Error('busy'))
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    await (await pool.checkout('default')).destroy()
    expect(pool.stats()).toMatchObject({ destroyed: 1, leased: 0 })
  })
})

describe('parking', () => {
  it('a parked lease does not count towards the sizes until it is called back or released', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs, poolSize: 1, maxOverflow: 0 })
    const first = await pool.checkout('default')
    const waiting = watch(pool.checkout('default'))
    await quiet()
    expect(waiting.state).toBe('pending')
    const unpark = first.park()
    await quiet()
    expect([waiting.state, pool.stats().leased]).toEqual(['fulfilled', 2])
    unpark()
    const third = watch(pool.checkout('default'))
    await quiet()
    expect(third.state).toBe('pending')
    await first.release()
    await quiet()
    expect(third.state).toBe('fulfilled')
  })

  it('at most 32 leases are parked; a release of one makes room', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs, poolSize: 1, maxOverflow: 0 })
    const leases = []
    for (let count = 0; count < 33; count += 1) {
      const lease = await pool.checkout('default')
      lease.park()
      leases.push(lease)
    }
    const next = watch(pool.checkout('default'))
    await quiet()
    expect(next.state).toBe('pending')
    await leases[0]?.destroy()
    leases[32]?.park()
    await quiet()
    expect(next.state).toBe('fulfilled')
  })

  it('with 32 parked leases and all others in use, the next checkout is refused as pool_exhausted', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs, poolSize: 1, maxOverflow: 0 })
    for (let count = 0; count < 33; count += 1) (await pool.checkout('default')).park()
    await expect(pool.checkout('default', { timeoutMs: 1 })).rejects.toMatchObject({ code: 'pool_exhausted' })
    expect(pool.stats()).toMatchObject({ leased: 33, waiting: 0 })
  })
})
