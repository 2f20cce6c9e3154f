import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { RunOptions } from '../../src/options.ts'
import type { Answer, Runner } from './driver/answer.ts'
import type { EngineUnderTest } from './driver/engine.ts'
import { INVARIANTS } from './driver/invariants.ts'
import type { Problem, Stage } from './driver/stage.ts'

/* Looks at containers, on an engine that is none: each must be able to fail. */

const SECRET = 'the value of a secret'

/** A stage on which nothing is real but what `engine` brings. */
function stageOn(engine: Partial<EngineUnderTest>, onClose: () => void = () => {}): Stage {
  const runner: Runner = {
    run: (_script, options) => untilAborted(options),
    close: async () => Promise.resolve(onClose()),
  }
  return {
    ground: { engine },
    runner,
    warm: { sandboxId: 'warm', processes: 3 },
    options: { secrets: { KEY: SECRET } },
  } as unknown as Stage
}

async function untilAborted({ signal, onEvent }: RunOptions): Promise<Answer> {
  onEvent?.({ type: 'started', executionId: 'x', sandboxId: 'warm' } as never)
  if (signal !== undefined) await once(signal, 'abort')
  return { result: { status: 'cancelled' } } as unknown as Answer
}

async function problemOf(name: string, stage: Stage): Promise<Problem> {
  const verify = await INVARIANTS.get(name)?.(stage)
  return verify?.([])
}

test('a container that outlives its Sandglass is a leak', async () => {
  let there = ['warm', 'forgotten']
  const stage = stageOn({ watchContainers: () => () => there }, () => void (there = ['forgotten']))
  expect(await problemOf('no_leaked_containers', stage)).toBe('containers are left: forgotten')
})

test('containers that are gone with their Sandglass are none, nor are those of an engine that makes none', async () => {
  let there = ['warm']
  const gone = stageOn({ watchContainers: () => () => there }, () => void (there = []))
  expect(await problemOf('no_leaked_containers', gone)).toBeUndefined()
  expect(await problemOf('no_leaked_containers', stageOn({ watchContainers: () => null }))).toBeUndefined()
})

test('a look that does not see the container of the case itself sees nothing', async () => {
  const blind = stageOn({ watchContainers: () => () => [] })
  expect(await problemOf('no_leaked_containers', blind)).toBe('the look at containers misses warm')
})

test('a secret in anything that a daemon tells while the run goes on is found', async () => {
  let looks = 0
  const toldAbout = (): string => ((looks += 1) > 2 ? `"Env":["KEY=${SECRET}"]` : '{}')
  const problem = await problemOf('secret_not_in_docker_inspect', stageOn({ toldAbout }))
  expect([problem, looks]).toEqual(['a secret stands in what the daemon tells of the container', 3])
  expect(await problemOf('secret_not_in_docker_inspect', stageOn({ toldAbout: () => 'nothing' }))).toBeUndefined()
})

test('a survivor that passes for the process of the next run is a leak once that one is there', async () => {
  const processes = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ pid: 100 + n, insidePid: n + 1, uid: 0 }))
  let looks = 0
  const processesOf = () => processes((looks += 1) > 2 ? 4 : 3)
  expect(await problemOf('no_leaked_processes', stageOn({ processesOf }))).toMatch(/^4 processes are left, 3 is what/)
  expect(await problemOf('no_leaked_processes', stageOn({ processesOf: () => processes(3) }))).toBeUndefined()
  expect(await problemOf('no_leaked_processes', stageOn({ processesOf: () => [] }))).toBeUndefined()
})
