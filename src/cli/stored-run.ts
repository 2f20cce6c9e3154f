import {
  isSound,
  type JournalEvent,
  type JournalStore,
  recordOf,
  type RunRecord,
  type RunSummary,
} from '../journal/index.ts'
import { formatValue, nearest } from '../support/index.ts'
import { UsageError } from './failure.ts'

const MAX_NAMED = 5

/** A stored task. */
export interface StoredRun {
  readonly events: readonly JournalEvent[]
  readonly record: RunRecord
  /** The number of events that are missing or cannot be read. */
  readonly missing: number
}

/** Reads a task; undefined if its first event cannot be read. */
export async function readRun(store: JournalStore, runId: string): Promise<StoredRun | undefined> {
  const found = await store.read(runId)
  const events = found.filter(isSound)
  const [first] = events
  // The id is the one of the file, whatever its content says.
  if (first?.type !== 'run_started' || first.run_id !== runId) return undefined
  const last = found.reduce((max, { seq }) => Math.max(max, seq), 0)
  return { events, record: recordOf(events), missing: Math.max(0, last + 1 - events.length) }
}

/**
 * Finds the id of the task that a word names: an id, the beginning of one, or `last`.
 * @param runs newest first.
 * @param where for messages: the place, and the flag that names it.
 * @throws UsageError that lists what exists instead.
 */
export function findRun(
  word: string,
  runs: readonly RunSummary[],
  where: { readonly path: string; readonly flag: string },
): string {
  const ids = runs.map(({ runId }) => runId)
  const [newest] = ids
  if (newest === undefined) throw wrong(`there are no tasks in ${where.path} yet; sandglass solve makes one`)
  if (word === 'last' || ids.includes(word)) return word === 'last' ? newest : word
  const matches = word === '' ? [] : ids.filter((id) => id.startsWith(word))
  const [only] = matches
  if (matches.length === 1 && only !== undefined) return only
  const list = `sandglass runs${where.flag}`
  if (matches.length > 1) {
    const named = matches.slice(0, MAX_NAMED).join(', ')
    const more = matches.length > MAX_NAMED ? ` and ${matches.length - MAX_NAMED} more` : ''
    throw wrong(
      `${JSON.stringify(word)} is the beginning of ${matches.length} tasks: ${named}${more}; write more of it`,
    )
  }
  const close = nearest(word, ids)
  const hint = close === undefined ? `The newest is ${newest}` : `Did you mean ${close}?`
  throw wrong(`no task ${formatValue(word)} in ${where.path}. ${hint}; ${list} lists them`)
}

function wrong(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
