import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { listRemnants } from '../../src/engines/local/index.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { eventually } from '../support/eventually.ts'
import { processOf } from '../support/processes.ts'
import { startHost } from './driver/host-process.ts'
import { openEngine } from './engines/local.ts'

const { skip } = await requireLocalEngine()

const RUNS = 8

/** Each run has children that ignore what can be ignored and have sessions of their own. */
const WITH_CHILDREN = `import os, signal, time
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
time.sleep(600)`

describe.skipIf(skip)('a host that is killed while its scripts run', () => {
  const engine = openEngine()
  afterAll(() => engine.close())

  test('takes every process along within a second, and the next start removes the rest', async () => {
    await using host = startHost(engine)
    await host.open({ poolSize: RUNS, maxOverflow: 0 })
    const runs = Array.from({ length: RUNS }, () =>
      host.run(WITH_CHILDREN, { limits: { executionTimeoutSec: 600 } }).catch(() => 'the host is gone'),
    )
    // Broker, zygote, script and its four children in each.
    const started = await eventually(() => {
      const missing = sandboxes(engine.state).filter((id) => engine.processesOf(id).length < 7)
      return sandboxes(engine.state).length === RUNS && missing.length === 0 ? undefined : `${missing.length} wait`
    }, 30_000)
    expect(started).toBeUndefined()
    const ids = sandboxes(engine.state)
    const pids = ids.flatMap((id) => engine.processesOf(id).map(({ pid }) => pid))
    expect(pids.length).toBeGreaterThanOrEqual(7 * RUNS)

    host.signal('SIGKILL')
    const left = await eventually(() => {
      const living = pids.filter((pid) => processOf(pid) !== undefined)
      return living.length === 0 ? undefined : `${living.length} of ${pids.length} processes live`
    }, 1000)
    expect(left).toBeUndefined()
    expect(await Promise.all(runs)).toEqual(Array.from({ length: RUNS }, () => 'the host is gone'))

    const remnants = await listRemnants(engine.state)
    const ours = remnants.filter(({ sandbox }) => ids.includes(sandbox ?? ''))
    expect(new Set(ours.map(({ owner }) => owner))).toEqual(new Set(['gone']))
    await using next = startHost(engine)
    await next.open({ poolSize: 1 })
    expect((await next.run('emit_result(1)', {})).result?.finalData).toBe(1)
    expect(sandboxes(engine.state).filter((id) => ids.includes(id))).toEqual([])
    expect(engine.resources(new Set(ids))['control groups']).toEqual([])
    await next.close()
    expect(sandboxes(engine.state)).toEqual([])
  })
})

function sandboxes(state: string): string[] {
  return readdirSync(join(state, 'sandboxes')).flatMap((name) => /^(.*)\.json$/.exec(name)?.[1] ?? [])
}
