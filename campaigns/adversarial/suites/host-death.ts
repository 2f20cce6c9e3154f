import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { leastOf, measureMs } from '../../../src/testing/conformance/least-of.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { processOf } from '../../../test/support/processes.ts'
import { FORKING } from '../../../test/support/scripts.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import { startHost } from '../driver/host-process.ts'
import type { TestedEngine } from '../engines/tested.ts'

const RUNS = 8

/** Tests that a host that is killed under full load leaves no resources. */
export async function hostDeath(tested: TestedEngine): Promise<void> {
  const { skip, open } = await tested.ready()

  describe.skipIf(skip)(`a host on the ${tested.name} engine that is killed while its scripts run`, () => {
    let engine: EngineUnderTest
    beforeAll(() => {
      engine = open()
    })
    afterAll(() => engine.close())

    test('takes every process along within a second, and the next start removes the rest', async () => {
      let killed = { pid: 0, ids: [] as readonly string[] }
      const timeOfDeath = async (): Promise<number> => {
        await using host = startHost(engine)
        await host.open({ poolSize: RUNS, maxOverflow: 0 })
        const runs = Array.from({ length: RUNS }, () =>
          host.run(FORKING, { limits: { executionTimeoutSec: 600 } }).catch(() => 'the host is gone'),
        )
        // Broker, zygote, script and its four children in each.
        const started = await eventually(() => {
          const ids = engine.sandboxesOf(host.pid)
          const missing = ids.filter((id) => engine.processesOf(id).length < 7)
          return ids.length === RUNS && missing.length === 0 ? undefined : `${missing.length} of ${ids.length} wait`
        }, 30_000)
        expect(started).toBeUndefined()
        const ids = engine.sandboxesOf(host.pid)
        const pids = ids.flatMap((id) => engine.processesOf(id).map(({ pid }) => pid))
        expect(pids.length).toBeGreaterThanOrEqual(7 * RUNS)

        killed = { pid: host.pid, ids }
        host.signal('SIGKILL')
        const ms = await measureMs(async () => {
          const left = await eventually(() => {
            const living = pids.filter((pid) => processOf(pid) !== undefined)
            return living.length === 0 ? undefined : `${living.length} of ${pids.length} processes live`
          }, 10_000)
          expect(left).toBeUndefined()
        })
        expect(await Promise.all(runs)).toEqual(Array.from({ length: RUNS }, () => 'the host is gone'))
        return ms
      }
      expect(await leastOf(3, 1000, timeOfDeath)).toBeLessThan(1000)
      const { pid, ids } = killed

      // Containers are gone by then. Records of other engines must have the owner `gone`.
      const wanted = engine.removesItself ? '' : 'gone'
      const stays = await eventually(async () => {
        const owners = new Set((await engine.resourcesOf(new Set(ids))).map(({ owner }) => owner))
        return [...owners].join() === wanted ? undefined : `what is left belongs to: ${[...owners].join()}`
      }, 5000 - 1000)
      expect(stays).toBeUndefined()
      await using next = startHost(engine)
      await next.open({ poolSize: 1 })
      expect((await next.run('emit_result(1)', {})).result?.finalData).toBe(1)
      expect(engine.sandboxesOf(pid).filter((id) => ids.includes(id))).toEqual([])
      expect(engine.resources(new Set(ids))).toMatchObject({ 'control groups': [] })
      await next.close()
      expect(engine.sandboxesOf(next.pid)).toEqual([])
      expect(await engine.resourcesOf(new Set(ids))).toEqual([])
    })
  })
}
