import { setImmediate } from 'node:timers/promises'
import { messageOf, SandglassError } from '../errors/index.ts'
import {
  type EntryState,
  isSame,
  RELEASE_MS,
  MAX_CHECKPOINTS,
  StoredTrees,
  type TreeState,
  type WorkspaceLease,
} from '../persistence/index.ts'
import type { EntryOnWire } from '../protocol/index.ts'
import { unlessAborted } from '../sandbox/index.ts'
import { formatValue } from '../support/index.ts'
import { removePath } from './change-paths.ts'
import type { SkippedFile } from './collect.ts'
import type { Link } from './link.ts'
import { type StorableEntries, listStorable } from './storable-entries.ts'
import { restoreEntries } from './restore-entries.ts'
import { storeFiles } from './store-files.ts'
import type { Checkpoint, RestoreResult, SyncResult } from './sync-result.ts'

/** The rules by which files are kept in a store. */
export interface PersistOptions {
  /** The disk of the workspace, in bytes. Sparse files can have more; they would not fit when they are restored. */
  readonly maxBytes: number
  /** Called when a synchronisation fails for which no caller waits. */
  readonly onError: (error: unknown) => void | Promise<void>
  /** Maximum time of the last synchronisation, in milliseconds. Default 120,000. */
  readonly lastSyncMs?: number
}

/** An entry of the workspace as the store has it. */
interface Held {
  readonly state: EntryState
  /** The version of the file that the sandbox reported; undefined if the content must be read again. */
  readonly version: string | undefined
}

/** Time between synchronisations while a script or program runs. */
const EVERY_MS = 30_000
const LAST_SYNC_MS = 120_000

/** Keeps the files of a workspace in a store, which has the last state that was synchronised completely. */
export class PersistedFiles {
  readonly #link: Link
  readonly #lease: WorkspaceLease
  readonly #trees: StoredTrees
  readonly #onError: (error: unknown) => Promise<void>
  readonly #maxBytes: number
  readonly #lastSyncMs: number
  readonly #ended = new AbortController()
  #present = new Map<string, Held>()
  #syncedAt: Date | undefined
  #isDirty = false
  /** True when the store's files are restored. Before, a synchronisation would store an incomplete state. */
  #isOpen = false
  #timer: NodeJS.Timeout | undefined
  /** The queue of restores and synchronisations, which run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** A synchronisation that has not begun yet: all callers share it. */
  #waiting: Promise<SyncResult> | undefined

  constructor(link: Link, lease: WorkspaceLease, options: PersistOptions) {
    this.#maxBytes = options.maxBytes
    this.#lastSyncMs = options.lastSyncMs ?? LAST_SYNC_MS
    this.#link = link
    this.#lease = lease
    this.#trees = new StoredTrees(lease.store, lease.id)
    this.#onError = warnOfFailure(options.onError)
    link.lossNote = () =>
      this.#syncedAt === undefined
        ? '; none of its files were stored'
        : `; the store has its files of ${this.#syncedAt.toISOString()}`
  }

  get id(): string {
    return this.#lease.id
  }

  get syncedAt(): Date | undefined {
    return this.#syncedAt
  }

  /** Restores the files that the store has. @throws SandglassError of the store and of the sandbox, `aborted` */
  async open(signal: AbortSignal): Promise<void> {
    const { tree } = this.#lease.record
    if (tree !== null) {
      const target = await this.#trees.load(tree, signal)
      await restoreEntries(this.#link, this.#trees, [...target.values()], signal)
      this.#present = findUnchanged(await listStorable(this.#link, this.#maxBytes, signal), target)
      this.#syncedAt = new Date(tree.at)
    }
    this.#isOpen = true
    this.#timer = setInterval(() => this.#tick(), EVERY_MS)
    this.#timer.unref()
  }

  /**
   * @throws SandglassError `workspace_owned`, those of the store, `sandbox_busy` where files cannot be read while a script
   * runs, `aborted`, and the reason why the workspace ended.
   */
  sync(signal?: AbortSignal): Promise<SyncResult> {
    if (signal !== undefined) return this.#inTurn((until) => this.#synchronise(until), signal)
    this.#waiting ??= this.#inTurn(async (until) => {
      // A caller whose activity has just ended may request one, too.
      await setImmediate()
      this.#waiting = undefined
      return this.#synchronise(until)
    })
    return this.#waiting
  }

  /** Synchronises in the background, because files may have changed. */
  noteChange(): void {
    if (this.#ended.signal.aborted) return
    this.#isDirty = true
    this.sync().catch((error: unknown) => {
      if (!this.#ended.signal.aborted) void this.#onError(error)
    })
  }

  /** Resolves when nothing is being synchronised. */
  async drain(): Promise<void> {
    for (let last = this.#last; ; last = this.#last) {
      await last
      if (last === this.#last) return
    }
  }

  /** @throws SandglassError as {@link sync} does. */
  checkpoint(id: string, signal?: AbortSignal): Promise<Checkpoint> {
    return this.#inTurn(async (until) => {
      const running = new Set(this.#link.running)
      await this.#synchronise(until)
      for (const one of this.#link.running) running.add(one)
      const { tree } = this.#lease.record
      if (tree === null)
        throw new SandglassError(
          'store_damaged',
          `${this.#lease.store.name} no longer has the files of workspace ${formatValue(this.id)}`,
        )
      await this.#lease.update((record) => ({
        ...record,
        checkpoints: [...record.checkpoints, { ...tree, id }].slice(-MAX_CHECKPOINTS),
      }))
      return { id, createdAt: new Date(tree.at), files: tree.files, bytes: tree.bytes, running: [...running] }
    }, signal)
  }

  /** @throws SandglassError `invalid_request` for a checkpoint that the store does not have, and as {@link sync} does. */
  restore(id: string, signal?: AbortSignal): Promise<RestoreResult> {
    return this.#inTurn(async (until) => {
      const state = this.#lease.record.checkpoints.find((one) => one.id === id)
      if (state === undefined)
        throw new SandglassError(
          'invalid_request',
          `checkpoint: workspace ${formatValue(this.id)} has no checkpoint ${formatValue(id)}`,
        )
      const running = new Set(this.#link.running)
      const counts = await this.#become(state, until)
      for (const one of this.#link.running) running.add(one)
      return { ...counts, running: [...running] }
    }, signal)
  }

  /**
   * Ends scripts and programs, synchronises a last time, and releases the workspace, even if the store hangs. Never rejects.
   * @param why the error of calls that have not settled by then.
   */
  async close(why: SandglassError): Promise<void> {
    clearInterval(this.#timer)
    const late = AbortSignal.timeout(this.#lastSyncMs)
    try {
      if (this.#isOpen && this.#lease.endedBy === undefined)
        await unlessAborted(this.#storeLast(late), late, 'the last changes were being stored')
    } catch (error) {
      void this.#onError(late.aborted ? this.#lateError() : error)
    } finally {
      await this.abandon(why)
    }
  }

  /** Releases the workspace in the state that the store has. Never rejects. */
  async abandon(why: SandglassError): Promise<void> {
    clearInterval(this.#timer)
    this.#ended.abort(why)
    // Nobody waits for a store that never answers: the lease expires. The release has a bound of its own.
    const releasing = Promise.all([this.drain(), this.#lease.release()])
    const late = AbortSignal.timeout(RELEASE_MS)
    await unlessAborted(releasing, late, 'the workspace was being released').catch(() => undefined)
  }

  async #storeLast(signal: AbortSignal): Promise<void> {
    await this.#link.endProcesses()
    await this.sync(signal)
    await this.#trees.prune(this.#lease)
  }

  #lateError(): SandglassError {
    return new SandglassError(
      'store_unreachable',
      `${this.#lease.store.name} did not store the last changes of workspace ${formatValue(this.id)} within ${this.#lastSyncMs / 1000} s`,
    )
  }

  #tick(): void {
    const isRunning = this.#link.running.length > 0
    // Files cannot be read while an activity runs that must run alone.
    if (this.#link.isTaken(false, false)) return
    if (isRunning || this.#isDirty) this.noteChange()
  }

  /**
   * Runs work after all earlier work has ended. The signal of the caller and the end of the workspace abort the wait, even if the
   * store never answers; later work still waits.
   */
  async #inTurn<T>(work: (until: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const ended = this.#ended.signal
    const until = signal === undefined ? ended : AbortSignal.any([signal, ended])
    const done = this.#last.then(async () => work(until))
    this.#last = done.catch(() => undefined)
    try {
      return await unlessAborted(done, until, 'the files of the workspace were being stored')
    } catch (error) {
      throw ended.aborted && signal?.aborted !== true ? ended.reason : error
    }
  }

  async #synchronise(signal: AbortSignal): Promise<SyncResult> {
    if (this.#lease.endedBy !== undefined) throw this.#lease.endedBy
    const at = new Date()
    this.#isDirty = false
    try {
      const { entries, skipped } = await listStorable(this.#link, this.#maxBytes, signal)
      const next = new Map<string, Held | undefined>()
      const unknown: EntryOnWire[] = []
      for (const entry of entries) {
        const held = this.#heldOf(entry)
        next.set(entry.path, held)
        if (held === undefined) unknown.push(entry)
      }
      await this.#store(unknown, next, skipped, signal)
      const present = new Map([...next].filter((pair): pair is [string, Held] => pair[1] !== undefined))
      const tree = await this.#trees.save(statesOf(present), at, signal)
      await this.#lease.update((record) => ({ ...record, tree }))
      this.#present = present
      this.#syncedAt = at
      return { syncedAt: at, files: tree.files, bytes: tree.bytes, read: unknown.length, skipped }
    } catch (error) {
      this.#isDirty = true
      throw error
    }
  }

  /** Reads and stores the content of files. A file that cannot be read keeps its last stored version. */
  async #store(
    files: readonly EntryOnWire[],
    into: Map<string, Held | undefined>,
    skipped: SkippedFile[],
    signal: AbortSignal,
  ): Promise<void> {
    if (files.length === 0) return
    const known = new Set<string>()
    for (const { state } of this.#present.values()) if (state.kind === 'file') known.add(state.sha256)
    const bounds = { known, maxFileBytes: this.#maxBytes, signal }
    await storeFiles(this.#link, this.#trees, files, bounds, (entry, outcome) => {
      if ('state' in outcome) {
        into.set(entry.path, { state: outcome.state, version: entry.version ?? undefined })
        return
      }
      if (outcome.isGone) return
      const before = this.#present.get(entry.path)
      if (before?.state.kind === 'file') into.set(entry.path, { state: before.state, version: undefined })
      this.#isDirty = true
      skipped.push({ path: entry.path, reason: 'unread', message: outcome.message })
    })
  }

  /** The state of an entry whose content the store has; undefined for a file that must be read. */
  #heldOf(entry: EntryOnWire): Held | undefined {
    if (entry.kind === 'link')
      return { state: { kind: 'link', path: entry.path, target: entry.target ?? '' }, version: undefined }
    if (entry.kind === 'directory')
      return { state: { kind: 'directory', path: entry.path, mode: entry.mode & 0o777 }, version: undefined }
    const before = this.#present.get(entry.path)
    const isKnown =
      typeof entry.version === 'string' && before?.version === entry.version && before.state.kind === 'file'
    return isKnown ? before : undefined
  }

  /** Changes the files to a state that the store has. */
  async #become(state: TreeState, signal: AbortSignal): Promise<{ written: number; removed: number }> {
    await this.#synchronise(signal)
    const target = await this.#trees.load(state, signal)
    const outdated: string[] = []
    for (const [path, { state: present }] of this.#present) {
      if (target.get(path)?.kind === present.kind || outdated.some((above) => path.startsWith(`${above}/`))) continue
      outdated.push(path)
    }
    const wanted = [...target.values()].filter((entry) => {
      const present = this.#present.get(entry.path)
      return present === undefined || !isSame(present.state, entry)
    })
    for (const path of outdated) await this.#remove(path, signal)
    await restoreEntries(this.#link, this.#trees, wanted, signal)
    await this.#synchronise(signal)
    return { written: wanted.length, removed: outdated.length }
  }

  async #remove(path: string, signal: AbortSignal): Promise<void> {
    try {
      await removePath(this.#link, path, { recursive: true, signal })
    } catch (error) {
      if (!(error instanceof SandglassError && error.code === 'path_not_found')) throw error
    }
  }
}

/** Makes a warning of what the callback of a user throws: it ends neither the host nor the release of the workspace. */
function warnOfFailure(onError: PersistOptions['onError']): (error: unknown) => Promise<void> {
  return async (error) => {
    try {
      await onError(error)
    } catch (failure) {
      process.emitWarning(`onSyncError failed: ${messageOf(failure)}`, { code: 'SANDGLASS_ON_SYNC_ERROR' })
    }
  }
}

/** Returns the entries that have not changed since a restore. */
function findUnchanged({ entries }: StorableEntries, target: ReadonlyMap<string, EntryState>): Map<string, Held> {
  const held = new Map<string, Held>()
  for (const { path, kind, size, mode, version } of entries) {
    const state = target.get(path)
    if (state?.kind !== kind) continue
    if (state.kind === 'file' && (state.size !== size || state.mode !== (mode & 0o777))) continue
    held.set(path, { state, version: version ?? undefined })
  }
  return held
}

function* statesOf(held: ReadonlyMap<string, Held>): Generator<EntryState, void, void> {
  for (const { state } of held.values()) yield state
}
