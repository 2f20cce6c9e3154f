import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass } from '../../../../src/index.ts'
import { leastOf } from '../../../../src/testing/conformance/least-of.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()
const CPUS = 0.05
const MiB = 1024 * 1024
/** All processes exist before the first one gets busy, so that their number does not depend on the processor. */
const BUSY = `
import os
reading, writing = os.pipe()
for _ in range(50):
    if os.fork() == 0:
        os.close(writing)
        os.read(reading, 1)
        while True: pass
os.close(reading)
os.close(writing)
emit_log('busy')
while True: pass
`

/** One sandbox with a twentieth of a processor. */
function open(stateDir: string, memoryBytes = 512 * MiB): Promise<Sandglass> {
  return createSandglass({
    local: { stateDir },
    limits: { cpus: CPUS, memoryBytes },
    require: ['cpu'],
    poolSize: 1,
    maxOverflow: 0,
  })
}

/** The CPU limit in force for a living sandbox, in microseconds of each 100,000. */
function quotaOf(stateDir: string, id: string): string | undefined {
  const { cgroups } = JSON.parse(readFileSync(join(stateDir, 'sandboxes', `${id}.json`), 'utf8')) as {
    cgroups: readonly string[]
  }
  const file = cgroups
    .flatMap((path) => [join(path, 'cpu.max'), join(path, 'cpu.cfs_quota_us')])
    .find((path) => existsSync(path))
  return file === undefined ? undefined : readFileSync(file, 'utf8').split(/\s/)[0]
}

describe.skipIf(skip)('a script that uses up a small share of the processor with 50 processes', () => {
  test('is over 1 s after its deadline, and the sandbox serves the next run with its limit', async () => {
    // Fifty forks take a slow machine seconds, with a twentieth of a processor.
    const timeout = 15
    const boundMs = timeout * 1000 + 1000
    const tookMs = await leastOf(3, boundMs, async () => {
      using state = scopedDirectory()
      await using sandglass = await open(state.path)
      let started = Number.NaN
      const onEvent = ({ type }: { readonly type: string }): void => {
        if (type === 'started') started = performance.now()
      }
      const result = await sandglass.run(BUSY, { limits: { executionTimeoutSec: timeout }, onEvent })
      const ended = performance.now()
      expect(result).toMatchObject({ status: 'timed-out', logs: [{ message: 'busy' }], warnings: [] })
      expect(quotaOf(state.path, result.sandbox.id)).toBe('5000')
      const next = await sandglass.run('emit_result(1)')
      expect([next.status, next.sandbox.id, next.sandbox.use]).toEqual([
        'completed',
        result.sandbox.id,
        result.sandbox.use + 1,
      ])
      return ended - started
    })
    expect(tookMs).toBeLessThanOrEqual(boundMs)
  }, 120_000)

  test('is over 1 s after it was cancelled, and the sandbox serves the next run with its limit', async () => {
    const tookMs = await leastOf(3, 1000, async () => {
      using state = scopedDirectory()
      await using sandglass = await open(state.path)
      const abort = new AbortController()
      let cancelledAt = 0
      const result = await sandglass.run(BUSY, {
        signal: abort.signal,
        onLog: () => {
          cancelledAt = performance.now()
          abort.abort()
        },
      })
      const ended = performance.now()
      expect(result).toMatchObject({ status: 'cancelled', warnings: [] })
      expect(quotaOf(state.path, result.sandbox.id)).toBe('5000')
      const next = await sandglass.run('emit_result(1)')
      expect([next.status, next.sandbox.id]).toEqual(['completed', result.sandbox.id])
      return ended - cancelledAt
    })
    expect(tookMs).toBeLessThanOrEqual(1000)
  }, 120_000)

  test('in a workspace keeps its limit after a run that a callback gives up', async () => {
    using state = scopedDirectory()
    await using sandglass = await open(state.path)
    await using workspace = await sandglass.workspace()
    const onEvent = ({ type }: { readonly type: string }): void => {
      if (type === 'stdout') throw new Error('a defect of the caller')
    }
    await workspace.run('print(1)\nimport time\ntime.sleep(60)', { onEvent }).catch(() => undefined)
    expect(quotaOf(state.path, workspace.id)).toBe('5000')
    expect((await workspace.run('emit_result(1)')).status).toBe('completed')
    expect(quotaOf(state.path, workspace.id)).toBe('5000')
  })

  test('is gone within 1 s when its sandbox is destroyed', async () => {
    // With private memory, the end of a process costs processor time.
    const held = 'held = bytearray(2_048_000)\n        held[::4096] = bytes(500)'
    const script = BUSY.replace('os.close(writing)', `os.close(writing)\n        ${held}`)
    const tookMs = await leastOf(3, 1000, async () => {
      using state = scopedDirectory()
      await using sandglass = await open(state.path)
      const busy = Promise.withResolvers<void>()
      const running = sandglass.run(script, { onLog: () => busy.resolve() })
      await busy.promise
      const began = performance.now()
      await sandglass.close()
      const ended = performance.now()
      expect((await running).status).toBe('sandbox-lost')
      return ended - began
    })
    expect(tookMs).toBeLessThanOrEqual(1000)
  }, 120_000)
})
