import { describe, expect, it } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet } from './watch.ts'

const specs = { default: fakeSpec() }

describe('a pool for a variant of a spec', () => {
  it('makes sandboxes of a changed spec, and its leases do not count for the first pool', async () => {
    const engine = fakeEngine()
    const pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
    const variant = pool.beside('default', { checker: true }, { poolSize: 1, maxOverflow: 0 })
    expect(engine.calls).toBe(0)
    const lease = await variant.checkout('default')
    await quiet()
    expect(lease.sandbox.id).toBe('s1')
    expect([pool.stats().created, variant.stats().created]).toEqual([0, 1])
    // The only place of the first pool is still free.
    await (await pool.checkout('default')).release()
    await lease.release()
    await pool.close()
  })

  it('ends with the first pool, and cannot be made from a closed one', async () => {
    const engine = fakeEngine()
    const pool = new SandboxPool({ engine, specs })
    const variant = pool.beside('default', {})
    await (await variant.checkout('default')).release()
    await pool.close()
    expect(engine.alive()).toEqual([])
    await expect(variant.checkout('default')).rejects.toMatchObject({ code: 'pool_closed' })
    expect(() => pool.beside('default', {})).toThrow(expect.objectContaining({ code: 'pool_closed' }))
  })

  it('requires a spec of the first pool', async () => {
    const pool = new SandboxPool({ engine: fakeEngine(), specs })
    expect(() => pool.beside('other', {})).toThrow(expect.objectContaining({ code: 'unknown_spec' }))
    await pool.close()
  })
})
