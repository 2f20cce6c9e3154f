import { isDeepStrictEqual } from 'node:util'
import type { Session, Workspace } from '../../src/index.ts'
import type { SessionState } from './session-states.ts'

/** The result of a kind of state, and that of the table. */
export interface StateOutcome {
  readonly found: unknown
  readonly wanted: unknown
}

/** A kind of state is made in one cell and used in a later one. */
export async function useInLaterCell(workspace: Workspace, state: SessionState): Promise<StateOutcome> {
  const { made, used, value } = state
  await using session = await sessionFor(workspace, state)
  const first = await session.run(made)
  const between = await session.run('0')
  const last = await session.run(used)
  return {
    found: [first.error, first.state, between.error, between.state, last.error, last.value],
    wanted: [null, 'kept', null, 'kept', null, value],
  }
}

/** It is used after the rollback of a cell that spoils it: it works, or its loss is told. */
export async function useAfterRollback(workspace: Workspace, state: SessionState): Promise<StateOutcome> {
  await using session = await sessionFor(workspace, state)
  await session.run(state.made)
  const broken = await session.run(`${state.spoilt}\nimport os; os._exit(1)`)
  const after = await session.run(state.used)
  const told = [...broken.missing, ...broken.ended].join('\n')
  const isLost = state.told !== undefined
  return {
    found: {
      state: broken.state,
      told: state.told?.test(told) === true ? 'as the table says' : told,
      raises: after.error !== null,
      value: after.value,
    },
    wanted: {
      state: 'rolled-back',
      told: isLost ? 'as the table says' : '',
      raises: isLost && !('lostValue' in state),
      value: isLost ? (state.lostValue ?? null) : state.value,
    },
  }
}

/** True if the kind of state is as it was after a rollback that repairs nothing. */
export async function isKeptByFork(workspace: Workspace, state: SessionState): Promise<boolean> {
  await using session = await sessionFor(workspace, state)
  await session.run('from sandglass_harness.session import repairs; repairs.apply = lambda *_: []')
  await session.run(state.made)
  const broken = await session.run(`${state.spoilt}\nimport os; os._exit(1)`)
  const after = await session.run(state.used, { timeoutSec: state.rollback === 'repaired' ? 1 : 10 })
  return broken.state === 'rolled-back' && after.error === null && isDeepStrictEqual(after.value, state.value)
}

/** Names of files and directories that states of several sessions have in common. */
const SHARED_NAMES = /"(?:f\.txt|a\.db|d|socket)"/

/** A session, with a directory of its own if the state has files: another cell for each would cost a fifth of the time. */
async function sessionFor(workspace: Workspace, { made }: SessionState): Promise<Session> {
  const session = await workspace.session()
  if (SHARED_NAMES.test(made)) await session.run('import os, tempfile\nos.chdir(tempfile.mkdtemp(dir=os.getcwd()))')
  return session
}
