import { SESSION_STATES, type SessionState } from '../../test/support/session-states.ts'
import { markdownTable } from './table.ts'

/** By kind of state: the words for a loss that raises no error. */
const LOSSES: ReadonlyMap<string, string> = new Map([
  ['files that are written over', 'the changes of the cell stay'],
  ['shared memory', 'the changes of the cell stay'],
  ['the process id', 'one that a cell has stored is stale'],
  ['pipes', 'they are closed'],
  ['sockets', 'they are closed'],
  ['servers of asyncio', 'they are closed'],
  ['threads', 'they have ended'],
  ['programs that run', 'they were killed'],
])

/** The table of the state of a session. @throws Error for a kind of state without words that needs some. */
export function sessionStates(): string {
  return markdownTable(
    ['kind of state', 'next cell', 'after a rollback'],
    SESSION_STATES.map((state) => [state.kind, 'works', afterRollback(state)]),
  )
}

function afterRollback(state: SessionState): string {
  if (state.rollback !== 'told') return state.rollback
  return `told; ${'lostValue' in state ? wordsOf(state.kind, LOSSES) : 'its use raises an error'}`
}

function wordsOf(kind: string, words: ReadonlyMap<string, string>): string {
  const found = words.get(kind)
  if (found === undefined) throw new Error(`there are no words for ${kind}`)
  return found
}
