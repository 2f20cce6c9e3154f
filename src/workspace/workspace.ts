import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { SandglassError } from '../errors/index.ts'
import type { FilesInput } from '../executor/index.ts'
import type { WorkspaceLease } from '../persistence/index.ts'
import { claim, INSIDE, type Sandbox } from '../sandbox/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { beginSpan, type SpanAttributes, traceSpan } from '../telemetry/index.ts'
import {
  changeableError,
  checkInput,
  type CheckedInput,
  type InputOptions,
  sendInput,
  showInput,
  takenError,
  type WorkspaceInput,
} from './add-input.ts'
import { checkDirectory, checkPath } from './check-path.ts'
import { checkCollectOptions, type CollectedEntry, collectFiles, type CollectOptions } from './collect.ts'
import { lowerCpuLimit } from './cpu-share.ts'
import { dial } from './dial.ts'
import { checkExec, exec, type ExecResult } from './exec.ts'
import { checkWhole, closedError, idleError, invalid, notAloneError, unavailableError } from './failures.ts'
import { IdleClock } from './idle-clock.ts'
import { Link } from './link.ts'
import { type FileEntry, listFiles, type ListOptions, statFile } from './list-files.ts'
import { Operation } from './operation.ts'
import {
  type Checkpoint,
  PersistedFiles,
  type PersistOptions,
  type RestoreResult,
  type SyncResult,
} from './persisted-files.ts'
import { checkStart, type Program, start } from './program.ts'
import type { CheckedProgram, ExecOptions, ProgramOptions, StartOptions } from './program-options.ts'
import { checkFilesInput, putFiles } from './put-files.ts'
import { getFile, readFile } from './read-files.ts'
import { openRun, type RunSandbox } from './run.ts'
import { type SavedFile, saveFiles, type SaveOptions } from './save.ts'

/** A sandbox that lasts until it is closed: its files stay, and several activities may run at once. */
export interface WorkspaceActivities extends AsyncDisposable {
  /** The id of its sandbox. */
  readonly id: string
  readonly engine: string
  /**
   * `separate`: no activity can signal another or read its memory and environment, because the kernel keeps them apart or because
   * they run one at a time. `shared`: it can, so they are one domain of trust. Files, loopback and limits are shared in either case.
   */
  readonly trust: 'separate' | 'shared'
  /**
   * Runs a program to its end. What the program does is a value, also if it does not exist; no shell reads the arguments.
   * @throws SandglassError `invalid_request`, `path_refused` or `path_not_found` for its `cwd`, `aborted`,
   * `secrets_not_separate`, `workspace_closed`, `workspace_lost`, and, where activities run one at a time, `sandbox_busy`, or
   * `activity_unavailable` for `tty`; what `onOutput` or `stdin` throws.
   */
  exec(command: string, args?: readonly string[], options?: ExecOptions): Promise<ExecResult>
  /**
   * Starts a program in the background. Resolves when it was executed.
   * @throws SandglassError `program_not_found`, `activity_unavailable` where activities run one at a time, and what `exec` throws.
   */
  start(command: string, args?: readonly string[], options?: StartOptions): Promise<Program>
  /**
   * A connection to a port of the sandbox's own loopback, for example for `createConnection` of `http.request`. It emits a
   * failure as the event `error`.
   * @throws SandglassError `invalid_request`, `activity_unavailable` where activities run one at a time, `workspace_closed`,
   * `workspace_lost`
   */
  dial(port: number): Duplex
  /**
   * Writes files, in this order; each is there as a whole or not at all.
   * @throws SandglassError `invalid_request`, `path_refused`, `no_space`, `aborted`
   */
  put(files: FilesInput, options?: { readonly signal?: AbortSignal }): Promise<void>
  /**
   * Shows a file or a directory of the host, read-only, under a name of its own, such as `a.csv` or `data/a.csv`; a large one costs the
   * sandbox no memory. An engine that cannot do that (Docker) is sent it into the directory `inputs` of the workspace. A directory is
   * copied as it is now; a link in it to a file below it becomes that file.
   * @throws SandglassError `invalid_request`, also for a directory with other links, devices or sockets; `limit_not_enforceable` for
   * `readOnly`; `no_space`, `workspace_io`, `aborted`
   */
  addInput(name: string, path: string, options?: InputOptions): Promise<WorkspaceInput>
  /** A file of at most `maxBytes` (default 64 MiB). @throws SandglassError `path_not_found`, `path_refused`, `too_large` */
  get(path: string, options?: { readonly maxBytes?: number; readonly signal?: AbortSignal }): Promise<Uint8Array>
  /** A file of any size, as it is read. @throws SandglassError `path_not_found`, `path_refused`, `workspace_io` */
  read(path: string, options?: { readonly signal?: AbortSignal }): AsyncIterable<Uint8Array>
  /** The entry at a path; links are not followed. @throws SandglassError `path_not_found`, `path_refused` */
  stat(path: string, options?: { readonly signal?: AbortSignal }): Promise<FileEntry>
  /**
   * Everything below a directory (`''`: the root), sorted by name in each.
   * @throws SandglassError `path_not_found`, `path_refused`, `too_large`
   */
  list(path?: string, options?: ListOptions): AsyncIterable<FileEntry>
  /**
   * Removes a file or an empty directory, or all of it, which a script that goes on filling it can prolong until `signal`.
   * @throws SandglassError `path_not_found`, `path_refused`, `aborted`
   */
  remove(path: string, options?: { readonly recursive?: boolean; readonly signal?: AbortSignal }): Promise<void>
  /** Makes a directory and its parents, unless they are there. @throws SandglassError `path_refused`, `no_space` */
  makeDirectory(path: string, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>
  /**
   * The SHA-256 of a file, or of the paths and contents below a directory. It reads all of them, and a script can make a sparse file
   * of petabytes: `signal` bounds the time. Other activities are served meanwhile.
   * @throws SandglassError `path_not_found`, `too_large` for too many entries, `aborted`
   */
  digest(
    path?: string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly sha256: string; readonly files: number; readonly bytes: number }>
  /**
   * The regular files that globs match, also through links that stay in the workspace. Each reads its bytes on request.
   * @throws SandglassError `invalid_request`, `too_large`
   */
  collect(globs: string | readonly string[], options?: CollectOptions): AsyncIterable<CollectedEntry>
  /**
   * Saves the files that globs match below a directory of the host, and creates it. Nothing is written outside of it.
   * @throws SandglassError `invalid_request`, `too_large`, `path_refused`, `no_space`
   */
  save(globs: string | readonly string[], directory: string, options?: SaveOptions): Promise<readonly SavedFile[]>
  /** When the store had all of its files the last time; undefined before, and without `persist`. */
  readonly syncedAt: Date | undefined
  /**
   * Stores what changed since the last time, in a workspace that was opened with `persist`.
   * @throws SandglassError `invalid_request` without `persist`, `workspace_owned` if another owner took over, `sandbox_busy` where files
   * cannot be read while a script runs, `too_large` for more than 200,000 entries, `aborted`, and those of the store.
   */
  sync(options?: { readonly signal?: AbortSignal }): Promise<SyncResult>
  /**
   * Synchronises, and keeps that state of the files until a hundred later checkpoints were made. Nothing is frozen meanwhile.
   * @throws SandglassError as `sync` does.
   */
  checkpoint(options?: { readonly signal?: AbortSignal }): Promise<Checkpoint>
  /**
   * Makes the files those of a checkpoint, also of one that an earlier owner made. Only what differs is written or removed.
   * @throws SandglassError as `sync` does, and `invalid_request` for a checkpoint that is not there.
   */
  restore(checkpoint: Checkpoint | string, options?: { readonly signal?: AbortSignal }): Promise<RestoreResult>
  /**
   * Ends everything in it and its sandbox, which never serves again. With `persist`, its files are synchronised in between; whether
   * that failed tells `onSyncError`, or a call of `sync` before. Idempotent; never rejects.
   */
  close(): Promise<void>
}

/** The request of a script to run in a workspace. */
export interface RunWish {
  readonly executionId?: string | undefined
  readonly files?: unknown
  readonly hasSecrets: boolean
  readonly shareSecrets: boolean
  readonly maxOutputBytes: number
  readonly signal?: AbortSignal | undefined
}

/** The sandbox of a script that runs in a workspace. */
export interface BorrowedSandbox {
  readonly sandbox: RunSandbox
  readonly executionId: string
  release(): Promise<void>
}

const MAX_GET_BYTES = 64 * 1024 * 1024
const MOST_GET_BYTES = 2 ** 31

/** A workspace over a sandbox that it owns. */
export class ActivityWorkspace implements WorkspaceActivities {
  readonly trust: 'separate' | 'shared'
  readonly #sandbox: Sandbox
  readonly #link: Link
  readonly #idle: IdleClock
  readonly #claim: ReturnType<typeof claim>
  readonly #timeoutSec: number
  /** Names it in its spans. */
  readonly #execId: string
  readonly #noPrograms: SandglassError | undefined
  /** Scripts and programs under way, and whether they have secrets that they may not share. */
  readonly #living = new Set<{ readonly isPrivate: boolean }>()
  #persisted: PersistedFiles | undefined
  /** Inputs that are being sent, by their paths. */
  readonly #sending = new Set<string>()
  /** True while the files of a script are put that must then run alone: what begins now would keep it from running. */
  #isReserved = false
  #closing: { readonly why: SandglassError; readonly done: Promise<void> } | undefined

  /**
   * @param options.timeoutSec of programs that are run to their end.
   * @param options.idleTimeoutSec closes it after that time without use.
   * @param options.executionId names it in its spans; default: its id.
   * @param options.noPrograms the error of programs and connections, where the engine has none.
   */
  constructor(
    sandbox: Sandbox,
    options: {
      readonly timeoutSec: number
      readonly idleTimeoutSec?: number | undefined
      readonly executionId?: string | undefined
      readonly noPrograms?: SandglassError | undefined
    },
  ) {
    const { idleTimeoutSec } = options
    this.#sandbox = sandbox
    this.#timeoutSec = options.timeoutSec
    this.#execId = options.executionId ?? sandbox.id
    this.#noPrograms = options.noPrograms
    // One at a time, no activity has a neighbour.
    this.trust = sandbox.ready.checks['signal_scope'] === 'scan' ? 'shared' : 'separate'
    this.#claim = claim(sandbox)
    this.#idle =
      idleTimeoutSec === undefined
        ? new IdleClock(undefined, () => undefined)
        : new IdleClock(idleTimeoutSec * 1000, () => void this.#close(idleError(idleTimeoutSec)))
    // A sandbox whose channel is lost cannot be used any more.
    this.#link = new Link(sandbox, this.#idle, () => {
      void this.#persisted?.abandon()
      void this.#destroy()
    })
  }

  /**
   * Brings back the files that a store has, and keeps them there from now on. The lease is the workspace's own.
   * @throws SandglassError of the store and of the sandbox, `aborted`
   */
  async persist(lease: WorkspaceLease, signal: AbortSignal, options: PersistOptions): Promise<void> {
    const persisted = new PersistedFiles(this.#link, lease, options)
    this.#persisted = persisted
    lease.onLost = (error) => void this.#close(error)
    await persisted.open(signal)
  }

  get syncedAt(): Date | undefined {
    return this.#persisted?.syncedAt
  }

  async sync({ signal }: { readonly signal?: AbortSignal } = {}): Promise<SyncResult> {
    return this.#persistedFiles('sync').sync(signal)
  }

  async checkpoint({ signal }: { readonly signal?: AbortSignal } = {}): Promise<Checkpoint> {
    return this.#persistedFiles('checkpoint').checkpoint(randomUUID(), signal)
  }

  async restore(
    checkpoint: Checkpoint | string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<RestoreResult> {
    const id = typeof checkpoint === 'string' ? checkpoint : checkpoint?.id
    if (typeof id !== 'string')
      throw invalid('checkpoint', `${formatValue(checkpoint)} is neither a checkpoint nor its id`)
    return this.#persistedFiles('restore').restore(id, signal)
  }

  get id(): string {
    return this.#sandbox.id
  }

  get engine(): string {
    return this.#sandbox.info.engine
  }

  /** Resolves when nothing of its sandbox runs any more. Never rejects. */
  get closed(): Promise<unknown> {
    return this.#sandbox.closed
  }

  /** Why it is closed; undefined while it is open. */
  get closedBy(): SandglassError | undefined {
    return this.#closing?.why
  }

  /** A caller uses it, until the result is disposed of. @throws SandglassError `workspace_closed` */
  use(): Disposable {
    return this.#open().use()
  }

  /** A sandbox for one script. Its files are there when this resolves. */
  async borrow(wish: RunWish): Promise<BorrowedSandbox> {
    const { executionId, files, hasSecrets, shareSecrets, maxOutputBytes, signal } = wish
    const checked = files === undefined ? [] : await checkFilesInput(files)
    if (this.#isSyncedApart()) await this.#persisted?.idle()
    const link = this.#open()
    link.assertFree()
    const leave = this.#enter(hasSecrets, shareSecrets)
    this.#isReserved = link.isSerial
    const attributes: SpanAttributes = { exec_id: this.#execId, cmd: 'python', cwd: '' }
    const end = beginSpan('workspace.run', attributes)
    try {
      await putFiles(link, checked, signal)
      const run = openRun(this.#sandbox, link, { executionId, maxOutputBytes })
      attributes.execution_id = run.executionId
      const leaveAtEnd = (): void => {
        leave()
        end()
      }
      return { ...run, release: () => run.sandbox.release().finally(leaveAtEnd) }
    } catch (error) {
      leave()
      end(error)
      throw error
    } finally {
      this.#isReserved = false
    }
  }

  async exec(command: string, args: readonly string[] = [], options: ExecOptions = {}): Promise<ExecResult> {
    this.#assertPrograms()
    const program = checkExec(command, args, options, this.#timeoutSec)
    if (program.program.frame.tty !== null) this.#needSeveral('a terminal', 'use exec without tty')
    if (this.#isSyncedApart()) await this.#persisted?.idle()
    return traceSpan('workspace.run', this.#attributesOf(program.program), async (found) => {
      const { cpus } = program.program
      const leave = this.#enterWith(options)
      let release = (): void => {}
      try {
        if (cpus !== undefined) release = await this.#holdTo(cpus)
        const result = await exec(this.#sandbox, this.#open(), program)
        found.exit_code = result.exitCode
        found.timed_out = result.timedOut
        return result
      } finally {
        release()
        leave()
      }
    })
  }

  async start(command: string, args: readonly string[] = [], options: StartOptions = {}): Promise<Program> {
    this.#assertPrograms()
    const program = checkStart(command, args, options)
    this.#needSeveral('start', 'use exec')
    const { cpus } = program.program
    const leave = this.#enterWith(options)
    let release = (): void => {}
    const attributes = this.#attributesOf(program.program)
    const end = beginSpan('workspace.run', attributes)
    try {
      if (cpus !== undefined) release = await this.#holdTo(cpus)
      const started = await start(this.#sandbox, this.#open(), program)
      const leaveAtEnd = (): void => {
        release()
        leave()
      }
      started.exited.then(leaveAtEnd, leaveAtEnd)
      started.exited.then(({ exitCode, timedOut }) => {
        attributes.exit_code = exitCode
        attributes.timed_out = timedOut
        end()
      }, end)
      return started
    } catch (error) {
      release()
      leave()
      end(error)
      throw error
    }
  }

  dial(port: number): Duplex {
    this.#assertPrograms()
    this.#needSeveral('dial', 'no program can listen beside a connection')
    return dial(this.#open(), port)
  }

  async put(files: FilesInput, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#open()
    await traceSpan('workspace.stage.files', { exec_id: this.#execId }, async (found) => {
      const checked = await checkFilesInput(files)
      found.count = checked.length
      await putFiles(this.#open(), checked, signal)
    })
    this.#persisted?.changed()
  }

  async addInput(name: string, path: string, options: InputOptions = {}): Promise<WorkspaceInput> {
    refuseUnknown('addInput', options, ['readOnly', 'replace', 'noLinks', 'signal'])
    const attributes = { exec_id: this.#execId, host_path: path, to: name }
    return traceSpan('workspace.stage.dir', attributes, async (found) => {
      const input = await this.#addInput(name, path, options)
      found.mount_used = input.how !== 'sent'
      return input
    })
  }

  async #addInput(name: string, path: string, options: InputOptions): Promise<WorkspaceInput> {
    const { readOnly = false, replace = false, noLinks = false, signal } = options
    const input = await checkInput(name, path, signal, noLinks)
    const link = this.#open()
    using _call = link.use()
    const { inputsDir } = this.#sandbox
    if (inputsDir === undefined) {
      if (readOnly) throw changeableError(this.engine)
      const sent = await this.#sendInput(link, input, replace, signal)
      this.#persisted?.changed()
      return sent
    }
    const ended = new AbortController()
    const forget = link.onEnd((error) => ended.abort(error))
    try {
      const signals = [ended.signal, ...(signal === undefined ? [] : [signal])]
      return await showInput(inputsDir, input, AbortSignal.any(signals), { replace })
    } finally {
      forget()
    }
  }

  async get(
    path: string,
    { maxBytes = MAX_GET_BYTES, signal }: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Uint8Array> {
    const maxFileBytes = checkWhole('maxBytes', maxBytes, 0, MOST_GET_BYTES)
    return getFile(this.#open(), checkPath('path', path), { maxFileBytes, maxTotalBytes: null, signal })
  }

  read(path: string, { signal }: { readonly signal?: AbortSignal } = {}): AsyncIterable<Uint8Array> {
    return readFile(this.#open(), checkPath('path', path), { maxFileBytes: null, maxTotalBytes: null, signal })
  }

  async stat(path: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<FileEntry> {
    return statFile(this.#open(), checkDirectory('path', path), signal)
  }

  list(path: string = '', options: ListOptions = {}): AsyncIterable<FileEntry> {
    refuseUnknown('list', options, ['patterns', 'hidden', 'maxEntries', 'signal'])
    return listFiles(this.#open(), checkDirectory('path', path), options)
  }

  async remove(
    path: string,
    { recursive = false, signal }: { readonly recursive?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const question = { type: 'file_remove', path: checkPath('path', path), recursive } as const
    await new Operation(this.#open(), 'a path could not be removed', question, { signal }).awaitDone()
    this.#persisted?.changed()
  }

  async makeDirectory(
    path: string,
    { mode = 0o755, signal }: { readonly mode?: number; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const question = {
      type: 'file_make',
      path: checkPath('path', path),
      mode: checkWhole('mode', mode, 0, 0o777),
    } as const
    await new Operation(this.#open(), 'a directory could not be made', question, { signal }).awaitDone()
    this.#persisted?.changed()
  }

  async digest(
    path: string = '',
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<{ sha256: string; files: number; bytes: number }> {
    const question = { type: 'file_digest', path: checkDirectory('path', path) } as const
    const { result } = await new Operation(this.#open(), 'a path could not be read', question, { signal }).awaitDone()
    const { sha256, files, bytes } = (result ?? {}) as Record<string, unknown>
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
      throw new SandglassError('workspace_io', 'the sandbox gave no SHA-256')
    return { sha256, files: Number(files) || 0, bytes: Number(bytes) || 0 }
  }

  collect(globs: string | readonly string[], options: CollectOptions = {}): AsyncIterable<CollectedEntry> {
    refuseUnknown('collect', options, COLLECT_OPTIONS)
    return this.#traced(globs, collectFiles(this.#open(), globs, checkCollectOptions(options)))
  }

  async save(
    globs: string | readonly string[],
    directory: string,
    options: SaveOptions = {},
  ): Promise<readonly SavedFile[]> {
    refuseUnknown('save', options, [...COLLECT_OPTIONS, 'overwrite'])
    if (typeof directory !== 'string' || directory === '')
      throw invalid('directory', `${formatValue(directory)} is not the path of a directory`)
    const attributes = { exec_id: this.#execId, patterns: [globs].flat(), host_path: directory }
    return traceSpan('workspace.collect', attributes, async (found) => {
      const bounds = checkCollectOptions(options)
      const saved = await saveFiles(this.#open(), globs, directory, bounds, options.overwrite === true)
      found.count = saved.length
      return saved
    })
  }

  close(): Promise<void> {
    return this.#close(closedError())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #sendInput(
    link: Link,
    input: CheckedInput,
    replace: boolean,
    signal: AbortSignal | undefined,
  ): Promise<WorkspaceInput> {
    const inside = `inputs/${input.name}`
    const isTaken = this.#sending.has(inside) || (await isThere(link, inside, signal))
    if (isTaken && !(replace && !this.#sending.has(inside))) throw takenError(input.name)
    this.#sending.add(inside)
    try {
      if (isTaken) await this.remove(inside, { recursive: true, ...(signal === undefined ? {} : { signal }) })
      const sent = await sendInput(link, inside, input, signal)
      return { path: `${INSIDE.workspace}/${inside}`, ...sent }
    } finally {
      this.#sending.delete(inside)
    }
  }

  #close(why: SandglassError): Promise<void> {
    this.#closing ??= {
      why,
      done: traceSpan('workspace.cleanup', { exec_id: this.#execId, path: INSIDE.workspace }, () => this.#end(why)),
    }
    return this.#closing.done
  }

  #attributesOf({ frame }: CheckedProgram): SpanAttributes {
    return { exec_id: this.#execId, cmd: frame.argv[0] ?? '', cwd: frame.cwd }
  }

  /** A collection as a span, from its first file to the last one that the caller wants. */
  async *#traced<T>(globs: string | readonly string[], files: AsyncIterable<T>): AsyncGenerator<T, void, void> {
    const attributes: SpanAttributes = { exec_id: this.#execId, patterns: [globs].flat(), count: 0 }
    const end = beginSpan('workspace.collect', attributes)
    try {
      for await (const file of files) {
        attributes.count = (attributes.count ?? 0) + 1
        yield file
      }
    } catch (error) {
      end(error)
      throw error
    } finally {
      end()
    }
  }

  async #end(why: SandglassError): Promise<void> {
    this.#idle.stop()
    if (this.#persisted !== undefined) await this.#persisted.close()
    this.#link.close(why)
    await this.#destroy()
    this.#claim.free()
  }

  /** Never rejects: the engine's own clean-up finds what is left of a sandbox that could not be ended. */
  async #destroy(): Promise<void> {
    await this.#sandbox.destroy().catch(() => undefined)
  }

  /** @throws SandglassError `workspace_closed`, and `sandbox_busy` while a script that must be alone is about to begin. */
  #open(): Link {
    if (this.#closing !== undefined) throw this.#closing.why
    if (this.#isReserved) throw notAloneError(this.engine)
    return this.#link
  }

  /** @throws SandglassError `workspace_closed`, `invalid_request` without a store. */
  #persistedFiles(what: string): PersistedFiles {
    this.#open()
    if (this.#persisted !== undefined) return this.#persisted
    throw new SandglassError('invalid_request', `${what}: the workspace has no store; open it with persist and store`)
  }

  /** True if a synchronisation under way would keep a script or a program from running. */
  #isSyncedApart(): boolean {
    return this.#persisted !== undefined && this.#link.isSerial
  }

  /** @throws SandglassError `workspace_closed`, `activity_unavailable` where activities run one at a time. */
  #needSeveral(what: string, instead: string): void {
    if (this.#open().isSerial) throw unavailableError(this.engine, what, instead)
  }

  /** @throws SandglassError `workspace_closed`, `activity_unavailable` where the engine has no programs. */
  #assertPrograms(): void {
    this.#open()
    if (this.#noPrograms !== undefined) throw this.#noPrograms
  }

  #enterWith({ secrets = {}, shareSecrets = false }: ProgramOptions): () => void {
    return this.#enter(Object.keys(secrets).length > 0, shareSecrets)
  }

  /** Limits the CPU time of the whole workspace; call the result to end that. @throws SandglassError `limit_not_enforceable` */
  async #holdTo(cpus: number): Promise<() => void> {
    using _call = this.#link.use()
    const lowered = await lowerCpuLimit(this.#sandbox, this.#link, cpus)
    return () => void lowered[Symbol.asyncDispose]().then(undefined, () => undefined)
  }

  /** A script or program begins; call the result at its end. Where activities share memory, one with secrets must be alone. */
  #enter(hasSecrets: boolean, shareSecrets: boolean): () => void {
    const activity = { isPrivate: hasSecrets && !shareSecrets }
    if (this.trust === 'shared' && this.#living.size > 0) {
      if (activity.isPrivate) throw notSeparate('another activity of this workspace could read its secrets')
      if ([...this.#living].some(({ isPrivate }) => isPrivate))
        throw notSeparate('it could read the secrets of another activity of this workspace')
    }
    this.#living.add(activity)
    return () => {
      this.#living.delete(activity)
      this.#persisted?.changed()
    }
  }
}

const COLLECT_OPTIONS = ['maxFiles', 'maxFileBytes', 'maxTotalBytes', 'onSkipped', 'signal']

async function isThere(link: Link, path: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await statFile(link, path, signal)
    return true
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'path_not_found') return false
    throw error
  }
}

function notSeparate(why: string): SandglassError {
  return new SandglassError(
    'secrets_not_separate',
    `${why}, because this machine cannot keep activities apart (trust is "shared"); wait for its end, take a workspace of ` +
      'its own, or allow it with shareSecrets: true on the one with secrets',
  )
}
