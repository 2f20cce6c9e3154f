import { describe, expect, it } from 'vitest'
import { SandboxPool } from '../../../src/pool/index.ts'
import { noteCpuTime } from '../../../src/sandbox/index.ts'
import { type FakeEngine, fakeEngine, fakeSpec } from '../../support/pool/fake-engine.ts'

const specs = { a: fakeSpec(1), b: fakeSpec(2) }

/** An engine whose sandboxes have used 50 ms when they are ready. */
function countingEngine(): FakeEngine {
  return Object.assign(fakeEngine(), { checks: { cpu_time_ms: 50 } })
}

/** Checks out a sandbox for one run that ends with this count. */
async function run(pool: SandboxPool, name: string, last: Parameters<typeof noteCpuTime>[1]): Promise<void> {
  await using lease = await pool.checkout(name)
  noteCpuTime(lease.sandbox, last)
}

describe('the CPU time of a pool', () => {
  it('is that of all sandboxes, of those that have ended and of those that ran nothing', async () => {
    await using pool = new SandboxPool({ engine: countingEngine(), specs, poolSize: 1, maxUses: 2 })
    expect(pool.stats().cpuTimeMs).toBe(0)
    await run(pool, 'a', { cpu_time_ms: 60 })
    await run(pool, 'a', { cpu_time_ms: 75 })
    await pool.prewarm()
    expect([pool.stats('a').cpuTimeMs, pool.stats('b').cpuTimeMs, pool.stats().cpuTimeMs]).toEqual([125, 50, 175])
    await pool.close()
    expect(pool.stats()).toMatchObject({ cpuTimeMs: 175, created: 3, destroyed: 3 })
  })

  it('includes that of the pools beside it', async () => {
    await using pool = new SandboxPool({ engine: countingEngine(), specs, poolSize: 1 })
    const beside = pool.beside('a', { checker: true })
    await run(pool, 'a', { cpu_time_ms: 60 })
    await run(beside, 'a', { cpu_time_ms: 80 })
    expect([pool.stats('a').cpuTimeMs, pool.stats().cpuTimeMs]).toEqual([60, 60 + 80])
  })

  it('does not change with a run that the harness refused', async () => {
    await using pool = new SandboxPool({ engine: countingEngine(), specs, poolSize: 1 })
    await run(pool, 'a', { cpu_time_ms: 60 })
    await run(pool, 'a', {})
    expect(pool.stats().cpuTimeMs).toBe(60)
  })

  it('is unknown from the first run on that ended without a count', async () => {
    await using pool = new SandboxPool({ engine: countingEngine(), specs, poolSize: 1 })
    await run(pool, 'a', undefined)
    await run(pool, 'a', { cpu_time_ms: 60 })
    await run(pool, 'b', { cpu_time_ms: 60 })
    expect([pool.stats('a').cpuTimeMs, pool.stats('b').cpuTimeMs, pool.stats().cpuTimeMs]).toEqual([null, 60, null])
    await pool.close()
    expect(pool.stats().cpuTimeMs).toBeNull()
  })

  it('is unknown if the harness does not count it', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs, poolSize: 1 })
    await run(pool, 'a', { cpu_time_ms: 60 })
    expect(pool.stats().cpuTimeMs).toBeNull()
  })
})
