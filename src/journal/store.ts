import type { JournalEvent } from './events.ts'

/** A run in a list. */
export interface RunSummary {
  readonly runId: string
  /** ISO 8601, UTC. */
  readonly startedAt: string
}

/** Where journals are kept. Made by {@link memoryStore}, {@link jsonlStore} and {@link sqliteStore}, or by a user. */
export interface JournalStore {
  /**
   * Adds an event behind those of its run. It is kept when this returns, or when the promise is fulfilled.
   * @throws TypeError here and below for what is no id of a run.
   */
  append(event: JournalEvent): void | Promise<void>
  /** All events of a run in order; none for a run that is not there. What cannot be read is left out. */
  read(runId: string): Promise<readonly JournalEvent[]>
  /** The runs that are there, newest first. */
  list(options?: { readonly limit?: number | undefined }): Promise<readonly RunSummary[]>
  /** Removes a run; nothing happens when it is not there. */
  remove(runId: string): Promise<void>
  close(): Promise<void>
}

/** How a store is opened. */
export interface StoreOptions {
  /** For reading alone: nothing is made or changed, and what is not there is an error of the first call. */
  readonly readOnly?: boolean
}

/** How many runs are listed, all by default. @throws TypeError for what is no number of runs. */
export function checkLimit(limit: number | undefined): number {
  if (limit === undefined) return Number.MAX_SAFE_INTEGER
  if (!Number.isSafeInteger(limit) || limit < 0) throw new TypeError('limit: must be a whole number of at least 0')
  return limit
}
