import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath, formatValue, truncate } from '../support/index.ts'
import type { JournalEvent } from './events.ts'

const MAX_REASON = 500

/** A task in a list. */
export interface RunSummary {
  readonly runId: string
  /** ISO 8601, UTC. */
  readonly startedAt: string
}

/** A store of journals. See {@link memoryStore}, {@link jsonlStore} and {@link sqliteStore}; users can write their own. */
export interface JournalStore {
  /**
   * Appends an event to its task. The event is stored when this returns, or when the promise is fulfilled.
   * @throws TypeError, here and below, for a malformed id of a task.
   */
  append(event: JournalEvent): void | Promise<void>
  /** All events of a task in order; none for an unknown task. Events that cannot be read are left out. */
  read(runId: string): Promise<readonly JournalEvent[]>
  /** The stored tasks, newest first. */
  list(options?: { readonly limit?: number | undefined }): Promise<readonly RunSummary[]>
  /** Removes a task; does nothing for an unknown task. */
  remove(runId: string): Promise<void>
  close(): Promise<void>
}

/** Options of a store. */
export interface StoreOptions {
  /** Opens the store for reading only: nothing is created or changed, and the first call fails if the store does not exist. */
  readonly readOnly?: boolean
}

/** Checks the number of tasks to list; all by default. @throws TypeError if it is not a whole number. */
export function checkLimit(limit: number | undefined): number {
  if (limit === undefined) return Number.MAX_SAFE_INTEGER
  if (!Number.isSafeInteger(limit) || limit < 0)
    throw new TypeError(`limit: ${formatValue(limit)} is not a whole number of at least 0`)
  return limit
}

/** The error `journal_unusable` for a journal, with its path and the reason. */
export function toJournalError(path: string, error: unknown): SandglassError {
  if (error instanceof SandglassError) return error
  // Only the code, because messages of the file system repeat the path, which may be long.
  const reason = isFileError(error) ? `${errnoOf(error)} (${error.syscall})` : truncate(messageOf(error), MAX_REASON)
  return new SandglassError('journal_unusable', `the journal ${formatPath(path)} cannot be used: ${reason}`, {
    cause: error,
  })
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'errno' in error && 'syscall' in error && errnoOf(error) !== undefined
}
