import type { SkippedFile } from './collect.ts'

/** The result of a synchronisation. */
export interface SyncResult {
  /** The state of the workspace that the store has: everything that changed before this time. */
  readonly syncedAt: Date
  /** Regular files, and their bytes. */
  readonly files: number
  readonly bytes: number
  /** Files whose content was new or could have changed, and was read. */
  readonly read: number
  /** Entries of the workspace that are not in the store. */
  readonly skipped: readonly SkippedFile[]
}

/** A state of the files of a workspace that stays in its store. */
export interface Checkpoint {
  readonly id: string
  readonly createdAt: Date
  readonly files: number
  readonly bytes: number
  /** Scripts and programs in progress. They were not stopped: files that they wrote meanwhile may be incomplete. */
  readonly running: readonly string[]
}

/** The changes that restored a checkpoint. */
export interface RestoreResult {
  /** Numbers of files, links and directories that were written, and removed. All others were unchanged. */
  readonly written: number
  readonly removed: number
  /** Scripts and programs in progress. They were not stopped. */
  readonly running: readonly string[]
}
