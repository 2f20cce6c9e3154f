import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { collectUntil, quiet } from './watch.ts'

/* In a process of its own: garbage collection takes longer in one that holds the modules of other tests. */
const specs = { default: fakeSpec() }

test('the sandbox of a lease that is garbage-collected without a release is destroyed and replaced', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const engine = fakeEngine()
  await using pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
  // A signal that stays alive must not keep the lease reachable.
  const stop = new AbortController()
  const drop = async (): Promise<void> => {
    await pool.checkout('default', { signal: stop.signal })
  }
  await drop()
  expect(await collectUntil(gc, () => engine.made[0]?.destroyCalls === 1)).toBe(true)
  await quiet()
  expect(pool.stats()).toMatchObject({ leased: 0, idle: 1, destroyed: 1 })
  stop.abort()
})

test('garbage collection does not affect a lease that is held or was released', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const engine = fakeEngine()
  await using pool = new SandboxPool({ engine, specs, poolSize: 2, maxOverflow: 0 })
  await using held = await pool.checkout('default')
  const borrow = async (): Promise<void> => {
    await using _lease = await pool.checkout('default')
  }
  await borrow()
  let turns = 0
  await collectUntil(gc, () => (turns += 1) > 20)
  expect(held.sandbox.id).toBe('s1')
  expect(pool.stats()).toMatchObject({ leased: 1, idle: 1, destroyed: 0 })
})
