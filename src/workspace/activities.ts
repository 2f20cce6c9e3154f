import type { Duplex } from 'node:stream'
import type { FilesInput } from '../executor/index.ts'
import type { InputOptions, WorkspaceInput } from './add-input.ts'
import type { CollectedEntry, CollectOptions } from './collect.ts'
import type { ExecResult } from './exec.ts'
import type { FileEntry, ListOptions } from './list-files.ts'
import type { Checkpoint, RestoreResult, SyncResult } from './sync-result.ts'
import type { Program } from './program.ts'
import type { ExecOptions, StartOptions } from './program-options.ts'
import type { SavedFile, SaveOptions } from './save.ts'

/** A sandbox that lasts until it is closed: its files stay, and several activities may run at once. */
export interface WorkspaceActivities extends AsyncDisposable {
  /** The id of its sandbox. */
  readonly id: string
  readonly engine: string
  /**
   * `separate`: no activity can signal another or read its memory and environment, because the kernel keeps them apart or because
   * they run one at a time. `shared`: it can, so they are one trust domain. Files, loopback and limits are shared in either case.
   */
  readonly trust: 'separate' | 'shared'
  /**
   * Runs a program to its end. Whatever happens to the program is a value, also if it does not exist. No shell interprets the
   * arguments.
   * @throws SandglassError `invalid_request`, `path_refused` or `path_not_found` for its `cwd`, `aborted`,
   * `secrets_not_separate`, `workspace_closed`, `workspace_lost`, and, where activities run one at a time, `sandbox_busy`, or
   * `activity_unavailable` for `tty`; what `onOutput` or `stdin` throws.
   */
  exec(command: string, args?: readonly string[], options?: ExecOptions): Promise<ExecResult>
  /**
   * Starts a program in the background. Resolves when it has been executed.
   * @throws SandglassError `program_not_found`, `activity_unavailable` where activities run one at a time, and what `exec` throws.
   */
  start(command: string, args?: readonly string[], options?: StartOptions): Promise<Program>
  /**
   * Connects to a port of the sandbox's own loopback, for example for `createConnection` of `http.request`. A failure is
   * emitted as the event `error`.
   * @throws SandglassError `invalid_request`, `activity_unavailable` where activities run one at a time, `workspace_closed`,
   * `workspace_lost`
   */
  dial(port: number): Duplex
  /**
   * Writes files, in this order. Each file appears complete or not at all.
   * @throws SandglassError `invalid_request`, `path_refused`, `no_space`, `aborted`
   */
  put(files: FilesInput, options?: { readonly signal?: AbortSignal }): Promise<void>
  /**
   * Mounts a file or a directory of the host, read-only, under a name such as `a.csv` or `data/a.csv`; a large one takes no
   * memory of the sandbox. If the engine cannot do that (Docker), it is copied into the directory `inputs` of the workspace. A
   * directory is copied as it is now; a link in it to a file below it becomes that file.
   * @throws SandglassError `invalid_request`, also for a directory with other links, devices or sockets;
   * `limit_not_enforceable` for
   * `readOnly`; `no_space`, `workspace_io`, `aborted`
   */
  addInput(name: string, path: string, options?: InputOptions): Promise<WorkspaceInput>
  /** Reads a file of at most `maxBytes` (default 64 MiB). @throws SandglassError `path_not_found`, `path_refused`, `too_large` */
  get(path: string, options?: { readonly maxBytes?: number; readonly signal?: AbortSignal }): Promise<Uint8Array>
  /** Streams a file of any size. @throws SandglassError `path_not_found`, `path_refused`, `workspace_io` */
  read(path: string, options?: { readonly signal?: AbortSignal }): AsyncIterable<Uint8Array>
  /** Describes the entry at a path; links are not followed. @throws SandglassError `path_not_found`, `path_refused` */
  stat(path: string, options?: { readonly signal?: AbortSignal }): Promise<FileEntry>
  /**
   * Lists everything below a directory (`''`: the root), each directory sorted by name.
   * @throws SandglassError `path_not_found`, `path_refused`, `too_large`
   */
  list(path?: string, options?: ListOptions): AsyncIterable<FileEntry>
  /**
   * Removes a file or an empty directory; with `recursive`, a directory with its content. A script that keeps adding files can
   * prolong that: `signal` bounds the time.
   * @throws SandglassError `path_not_found`, `path_refused`, `aborted`
   */
  remove(path: string, options?: { readonly recursive?: boolean; readonly signal?: AbortSignal }): Promise<void>
  /** Makes a directory and its parents, unless they exist. @throws SandglassError `path_refused`, `no_space` */
  makeDirectory(path: string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>
  /**
   * Computes the SHA-256 of a file, or of the paths and contents below a directory. It reads all files, and a script can make a
   * sparse file of petabytes: `signal` bounds the time. Other activities are served meanwhile.
   * @throws SandglassError `path_not_found`, `too_large` for too many entries, `aborted`
   */
  digest(
    path?: string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly sha256: string; readonly files: number; readonly bytes: number }>
  /**
   * Finds the regular files that globs match, also through links that stay in the workspace. Each file is read on request.
   * @throws SandglassError `invalid_request`, `too_large`
   */
  collect(globs: string | readonly string[], options?: CollectOptions): AsyncIterable<CollectedEntry>
  /**
   * Saves the files that globs match below a directory of the host, and creates it. Nothing is written outside of it.
   * @throws SandglassError `invalid_request`, `too_large`, `path_refused`, `no_space`
   */
  save(globs: string | readonly string[], directory: string, options?: SaveOptions): Promise<readonly SavedFile[]>
  /** The time at which the store last had all of its files; undefined before, and without `persist`. */
  readonly syncedAt: Date | undefined
  /**
   * Stores what changed since the last time, in a workspace that was opened with `persist`.
   * @throws SandglassError `invalid_request` without `persist`, `workspace_owned` if another owner took over, `sandbox_busy`
   * where files cannot be read while a script runs, `too_large` for more than 200,000 entries, `aborted`, and those of the
   * store.
   */
  sync(options?: { readonly signal?: AbortSignal }): Promise<SyncResult>
  /**
   * Synchronises, and keeps that state of the files until a hundred later checkpoints were made. Scripts and programs continue.
   * @throws SandglassError as `sync` does.
   */
  checkpoint(options?: { readonly signal?: AbortSignal }): Promise<Checkpoint>
  /**
   * Restores the files of a checkpoint, also of one that an earlier owner made. Only files that differ are written or removed.
   * @throws SandglassError as `sync` does, and `invalid_request` for a checkpoint that does not exist.
   */
  restore(checkpoint: Checkpoint | string, options?: { readonly signal?: AbortSignal }): Promise<RestoreResult>
  /**
   * Ends everything in it, synchronises its files (with `persist`), and destroys its sandbox. `onSyncError`, or a call of `sync`
   * before, reports a failure of the synchronisation. Idempotent; never rejects.
   */
  close(): Promise<void>
}
