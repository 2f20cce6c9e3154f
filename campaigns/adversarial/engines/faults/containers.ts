import assert from 'node:assert/strict'
import type { Sandglass } from '../../../../src/sandglass.ts'
import { docker } from '../../../../test/support/containers.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { type Answer, answerOf, describeAnswer } from '../../driver/answer.ts'
import type { EngineUnderTest } from '../../driver/engine.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { daemonOf } from '../docker.ts'

const TIMEOUT_SEC = 3
/** Time that the host adds to a deadline when the harness is silent. */
const BACKSTOP_MS = 5000

/** FLT-010: a container is removed during a run. The run fails, and the pool replaces the sandbox. */
export async function replacesRemovedContainer({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, maxOverflow: 0 })
  const { sandboxId, ended } = await startEndlessRun(sandglass, 60)
  docker(daemonOf(engine), 'rm', '--force', sandboxId)
  const removed = performance.now()
  const answer = await ended
  assert.equal(answer.errorKind, 'infrastructure', describeAnswer(answer))
  assert.equal(answer.result?.status, 'sandbox-lost')
  assert.ok(performance.now() - removed < 5000, describeAnswer(answer))
  await isReplaced(engine, sandglass, sandboxId)
}

/** FLT-011: a container is paused during a run. The run times out, and the pool replaces the sandbox. */
export async function timesOutPausedContainer({ engine }: CaseContext): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, maxOverflow: 0 })
  const { sandboxId, ended } = await startEndlessRun(sandglass, TIMEOUT_SEC)
  docker(daemonOf(engine), 'pause', sandboxId)
  const answer = await ended
  assert.equal(answer.errorKind, 'timeout', describeAnswer(answer))
  assert.ok(answer.wallMs < TIMEOUT_SEC * 1000 + 1000 + BACKSTOP_MS + 1000, describeAnswer(answer))
  await isReplaced(engine, sandglass, sandboxId)
}

/** Starts an endless run and waits until its script has begun. */
async function startEndlessRun(
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
  void ended.then(
    (answer) => begun.reject(new Error(`the run ended before its script began: ${describeAnswer(answer)}`)),
    begun.reject,
  )
  return { sandboxId: await begun.promise, ended }
}

async function isReplaced(engine: EngineUnderTest, sandglass: Sandglass, lost: string): Promise<void> {
  const next = await answerOf(sandglass, 'emit_result(1)', {})
  assert.equal(next.result?.finalData, 1, describeAnswer(next))
  assert.notEqual(next.result?.sandbox.id, lost)
  const left = await eventually(
    () => (engine.sandboxesOf(process.pid).includes(lost) ? `the container ${lost} is still there` : undefined),
    5000,
  )
  assert.equal(left, undefined)
}
