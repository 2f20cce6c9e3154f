import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ScriptExecutor } from '../../../../src/executor/index.ts'
import { allProcesses, commandLineOf } from '../../../support/processes.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, place, SPEC } from './fixture.ts'

/* Between two runs the next instance starts: a slow preload makes this start long enough to test. */
const cache = sharedCache()
const packages = place()
for (const [name, seconds] of [
  ['sg_slow', 3],
  ['sg_slower', 8],
] as const) {
  mkdirSync(join(packages.path, name))
  writeFileSync(join(packages.path, name, '__init__.py'), `import time\ntime.sleep(${seconds})\n`)
}
afterAll(() => {
  cache[Symbol.dispose]()
  packages[Symbol.dispose]()
})
const engine = engineAt(cache.path)
const slow = { ...SPEC, packages: packages.path, preload: ['sg_slow'] }

test('the time of a run begins when its instance is ready', async () => {
  await using sandbox = await engine.create({ ...slow, preload: ['sg_slower'] })
  const hasty = new ScriptExecutor({ mode: 'interactive', limits: { executionTimeoutSec: 5 } })
  for (const n of [1, 2]) {
    expect(await hasty.run({ sandbox, script: `emit_result(${n})` })).toMatchObject({
      status: 'completed',
      finalData: n,
    })
  }
})

test('a run that is cancelled meanwhile has not begun, and a second run beside it is rejected', async () => {
  await using sandbox = await engine.create(slow)
  const executor = new ScriptExecutor({ mode: 'interactive' })
  await executor.run({ sandbox, script: '' })
  const stop = new AbortController()
  const waiting = executor.run({ sandbox, script: 'emit_result(1)', signal: stop.signal })
  await expect(executor.run({ sandbox, script: '' })).rejects.toMatchObject({ code: 'sandbox_busy' })
  stop.abort()
  expect(await waiting).toMatchObject({ status: 'cancelled', error: 'the run was cancelled before it started' })
  expect((await executor.run({ sandbox, script: 'emit_result(2)' })).finalData).toBe(2)
})

test('a sandbox that is destroyed meanwhile is reported as lost, and no further instance is made', async () => {
  const sandbox = await engine.create(slow)
  const executor = new ScriptExecutor({ mode: 'interactive' })
  await executor.run({ sandbox, script: '' })
  const waiting = executor.run({ sandbox, script: 'emit_result(1)' })
  await sandbox.destroy()
  expect((await waiting).status).toBe('sandbox-lost')
  const look = (): string | undefined => {
    const left = allProcesses().filter(
      ({ parent, pid }) => parent === process.pid && commandLineOf(pid).includes(sandbox.id),
    )
    return left.length === 0 ? undefined : `alive: ${left.map(({ pid }) => pid).join(', ')}`
  }
  expect(look()).toBeUndefined()
  // Nor later: nothing is active that could start one.
  expect(await eventually(() => (look() === undefined ? 'none' : undefined), 1000)).toBe('none')
})
