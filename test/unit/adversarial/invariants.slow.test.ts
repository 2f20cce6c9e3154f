import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { RunOptions } from '../../../src/options/index.ts'
import type { Answer, Runner } from '../../../campaigns/adversarial/driver/answer.ts'
import type { EngineUnderTest } from '../../../campaigns/adversarial/driver/engine.ts'
import { INVARIANTS } from '../../../campaigns/adversarial/driver/invariants.ts'
import type { Problem, CaseState } from '../../../campaigns/adversarial/driver/case-state.ts'

/* Tests the invariants about containers on a fake engine: each must be able to fail. */

const SECRET = 'the value of a secret'

/** A case state with fakes; only the given part of `engine` is implemented. */
function stateWith(engine: Partial<EngineUnderTest>, onClose: () => void = () => {}): CaseState {
  const runner: Runner = {
    run: (_script, options) => waitForAbort(options),
    close: async () => Promise.resolve(onClose()),
  }
  return {
    context: { engine },
    runner,
    warm: { sandboxId: 'warm', processes: 3 },
    options: { secrets: { KEY: SECRET } },
  } as unknown as CaseState
}

async function waitForAbort({ signal, onEvent }: RunOptions): Promise<Answer> {
  onEvent?.({ type: 'started', executionId: 'x', sandboxId: 'warm' } as never)
  if (signal !== undefined) await once(signal, 'abort')
  return { result: { status: 'cancelled' } } as unknown as Answer
}

async function problemOf(name: string, state: CaseState): Promise<Problem> {
  const verify = await INVARIANTS.get(name)?.(state)
  return verify?.([])
}

test('reports a container that outlives its Sandglass', async () => {
  let there = ['warm', 'forgotten']
  const state = stateWith({ watchContainers: () => () => there }, () => void (there = ['forgotten']))
  expect(await problemOf('no_leaked_containers', state)).toBe('containers are left: forgotten')
})

test('accepts containers that end with their Sandglass, and an engine without containers', async () => {
  let there = ['warm']
  const gone = stateWith({ watchContainers: () => () => there }, () => void (there = []))
  expect(await problemOf('no_leaked_containers', gone)).toBeUndefined()
  expect(await problemOf('no_leaked_containers', stateWith({ watchContainers: () => null }))).toBeUndefined()
})

test('reports a list of containers without the container of the case', async () => {
  const blind = stateWith({ watchContainers: () => () => [] })
  expect(await problemOf('no_leaked_containers', blind)).toBe('the list of containers does not have warm')
})

test("finds a secret in the daemon's report during the run", async () => {
  let looks = 0
  const inspectFromHost = (): string => ((looks += 1) > 2 ? `"Env":["KEY=${SECRET}"]` : '{}')
  const problem = await problemOf('secret_not_in_docker_inspect', stateWith({ inspectFromHost }))
  expect([problem, looks]).toEqual(['the report of the daemon about the container contains a secret', 3])
  expect(
    await problemOf('secret_not_in_docker_inspect', stateWith({ inspectFromHost: () => 'nothing' })),
  ).toBeUndefined()
})

test('reports a survivor once the process of the next run exists as well', async () => {
  const processes = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ pid: 100 + n, insidePid: n + 1, uid: 0 }))
  let looks = 0
  const processesOf = () => processes((looks += 1) > 2 ? 4 : 3)
  expect(await problemOf('no_leaked_processes', stateWith({ processesOf }))).toMatch(
    /^4 processes are left, an idle sandbox has 3/,
  )
  expect(await problemOf('no_leaked_processes', stateWith({ processesOf: () => processes(3) }))).toBeUndefined()
  expect(await problemOf('no_leaked_processes', stateWith({ processesOf: () => [] }))).toBeUndefined()
})
