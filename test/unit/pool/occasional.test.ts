import { describe, expect, it } from 'vitest'
import { SandboxPool } from '../../../src/pool/sandbox-pool.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet, watch } from './watch.ts'

/** The number of idle occasional sandboxes within the budget, beside the default one; a sandbox without a report counts 16 MiB. */
const KEPT = 4

/** Checks out a sandbox of a spec and releases it at once. */
async function use(pool: SandboxPool, name: string): Promise<void> {
  await (await pool.checkout(name)).release()
  await quiet()
}

describe('PO-01: specs that are added at run time', () => {
  it('are not refilled before their third checkout', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs: {}, poolSize: 2 })
    pool.addSpec('x', fakeSpec(10), { occasional: true })
    await use(pool, 'x')
    await use(pool, 'x')
    expect(engine.calls).toBe(1)
    await use(pool, 'x')
    expect(engine.calls).toBe(2)
  })

  it('that are given up while they are filled settle prewarm', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({ engine, specs: { default: fakeSpec(1) }, poolSize: 2 })
    engine.manual = true
    const warm = watch(pool.prewarm())
    await quiet()
    engine.pending[0]?.succeed()
    await quiet()
    expect(warm.state).toBe('pending')
    pool.dropIdle('default')
    await quiet()
    expect(warm.state).toBe('fulfilled')
    engine.succeedAll()
  })

  it('lose their idle sandboxes when all use more memory than the budget, least recently used first, and can be used again', async () => {
    const engine = fakeEngine()
    await using pool = new SandboxPool({
      engine,
      specs: { default: fakeSpec(1) },
      poolSize: 1,
      maxIdleBytes: (KEPT + 1) * 16 * 1024 ** 2,
    })
    await use(pool, 'default')
    for (let n = 0; n <= KEPT; n += 1) {
      pool.addSpec(`x${n}`, fakeSpec(10 + n), { occasional: true })
      await use(pool, `x${n}`)
    }
    expect(pool.stats('x0')).toMatchObject({ idle: 0, destroyed: 1 })
    expect(pool.stats('x1')).toMatchObject({ idle: 1, destroyed: 0 })
    expect(pool.stats('default').idle).toBe(1)
    await use(pool, 'x0')
    expect([pool.stats('x0').idle, pool.stats('x1').idle]).toEqual([1, 0])
    expect(engine.alive()).toHaveLength(KEPT + 1)
    expect(pool.stats().idleBytes).toBe((KEPT + 1) * 16 * 1024 ** 2)
  })

  it('counts what idle sandboxes take now, where they say so', async () => {
    const engine = fakeEngine()
    let bytes = 5
    const create: typeof engine.create = async (spec, options) =>
      Object.assign(await engine.create(spec, options), { idleBytes: () => bytes })
    await using pool = new SandboxPool({ engine: { ...engine, create }, specs: { default: fakeSpec(1) }, poolSize: 2 })
    await pool.prewarm()
    expect(pool.stats().idleBytes).toBe(2 * bytes)
    bytes = 7
    expect(pool.stats().idleBytes).toBe(2 * bytes)
  })
})
