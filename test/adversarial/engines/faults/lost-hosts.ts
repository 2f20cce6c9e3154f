import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../support/eventually.ts'
import { answerOf, shown } from '../../driver/answer.ts'
import { startHost } from '../../driver/host-process.ts'
import type { Ground } from '../../driver/stage.ts'
import { openEngine } from '../local.ts'
import { trivial, recordsOf } from './hosts.ts'

const ENDLESS = 'while True:\n    pass'

/** FLT-001. */
export async function killedHostLeavesNothing(): Promise<void> {
  const engine = openEngine()
  const host = startHost(engine)
  await host.open({ poolSize: 4 })
  const runs = Array.from({ length: 4 }, () =>
    host.run(ENDLESS, { limits: { executionTimeoutSec: 60 } }).catch(() => undefined),
  )
  await eventually(() => (recordsOf(engine.state).length >= 4 ? undefined : 'starting'), 10_000)
  await sleep(300)
  const ids = recordsOf(engine.state)
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
  await trivial(next)
  assert.deepEqual(
    ids.filter((id) => recordsOf(engine.state).includes(id)),
    [],
    'records are left',
  )
  assert.equal(engine.resources(new Set(ids))['control groups']?.length, 0, 'control groups are left')
  await next.close()
  await engine.close()
}

/** FLT-023. */
export async function suspendedHostGoesOn(): Promise<void> {
  const engine = openEngine()
  await using host = startHost(engine)
  await host.open({ poolSize: 1 })
  let completions = 0
  const run = host
    .run(`emit_intermediate('begun')\n${ENDLESS}`, { limits: { executionTimeoutSec: 10 } })
    .finally(() => {
      completions += 1
    })
  await sleep(1000)
  host.signal('SIGSTOP')
  await sleep(30_000)
  host.signal('SIGCONT')
  const answer = await run
  assert.equal(answer.errorKind, 'timeout', shown(answer))
  assert.equal(answer.result?.intermediates.length, 1, shown(answer))
  await trivial(host)
  assert.equal(completions, 1)
  await host.close()
  assert.deepEqual(recordsOf(engine.state), [])
  await engine.close()
}

/** FLT-007, with a kill by the script itself beside it. */
export async function memoryKillIsTold({ engine }: Ground): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, limits: { memoryBytes: 128 * 1024 * 1024 } })
  const bomb = await answerOf(sandglass, 'x = b""\nwhile True:\n    x += bytes(8 << 20)', {})
  assert.equal(bomb.errorKind, 'oom', shown(bomb))
  const killed = await answerOf(sandglass, 'import os\nos.kill(os.getpid(), 9)', {})
  assert.equal(killed.errorKind, 'crash', shown(killed))
  const next = await answerOf(sandglass, 'emit_result(1)', {})
  assert.equal(next.result?.finalData, 1, shown(next))
}
