import { describe, expect, it } from 'vitest'
import { type Lease, SandboxPool } from '../../../src/pool/index.ts'
import { type FakeEngine, fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

const specs = { default: fakeSpec() }

/** An engine whose sandboxes recover when the test says so. */
function recoveringEngine(): { readonly engine: FakeEngine; readonly recover: (id: string) => void } {
  const engine = fakeEngine()
  const gates = new Map<string, PromiseWithResolvers<void>>()
  engine.recovering = ({ id }) => {
    const gate = Promise.withResolvers<void>()
    gates.set(id, gate)
    return gate.promise
  }
  return { engine, recover: (id) => gates.get(id)?.resolve() }
}

describe('a sandbox that needs time between runs', () => {
  it('is leased when it has recovered, and another one until then', async () => {
    const { engine, recover } = recoveringEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
    const first = await pool.checkout('default')
    const second = await pool.checkout('default')
    await first.release()
    await second.release()
    const [third, fourth] = [watch(pool.checkout('default')), watch(pool.checkout('default'))]
    await quiet()
    expect([third.state, fourth.state, pool.stats().waiting]).toEqual(['pending', 'pending', 2])
    recover(second.sandbox.id)
    await quiet()
    expect([third.value?.sandbox.id, fourth.state]).toEqual([second.sandbox.id, 'pending'])
    recover(first.sandbox.id)
    await quiet()
    expect(fourth.value?.sandbox.id).toBe(first.sandbox.id)
    expect([engine.calls, pool.stats().waits]).toEqual([2, 2])
  })

  it('prevents a creation for waiters with its key; others get its place, in order of arrival', async () => {
    const { engine } = recoveringEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1 })
    await (await pool.checkout('default')).release()
    const waiting = watch(pool.checkout('default'))
    await quiet()
    expect([waiting.state, engine.calls]).toEqual(['pending', 1])
    const other = await pool.checkout('default', { key: 'other' })
    expect([waiting.value?.sandbox.id, other.sandbox.id]).toEqual(['s2', 's3'])
    expect(engine.alive().map(({ id }) => id)).toEqual(['s2', 's3'])
  })

  it('that ends meanwhile is replaced for its waiter', async () => {
    const { engine } = recoveringEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    await (await pool.checkout('default')).release()
    const waiting = watch(pool.checkout('default'))
    engine.made[0]?.crash()
    await quiet()
    expect(waiting.value?.sandbox.id).toBe('s2')
  })

  it('is destroyed by the end of the pool, and at once if it is an overflow sandbox', async () => {
    const { engine } = recoveringEngine()
    const pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1 })
    const [kept, surplus] = [await pool.checkout('default'), await pool.checkout('default')]
    await surplus.release()
    expect(engine.alive().map(({ id }) => id)).toEqual([kept.sandbox.id])
    await kept.release()
    await pool.close()
    expect(engine.alive()).toEqual([])
  })

  it('that is requested by its id is not destroyed for another key, nor promised twice', async () => {
    const { engine, recover } = recoveringEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const { sandbox, release } = ownMethods(await pool.checkout('default'))
    await release()
    const wanting = watch(pool.checkout('default', { sandboxId: sandbox.id }))
    const other = watch(pool.checkout('default', { key: 'other', timeoutMs: 50 }))
    await quiet()
    expect([wanting.state, other.state, engine.alive().length]).toEqual(['pending', 'pending', 1])
    recover(sandbox.id)
    await quiet()
    expect(wanting.value?.sandbox.id).toBe(sandbox.id)
  })

  it('leaves a place for later checkouts behind one that waits for it', async () => {
    const { engine } = recoveringEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 1 })
    const { sandbox, release } = ownMethods(await pool.checkout('default'))
    await release()
    const wanting = watch(pool.checkout('default', { sandboxId: sandbox.id }))
    const plain = watch(pool.checkout('default'))
    await quiet()
    expect([wanting.state, plain.value?.sandbox.id, engine.calls]).toEqual(['pending', 's2', 2])
  })

  it('that ends while it recovers is not lent', async () => {
    const { engine, recover } = recoveringEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    await (await pool.checkout('default')).release()
    const waiting = watch(pool.checkout('default'))
    engine.made[0]?.crash()
    recover('s1') // after `closed`, as with an engine whose sandbox ends meanwhile
    await quiet()
    expect(waiting.value?.sandbox.id).toBe('s2')
  })

  it('does not delay close, even if it was returned within the grace period', async () => {
    const { engine } = recoveringEngine()
    const pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const lease = await pool.checkout('default')
    const closed = watch(pool.close({ graceMs: 60_000 }))
    await lease.release()
    await quiet()
    expect([closed.state, engine.alive().length]).toEqual(['fulfilled', 0])
  })
})

function ownMethods(lease: Lease): { readonly sandbox: Lease['sandbox']; readonly release: () => Promise<void> } {
  return { sandbox: lease.sandbox, release: () => lease.release() }
}
