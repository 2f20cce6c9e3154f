import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass } from '../../../../src/index.ts'
import { ScriptExecutor } from '../../../../src/executor/index.ts'
import type { SandboxEngine } from '../../../../src/sandbox/index.ts'
import { allProcesses } from '../../../support/processes.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, requireBubblewrap, runOn, SPEC } from './fixture.ts'

const { skip } = await requireBubblewrap()
const cache = sharedCache()
let engine: SandboxEngine
beforeAll(() => void (engine = engineAt(cache.path)))
afterAll(() => cache[Symbol.dispose]())

/** The processes of this one's boxes: bubblewrap, its init and Node. */
const boxes = (): number[] => {
  const all = allProcesses()
  const found = all.filter(({ parent }) => parent === process.pid)
  for (const one of found) found.push(...all.filter(({ parent }) => parent === one.pid))
  return found.filter(({ insidePid, pid }) => insidePid !== pid).map(({ pid }) => pid)
}

describe.skipIf(skip)('where bubblewrap works', () => {
  test('the kernel confines instances, too: no network, no users, no processes of the machine', async () => {
    const { level, network, reasons, probes } = await engine.report()
    expect({ level, network, reasons }).toEqual({ level: 'os-sandbox', network: 'none', reasons: [] })
    expect(probes).toMatchObject({ interfaces: 'lo', hostname: 'sandbox', own_pid: 2, users_hidden: true })
  })

  test('a requirement of kernel isolation of the network is met', async () => {
    await using sg = await createSandglass({
      engine: 'pyodide',
      pyodide: { cacheDir: cache.path },
      poolSize: 1,
      require: ['network', 'os-sandbox'],
    })
    const { finalData, sandbox } = await sg.run('emit_result(6 * 7)')
    expect([finalData, sandbox.level, sandbox.network]).toEqual([42, 'os-sandbox', 'none'])
  })

  test('with bubblewrap: false the level is language-only, and the report says why', async () => {
    const { level, network, reasons } = await engineAt(cache.path, { bubblewrap: false }).report()
    expect([level, network]).toEqual(['language-only', 'language-only'])
    expect(reasons).toMatchObject([
      { code: 'language_only', message: expect.stringContaining('the option bubblewrap is false') as string },
    ])
  })

  test('bubblewrap passes on how a process died', async () => {
    const killed = await runOn(engine, 'held = [bytearray(1 << 20) for _ in range(1000)]\nemit_result(1)')
    expect([killed.status, killed.errorKind]).toEqual(['memory-limit', 'oom'])
    const exited = await runOn(engine, 'import os\nos._exit(7)')
    expect([exited.status, exited.ending.exitCode]).toEqual(['crashed', 7])
    await using sandbox = await engine.create(SPEC)
    const hasty = new ScriptExecutor({ mode: 'interactive', limits: { executionTimeoutSec: 0.5 } })
    expect((await hasty.run({ sandbox, script: 'sum(range(10**15))' })).status).toBe('timed-out')
  })

  test('a destroyed sandbox leaves nothing, also while it starts', async () => {
    const before = new Set(boxes())
    const left = (): string | undefined => {
      const now = boxes().filter((pid) => !before.has(pid))
      return now.length === 0 ? undefined : `alive: ${now.join(', ')}`
    }
    await (await engine.create(SPEC)).destroy()
    expect(await eventually(left, 10_000)).toBeUndefined()
    for (let waitMs = 0; waitMs < 40; waitMs += 2) {
      const stop = AbortSignal.timeout(waitMs)
      await engine.create(SPEC, { signal: stop }).then(
        (sandbox) => sandbox.destroy(),
        () => undefined,
      )
    }
    expect(await eventually(left, 10_000)).toBeUndefined()
  })
})
