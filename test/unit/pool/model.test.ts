import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { messageOf, SandglassError } from '../../../src/errors/index.ts'
import { type Lease, SandboxPool } from '../../../src/pool/index.ts'
import { type FakeEngine, fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'
import { watch, type Watched } from './watch.ts'

const OPERATIONS = 200
const KEYS = ['a', 'b', 'c']

/** One checkout of the model. */
interface Call {
  readonly number: number
  readonly key: string
  readonly pinned: boolean
  readonly stop: AbortController
  readonly result: Watched<Lease>
  checked: boolean
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('PO-01, PO-02: thousands of random operations keep every rule', () => {
  const configurations = [
    { poolSize: 2, maxOverflow: 2, maxUses: 5 },
    { poolSize: 1, maxOverflow: 0, maxUses: 50 },
    { poolSize: 0, maxOverflow: 2, maxUses: 3 },
    { poolSize: 4, maxOverflow: 0, maxUses: 1 },
    { poolSize: 3, maxOverflow: 1, maxUses: 10, healthCheckAfterIdleMs: 0 },
  ]
  const cases = configurations.flatMap((sizes) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((seed) => ({ ...sizes, seed })),
  )
  it.each(cases)('%o', async ({ seed, ...sizes }) => {
    const random = mulberry32(seed)
    const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)]
    const engine = fakeEngine()
    engine.manual = true
    const healthChecks = 'healthCheckAfterIdleMs' in sizes
    const pool = new SandboxPool({
      engine,
      specs: { default: fakeSpec() },
      checkoutTimeoutMs: 2_000,
      ...sizes,
      ...(healthChecks ? { isHealthy: async () => random() < 0.7 } : {}),
    })
    const world = makeWorld(engine, pool, sizes.poolSize + sizes.maxOverflow, sizes.maxUses, !healthChecks)

    for (let operation = 0; operation < OPERATIONS; operation += 1) {
      const dice = random()
      const lease = pick(world.held())
      if (dice < 0.35) {
        const pinned = random() < 0.2
        world.checkout(pick(KEYS) ?? 'a', pinned ? pick(engine.made)?.id : undefined)
      } else if (dice < 0.6) void lease?.release()
      else if (dice < 0.65) void lease?.destroy()
      else if (dice < 0.7) pick(engine.alive())?.crash()
      else if (dice < 0.88) pick(engine.pending)?.succeed()
      else if (dice < 0.92) pick(engine.pending)?.fail(new Error('engine'))
      else if (dice < 0.96) pick(world.waiting())?.stop.abort()
      else await vi.advanceTimersByTimeAsync(Math.floor(random() * 300))
      await vi.advanceTimersByTimeAsync(0)
      world.checkRules()
    }

    // With a working engine and all leases released, no checkout is left waiting.
    engine.manual = false
    for (let round = 0; round < 500 && world.waiting().length > 0; round += 1) {
      engine.succeedAll()
      for (const lease of world.held()) void lease.release()
      await vi.advanceTimersByTimeAsync(0)
      world.checkRules()
    }
    expect(world.waiting()).toEqual([])
    const refusals = world.calls.filter(({ result }) => result.state === 'rejected').map(({ result }) => result.error)
    expect(refusals.map(codeOf).filter((code) => !['aborted', 'pool_exhausted', 'engine'].includes(code))).toEqual([])

    // Close happens with leases, waiters and active creations.
    engine.manual = true
    for (let number = 0; number < 8; number += 1) world.checkout(pick(KEYS) ?? 'a', undefined)
    await vi.advanceTimersByTimeAsync(0)
    world.checkRules()
    const closed = watch(pool.close())
    engine.succeedAll()
    await vi.advanceTimersByTimeAsync(0)
    expect(closed.state).toBe('fulfilled')
    expect(engine.alive()).toEqual([])
    // Each was freed exactly once, even if it ended by itself.
    expect(engine.made.filter((sandbox) => sandbox.destroyCalls !== 1)).toEqual([])
    const { hits, misses, waits, created, destroyed, idle, leased, starting, waiting } = pool.stats()
    expect({ created, destroyed, idle, leased, starting, waiting }).toEqual({
      created: engine.made.length,
      destroyed: engine.made.length,
      idle: 0,
      leased: 0,
      starting: 0,
      waiting: 0,
    })
    expect(hits + misses + waits).toBeLessThanOrEqual(world.calls.length)
    expect(vi.getTimerCount()).toBe(0)
  })
})

function makeWorld(engine: FakeEngine, pool: SandboxPool, capacity: number, maxUses: number, strict: boolean) {
  const calls: Call[] = []
  const keys = new Map<string, string>()
  const uses = new Map<string, number>()
  const released = new Set<Lease>()
  /** The calls that wait or hold a lease. Those that are over stay over. */
  let open: Call[] = []
  const openCalls = (): Call[] => {
    open = open.filter(({ result: { state, value } }) => state === 'pending' || (value && !released.has(value)))
    return open
  }
  const held = (): Lease[] => openCalls().flatMap(({ result: { value } }) => value ?? [])
  const waiting = (): Call[] => openCalls().filter(({ result }) => result.state === 'pending')

  /** Wraps a lease so that the model observes its release. */
  const noting = (lease: Lease): Lease => {
    const noted: Lease = {
      ...lease,
      release: () => (released.add(noted), lease.release()),
      destroy: () => (released.add(noted), lease.destroy()),
    }
    // Keeps the real lease from being collected.
    return Object.assign(noted, { lease })
  }

  return {
    calls,
    held,
    waiting,
    checkout(key: string, sandboxId: string | undefined): void {
      const stop = new AbortController()
      const options = { key, signal: stop.signal, ...(sandboxId === undefined ? {} : { sandboxId }) }
      const call: Call = {
        number: calls.length,
        key,
        pinned: sandboxId !== undefined,
        stop,
        result: watch(pool.checkout('default', options).then(noting)),
        checked: false,
      }
      calls.push(call)
      open.push(call)
    },
    checkRules(): void {
      const stats = pool.stats()
      expect(stats.idle + stats.leased + stats.starting).toBeLessThanOrEqual(capacity)
      expect(stats.created - stats.destroyed).toBe(stats.idle + stats.leased)
      expect(stats.starting).toBe(engine.pending.length)
      expect(stats.waiting).toBe(waiting().length)
      expect(stats.leased).toBe(held().length)
      const ids = held().map((lease) => lease.sandbox.id)
      expect(new Set(ids).size).toBe(ids.length)
      // No checkout waits while a sandbox for it is idle or could be made.
      const ordinary = waiting().filter((call) => !call.pinned)
      const blocked = stats.starting > 0 || (stats.idle === 0 && stats.leased === capacity)
      expect(blocked || !strict || ordinary.length === 0).toBe(true)
      for (const call of calls) {
        const lease = call.result.value
        if (call.checked || lease === undefined) continue
        call.checked = true
        const { id } = lease.sandbox
        expect(keys.get(id) ?? call.key).toBe(call.key)
        keys.set(id, call.key)
        expect(lease.use).toBe((uses.get(id) ?? 0) + 1)
        uses.set(id, lease.use)
        expect(lease.use).toBeLessThanOrEqual(maxUses)
        expect(engine.made.find((made) => made.id === id)).toMatchObject({ destroyCalls: 0, ended: false })
        if (!strict || call.pinned) continue
        const overtaken = ordinary.filter((one) => one.number < call.number)
        // A fresh sandbox goes to the first waiter; a used one to the first waiter with its key.
        expect(overtaken.filter((one) => lease.use === 1 || one.key === call.key)).toEqual([])
      }
    },
  }
}

/** The code of a SandglassError, else the message. */
function codeOf(error: unknown): string {
  return error instanceof SandglassError ? error.code : messageOf(error)
}

/** A small seeded generator of numbers in [0, 1). */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
