import assert from 'node:assert/strict'
import type { Sandglass } from '../../../../src/sandglass.ts'
import { docker } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import { type Answer, answerOf, shown } from '../../driver/answer.ts'
import type { EngineUnderTest } from '../../driver/engine.ts'
import type { Ground } from '../../driver/stage.ts'
import { daemonOf } from '../docker.ts'

const TIMEOUT_SEC = 3
/** What the host adds to a deadline when the harness says nothing any more. */
const BACKSTOP_MS = 5000

/** FLT-010. */
export async function removedContainerIsReplaced({ engine }: Ground): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, maxOverflow: 0 })
  const { sandboxId, ended } = await underWay(sandglass, 60)
  docker(daemonOf(engine), 'rm', '--force', sandboxId)
  const removed = performance.now()
  const answer = await ended
  assert.equal(answer.errorKind, 'infrastructure', shown(answer))
  assert.equal(answer.result?.status, 'sandbox-lost')
  assert.ok(performance.now() - removed < 5000, shown(answer))
  await isReplaced(engine, sandglass, sandboxId)
}

/** FLT-011. */
export async function pausedContainerTimesOut({ engine }: Ground): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, maxOverflow: 0 })
  const { sandboxId, ended } = await underWay(sandglass, TIMEOUT_SEC)
  docker(daemonOf(engine), 'pause', sandboxId)
  const answer = await ended
  assert.equal(answer.errorKind, 'timeout', shown(answer))
  assert.ok(answer.wallMs < TIMEOUT_SEC * 1000 + 1000 + BACKSTOP_MS + 1000, shown(answer))
  await isReplaced(engine, sandglass, sandboxId)
}

/** A run that has begun and goes on until it is ended. */
async function underWay(
  sandglass: Sandglass,
  executionTimeoutSec: number,
): Promise<{ sandboxId: string; ended: Promise<Answer> }> {
  const begun = Promise.withResolvers<string>()
  let id = ''
  const ended = answerOf(sandglass, 'import time\nemit_intermediate("begun")\ntime.sleep(600)', {
    limits: { executionTimeoutSec },
    onEvent: (event) => {
      if (event.type === 'started') id = event.sandboxId
      if (event.type === 'intermediate') begun.resolve(id)
    },
  })
  void ended.then((answer) => begun.reject(new Error(`it ended before it began: ${shown(answer)}`)), begun.reject)
  return { sandboxId: await begun.promise, ended }
}

async function isReplaced(engine: EngineUnderTest, sandglass: Sandglass, lost: string): Promise<void> {
  const next = await answerOf(sandglass, 'emit_result(1)', {})
  assert.equal(next.result?.finalData, 1, shown(next))
  assert.notEqual(next.result?.sandbox.id, lost)
  const left = await eventually(
    () => (engine.sandboxesOf(process.pid).includes(lost) ? `the container ${lost} is still there` : undefined),
    5000,
  )
  assert.equal(left, undefined)
}
