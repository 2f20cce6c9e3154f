import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'
import { isKeptByFork, useAfterRollback, useInLaterCell } from '../../support/session-state-rules.ts'
import { SESSION_STATES } from '../../support/session-states.ts'

let sg: Sandglass
let workspace: Workspace
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0 })
  workspace = await sg.workspace()
})
afterAll(() => sg?.close())

test('the table has 49 kinds of state', () => {
  expect(new Set(SESSION_STATES.map(({ kind }) => kind)).size).toBe(49)
})

test.for(SESSION_STATES)('$kind last to the next cell', async (state) => {
  const { found, wanted } = await useInLaterCell(workspace, state)
  expect(found).toEqual(wanted)
})

test.for(SESSION_STATES)('$kind after a rollback: $rollback', async (state) => {
  const { found, wanted } = await useAfterRollback(workspace, state)
  expect(found).toEqual(wanted)
})

test.for(SESSION_STATES.filter(({ rollback }) => rollback !== 'told'))(
  '$kind after a rollback without repairs: the verdict is $rollback',
  async (state) => {
    expect(await isKeptByFork(workspace, state)).toBe(state.rollback === 'works')
  },
)
