import assert from 'node:assert/strict'
import { eventually } from '../../../../test/support/eventually.ts'
import { addedResources } from '../../../../test/support/resources.ts'
import type { Sandglass } from '../../../../src/sandglass.ts'
import { answerOf, describeAnswer } from '../answer.ts'
import { startHost } from '../host-process.ts'
import type { Assertion } from '../run-case.ts'
import type { CaseContext } from '../case-state.ts'

/** Assertions for the cases of the pool. They use the whole library. */
export const POOL: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['POL-004', reportsExhaustion],
  ['POL-007', servesWaitersInOrder],
  ['POL-013', endsRunsOnClose],
  ['POL-015', recyclesWorkers],
  ['POL-019', leaksNothingInThousandRuns],
  ['POL-020', servesFiftyRunsOnFourSandboxes],
])

async function reportsExhaustion({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 2, maxOverflow: 0 })
  await fillPool(sandglass, 2)
  const release = new AbortController()
  const busy = await Promise.all([1, 2].map(() => startRun(sandglass, 'import time\ntime.sleep(30)', release.signal)))
  const third = await answerOf(sandglass, 'emit_result(3)', { checkoutTimeoutMs: 500 })
  assert.equal(third.thrown?.code, 'pool_exhausted', describeAnswer(third))
  assert.ok(third.wallMs >= 400 && third.wallMs <= 600, describeAnswer(third))
  assert.match(third.thrown.message, /2/, 'the error carries the sizes')
  release.abort()
  await Promise.all(busy.map(({ ended }) => ended))
  const { misses, hits, waits } = sandglass.stats()
  const next = await answerOf(sandglass, 'emit_result(4)', {})
  assert.equal(next.result?.finalData, 4, describeAnswer(next))
  // A waiter that had stayed in the queue would have been served first, and counted.
  assert.equal(sandglass.stats().hits + sandglass.stats().misses, hits + misses + 1)
  assert.equal(sandglass.stats().waits, waits)
}

async function servesWaitersInOrder({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, maxOverflow: 0 })
  const order: number[] = []
  const numbers = Array.from({ length: 11 }, (_, number) => number)
  await Promise.all(
    numbers.map(async (number) => {
      const answer = await answerOf(sandglass, `emit_result(${number})`, {})
      assert.equal(answer.result?.finalData, number, describeAnswer(answer))
      order.push(number)
    }),
  )
  assert.deepEqual(order, numbers)
}

async function endsRunsOnClose({ engine }: CaseContext): Promise<void> {
  const sandglass = await engine.open({ poolSize: 1, maxOverflow: 0 })
  const run = await startRun(sandglass, 'import time\ntime.sleep(30)\nemit_result("too late")')
  assert.notEqual(engine.processesOf(run.sandboxId).length, 0)
  const begun = performance.now()
  await sandglass.close({ graceMs: 2000 })
  const closedMs = performance.now() - begun
  const { result } = await run.ended
  assert.ok(closedMs >= 1900 && closedMs < 6000, `closed after ${closedMs} ms`)
  assert.equal(result?.success, false)
  assert.ok(['cancelled', 'sandbox-lost'].includes(result.status), result.status)
  const left = await eventually(() => {
    const processes = engine.processesOf(run.sandboxId)
    return processes.length === 0 ? undefined : JSON.stringify(processes)
  }, 2000)
  assert.equal(left, undefined)
  const late = await answerOf(sandglass, 'emit_result(1)', {})
  assert.equal(late.thrown?.code, 'pool_closed', describeAnswer(late))
  await sandglass.close()
}

async function recyclesWorkers({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, maxOverflow: 1, maxUses: 3 })
  const workers = new Set<string>()
  for (let number = 0; number < 10; number += 1) {
    const answer = await answerOf(sandglass, `emit_result(${number})`, {})
    assert.equal(answer.result?.finalData, number, describeAnswer(answer))
    workers.add(answer.result.sandbox.id)
  }
  assert.ok(workers.size >= 4, `${workers.size} workers`)
}

const MIX: readonly { script: string; options: object; kind: string | null }[] = [
  ...Array.from({ length: 16 }, () => ({ script: 'emit_result(1)', options: {}, kind: null })),
  { script: '1 / 0', options: {}, kind: 'error' },
  { script: '1 / 0', options: {}, kind: 'error' },
  { script: 'while True: pass', options: { limits: { executionTimeoutSec: 0.05 } }, kind: 'timeout' },
  { script: 'import os\nos.abort()', options: {}, kind: 'crash' },
]

async function leaksNothingInThousandRuns({ engine }: CaseContext): Promise<void> {
  await using host = startHost(engine)
  await host.open({ poolSize: 2, maxOverflow: 0 })
  await host.close()
  const ids = new Set<string>()
  const runs = async (count: number): Promise<void> => {
    for (let number = 0; number < count; number += 1) {
      const { script, options, kind } = MIX[number % MIX.length] as (typeof MIX)[number]
      const answer = await host.run(script, options)
      assert.equal(answer.errorKind, kind, describeAnswer(answer))
      ids.add(answer.result?.sandbox.id ?? '')
    }
  }
  const before = engine.resources(ids, host.pid)
  await host.open({ poolSize: 2, maxOverflow: 0 })
  await runs(200)
  const memory = [await host.memory()]
  for (let part = 0; part < 2; part += 1) {
    await runs(400)
    memory.push(await host.memory())
  }
  await host.close()
  // A leak grows in each half. The heap of V8 grows once, by some megabytes, and then stays.
  const [start = 0, middle = 0, end = 0] = memory
  const slope = Math.min(middle - start, end - middle) / 400
  assert.ok(slope < 10 * 1024, `${Math.round(slope)} bytes a run in both halves: ${memory.join(', ')}`)
  const problem = await eventually(() => addedResources(before, engine.resources(ids, host.pid)), 5000)
  assert.equal(problem, undefined)
}

async function servesFiftyRunsOnFourSandboxes({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 4, maxOverflow: 0, checkoutTimeoutMs: 60_000 })
  let atOnce = 0
  let peak = 0
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, number) => {
      const answer = await answerOf(sandglass, `import time\ntime.sleep(0.1)\nemit_result(${number})`, {
        onEvent: ({ type }) => {
          if (type === 'started') atOnce += 1
          if (type === 'final_result') atOnce -= 1
          peak = Math.max(peak, atOnce)
        },
      })
      return { number, answer }
    }),
  )
  for (const { number, answer } of answers) assert.equal(answer.result?.finalData, number, describeAnswer(answer))
  assert.ok(peak <= 4, `${peak} runs at once`)
  // A sandbox is replaced only after a failure or `maxUses` runs; neither happens in 50 runs.
  assert.equal(new Set(answers.map(({ answer }) => answer.result?.sandbox.id)).size, 4)
}

/** Starts a run and waits until its script has begun. */
async function startRun(
  sandglass: Sandglass,
  script: string,
  signal?: AbortSignal,
): Promise<{ sandboxId: string; ended: ReturnType<typeof answerOf> }> {
  const begun = Promise.withResolvers<string>()
  const ended = answerOf(sandglass, `emit_intermediate('started')\n${script}`, {
    ...(signal === undefined ? {} : { signal }),
    onEvent: (event) => {
      if (event.type === 'started') begun.resolve(event.sandboxId)
    },
  })
  return { sandboxId: await begun.promise, ended }
}

/** Holds a sandbox long enough that the other runs get other sandboxes. */
const HOLD = 'import time\ntime.sleep(0.1)\nemit_result(0)'

/** Waits until the pool is full, so that the start time of sandboxes does not matter afterwards. */
async function fillPool(sandglass: Sandglass, size: number): Promise<void> {
  const problem = await eventually(async () => {
    const answers = await Promise.all(Array.from({ length: size }, () => answerOf(sandglass, HOLD, {})))
    const served = new Set(answers.map(({ result }) => result?.sandbox.id ?? 'none'))
    return served.size === size && !served.has('none') ? undefined : answers.map(describeAnswer).join('; ')
  }, 20_000)
  assert.equal(problem, undefined)
}
