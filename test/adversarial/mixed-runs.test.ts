import assert from 'node:assert/strict'
import { afterAll, describe, expect, test } from 'vitest'
import { listRemnants } from '../../src/engines/local/index.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { eventually } from '../support/eventually.ts'
import { addedResources } from '../support/resources.ts'
import { type Answer, shown } from './driver/answer.ts'
import { type HostProcess, startHost } from './driver/host-process.ts'
import { openEngine } from './engines/local.ts'

const { skip } = await requireLocalEngine()

const RUNS = 2000
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

/** 70 % fine, and 10 % of each way to fail. */
const MIX: readonly Kind[] = [OK, OK, EXCEPTION, OK, OK, TIMEOUT, OK, WITH_CHILD, CRASH, OK]

describe.skipIf(skip)('2,000 mixed runs, four at a time', () => {
  const engine = openEngine()
  afterAll(() => engine.close())

  test(
    'leave no process, mount, control group, record, lock or descriptor, and little memory',
    async () => {
      await using host = startHost(engine)
      await host.open({ poolSize: AT_ONCE })
      await host.close()
      const ids = new Set<string>()
      const before = engine.resources(ids, host.pid)

      await host.open({ poolSize: AT_ONCE, maxOverflow: 0 })
      await runMany(host, ids, RUNS / 5)
      const memory = await host.memory()
      await runMany(host, ids, (RUNS * 4) / 5)
      const slope = ((await host.memory()) - memory) / ((RUNS * 4) / 5)
      const listed = await processesListed(engine.state, ids)
      const living = [...ids].flatMap((id) => engine.processesOf(id).map(({ pid }) => pid))
      expect(inOrder(listed)).toEqual(inOrder(living))
      await host.close()

      const problem = await eventually(() => addedResources(before, engine.resources(ids, host.pid)), 5000)
      expect(problem).toBeUndefined()
      const remnants = await listRemnants(engine.state)
      expect(remnants.filter(({ sandbox }) => ids.has(sandbox ?? ''))).toEqual([])
      console.log(`${RUNS} runs in ${ids.size} sandboxes, ${Math.round(slope)} bytes a run`)
      expect(slope).toBeLessThan(10 * 1024)
    },
    TIMEOUT_MS,
  )
})

async function runMany(host: HostProcess, ids: Set<string>, count: number): Promise<void> {
  let next = 0
  const work = async (): Promise<void> => {
    while (next < count) {
      const number = next
      next += 1
      const kind = MIX[number % MIX.length] ?? OK
      const answer = await host.run(kind.script(number), { limits: { executionTimeoutSec: kind.timeoutSec } })
      assert.deepEqual(outcomeOf(answer), [kind.errorKind, kind.errorKind === null ? number : null], shown(answer))
      ids.add(answer.result?.sandbox.id ?? '')
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

function inOrder(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b)
}

function outcomeOf({ errorKind, result }: Answer): unknown[] {
  return [errorKind, result?.finalData]
}

/** What `sandglass ps` would show of these sandboxes, once it is at rest: the same pids twice in a row. */
async function processesListed(state: string, ids: ReadonlySet<string>): Promise<number[]> {
  let last = ''
  let pids: number[] = []
  await eventually(async () => {
    const remnants = await listRemnants(state)
    pids = remnants
      .filter(({ kind, sandbox }) => kind === 'process' && ids.has(sandbox ?? ''))
      .map(({ id }) => Number(id))
    const now = inOrder(pids).join()
    const same = now === last
    last = now
    return same ? undefined : 'something moves'
  }, 5000)
  return pids
}
