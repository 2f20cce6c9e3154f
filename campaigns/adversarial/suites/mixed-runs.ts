import assert from 'node:assert/strict'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { addedResources } from '../../../test/support/resources.ts'
import { type Answer, describeAnswer } from '../driver/answer.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import { type HostProcess, startHost } from '../driver/host-process.ts'
import type { TestedEngine } from '../engines/tested.ts'

const AT_ONCE = 4
const TIMEOUT_MS = 240_000

interface Kind {
  readonly script: (number: number) => string
  readonly timeoutSec: number
  readonly errorKind: string | null
}

const OK: Kind = { script: (number) => `emit_result(${number})`, timeoutSec: 30, errorKind: null }
const WITH_CHILD: Kind = {
  script: (number) => `import subprocess\nsubprocess.Popen(["/bin/sleep", "60"])\nemit_result(${number})`,
  timeoutSec: 30,
  errorKind: null,
}
const EXCEPTION: Kind = { script: () => 'raise ValueError("no")', timeoutSec: 30, errorKind: 'error' }
const TIMEOUT: Kind = { script: () => 'while True:\n    pass', timeoutSec: 0.05, errorKind: 'timeout' }
const CRASH: Kind = { script: () => 'import os\nos.kill(os.getpid(), 11)', timeoutSec: 30, errorKind: 'crash' }

/** 70 % of the runs succeed; 10 % fail in each of three ways. */
const MIX: readonly Kind[] = [OK, OK, EXCEPTION, OK, OK, TIMEOUT, OK, WITH_CHILD, CRASH, OK]

/** Number of runs before the first measurement of memory, and between the two measurements. */
export interface Counts {
  readonly warmUp: number
  readonly measured: number
}

/** Tests that mixed runs leave nothing on the machine. */
export async function mixedRuns(tested: TestedEngine, { warmUp, measured }: Counts): Promise<void> {
  const { skip, open } = await tested.ready()
  const count = warmUp + measured

  describe.skipIf(skip)(`${count} mixed runs on the ${tested.name} engine, four at a time`, () => {
    let engine: EngineUnderTest
    beforeAll(() => {
      engine = open()
    })
    afterAll(() => engine.close())

    test(
      'leave no process, mount, control group, record, container, lock or descriptor, and little memory',
      async () => {
        await using host = startHost(engine)
        await host.open({ poolSize: AT_ONCE })
        await host.close()
        const ids = new Set<string>()
        const before = engine.resources(ids, host.pid)

        await host.open({ poolSize: AT_ONCE, maxOverflow: 0 })
        await runMany(host, ids, warmUp)
        const memory = [await host.memory()]
        for (let part = 0; part < 2; part += 1) {
          await runMany(host, ids, measured / 2)
          memory.push(await host.memory())
        }
        // A leak grows in each half. The heap of V8 grows once, by some megabytes, and then stays.
        const [start = 0, middle = 0, end = 0] = memory
        const slope = Math.min(middle - start, end - middle) / (measured / 2)
        const { listed, living } = await waitForEqualLists(engine, ids)
        expect(listed).toEqual(living)
        expect(listed.length).toBeGreaterThan(0)
        await host.close()

        const problem = await eventually(() => addedResources(before, engine.resources(ids, host.pid)), 5000)
        expect(problem).toBeUndefined()
        expect(await engine.resourcesOf(ids)).toEqual([])
        console.log(`${count} runs in ${ids.size} sandboxes, ${Math.round(slope)} bytes a run`)
        expect(slope).toBeLessThan(10 * 1024)
      },
      TIMEOUT_MS,
    )
  })
}

async function runMany(host: HostProcess, ids: Set<string>, count: number): Promise<void> {
  let next = 0
  const work = async (): Promise<void> => {
    while (next < count) {
      const number = next
      next += 1
      const kind = MIX[number % MIX.length] ?? OK
      const answer = await host.run(kind.script(number), { limits: { executionTimeoutSec: kind.timeoutSec } })
      assert.deepEqual(
        outcomeOf(answer),
        [kind.errorKind, kind.errorKind === null ? number : null],
        describeAnswer(answer),
      )
      ids.add(answer.result?.sandbox.id ?? '')
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

function outcomeOf({ errorKind, result }: Answer): unknown[] {
  return [errorKind, result?.finalData]
}

type Listed = Awaited<ReturnType<EngineUnderTest['resourcesOf']>>

/**
 * The resources of these sandboxes that `sandglass ps` lists, and those that live. Waits until both are equal, because a
 * sandbox that was used up can still be ending after the last run.
 */
async function waitForEqualLists(
  engine: EngineUnderTest,
  ids: ReadonlySet<string>,
): Promise<{ readonly listed: Listed; readonly living: Listed }> {
  let seen: { listed: Listed; living: Listed } = { listed: [], living: [] }
  await eventually(async () => {
    const living = engine.livingResourcesOf(ids)
    const kinds = new Set(living.map(({ kind }) => kind))
    const listed = (await engine.resourcesOf(ids)).filter(({ kind }) => kinds.has(kind))
    seen = { listed: inOrder(listed), living: inOrder(living) }
    return JSON.stringify(seen.listed) === JSON.stringify(seen.living) ? undefined : 'the lists differ'
  }, 5000)
  return seen
}

function inOrder(things: Listed): Listed {
  return things.toSorted((a, b) => a.id.localeCompare(b.id))
}
