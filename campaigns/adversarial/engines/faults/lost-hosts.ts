import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../../test/support/eventually.ts'
import { describeAnswer } from '../../driver/answer.ts'
import type { EngineUnderTest } from '../../driver/engine.ts'
import { startHost } from '../../driver/host-process.ts'
import { runTrivialScript } from './hosts.ts'

const ENDLESS = 'while True:\n    pass'
const RUNS = 4

/** FLT-001: a host is killed during runs. Its processes end, and the next start removes its records. */
export async function cleansUpAfterKilledHost(engine: EngineUnderTest): Promise<void> {
  await using host = startHost(engine)
  await host.open({ poolSize: RUNS })
  const runs = Array.from({ length: RUNS }, () =>
    host.run(ENDLESS, { limits: { executionTimeoutSec: 60 } }).catch(() => undefined),
  )
  assert.equal(await eventually(() => checkAllLoop(engine, host.pid), 20_000), undefined)
  const ids = engine.sandboxesOf(host.pid)
  host.signal('SIGKILL')
  await host.gone
  await Promise.all(runs)
  const left = await eventually(() => {
    const processes = ids.flatMap((id) => engine.processesOf(id))
    return processes.length === 0 ? undefined : JSON.stringify(processes)
  }, 2000)
  assert.equal(left, undefined)
  await using next = startHost(engine)
  await next.open({ poolSize: 1 })
  await runTrivialScript(next)
  const records = engine.sandboxesOf(host.pid).filter((id) => ids.includes(id))
  assert.deepEqual(records, [], 'records or containers are left')
  assert.deepEqual(engine.resources(new Set(ids))['control groups'], [], 'control groups are left')
  await next.close()
}

/** FLT-023: a host is suspended beyond the deadline of its run. The run then ends once, as a timeout. */
export async function resumesSuspendedHost(engine: EngineUnderTest): Promise<void> {
  await using host = startHost(engine)
  await host.open({ poolSize: 1 })
  let completions = 0
  const run = host
    .run(`emit_intermediate('begun')\n${ENDLESS}`, { limits: { executionTimeoutSec: 10 } })
    .finally(() => {
      completions += 1
    })
  assert.equal(await eventually(() => checkOneLoops(engine, host.pid), 20_000), undefined)
  host.signal('SIGSTOP')
  await sleep(30_000)
  host.signal('SIGCONT')
  const answer = await run
  assert.equal(answer.errorKind, 'timeout', describeAnswer(answer))
  assert.equal(answer.result?.intermediates.length, 1, describeAnswer(answer))
  await runTrivialScript(host)
  assert.equal(completions, 1)
  await host.close()
  assert.deepEqual(engine.sandboxesOf(host.pid), [])
}

function checkAllLoop(engine: EngineUnderTest, host: number): Promise<string | undefined> {
  return checkLooping(engine, host, RUNS)
}

function checkOneLoops(engine: EngineUnderTest, host: number): Promise<string | undefined> {
  return checkLooping(engine, host, 1)
}

/** Returns a problem unless enough sandboxes use CPU time, which means that their scripts run. */
async function checkLooping(engine: EngineUnderTest, host: number, wanted: number): Promise<string | undefined> {
  const used = (): Map<string, number> => new Map(engine.sandboxesOf(host).map((id) => [id, engine.cpuMsOf(id)]))
  const before = used()
  await sleep(300)
  const busy = [...used()].filter(([id, ms]) => ms - (before.get(id) ?? ms) > 20)
  return busy.length >= wanted ? undefined : `${busy.length} of ${wanted} scripts run`
}
