import { expect, it } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { quiet } from './watch.ts'

const specs = { old: { ...fakeSpec(), packages: '/packages/a' }, other: { ...fakeSpec(), packages: '/packages/b' } }

async function use(pool: SandboxPool, name: string): Promise<string> {
  await using lease = await pool.checkout(name)
  return lease.sandbox.id
}

it('sandboxes that became outdated serve one more lease at most, those of other specs as before', async () => {
  await using pool = new SandboxPool({ engine: fakeEngine(), specs, poolSize: 1 })
  const [old, other] = [await use(pool, 'old'), await use(pool, 'other')]
  await using leased = await pool.checkout('old')
  pool.outdate(({ packages }) => packages === '/packages/a')
  await leased.release()
  await quiet()
  expect(leased.sandbox.id).toBe(old)
  const next = await use(pool, 'old')
  expect(next).not.toBe(old)
  expect([await use(pool, 'old'), await use(pool, 'other')]).toEqual([next, other])
  expect(pool.stats()).toMatchObject({ retired: 1, idle: 2 })
})

it('an idle one serves the next lease without a wait', async () => {
  await using pool = new SandboxPool({ engine: fakeEngine(), specs, poolSize: 1 })
  const old = await use(pool, 'old')
  pool.outdate(() => true)
  expect(await use(pool, 'old')).toBe(old)
  expect(await use(pool, 'old')).not.toBe(old)
})

it('one whose creation began before is outdated, too', async () => {
  const engine = fakeEngine()
  engine.manual = true
  await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
  const checkout = pool.checkout('old')
  await quiet()
  pool.outdate(() => true)
  engine.pending[0]?.succeed()
  const lease = await checkout
  engine.manual = false
  await lease.release()
  expect(await use(pool, 'old')).not.toBe(lease.sandbox.id)
})
