import { isSound, type JournalEvent, type JournalStore, recordOf, type RunRecord } from '../journal/index.ts'

/** A run as a store has it. */
export interface StoredRun {
  readonly events: readonly JournalEvent[]
  readonly record: RunRecord
  /** Events that are not there or cannot be read. */
  readonly missing: number
}

/** Reads a run; undefined where its beginning cannot be read. */
export async function storedRun(store: JournalStore, runId: string): Promise<StoredRun | undefined> {
  const found = await store.read(runId)
  const events = found.filter(isSound)
  const [first] = events
  // The id is the one it was found by, whatever stands in the file.
  if (first?.type !== 'run_started' || first.run_id !== runId) return undefined
  const last = found.reduce((most, { seq }) => Math.max(most, seq), 0)
  return { events, record: recordOf(events), missing: Math.max(0, last + 1 - events.length) }
}
