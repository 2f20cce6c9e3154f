import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { SandglassError } from '../errors/index.ts'
import { endpointAt, type FilesInput, type ToolEndpoint } from '../executor/index.ts'
import type { WorkspaceLease } from '../persistence/index.ts'
import { claim, INSIDE, type Sandbox } from '../sandbox/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { beginSpan, type SpanAttributes, traceSpan } from '../telemetry/index.ts'
import type { WorkspaceActivities } from './activities.ts'
import type { Activity, ActivityEnd, ActivityHandler } from './activity.ts'
import type { InputOptions, WorkspaceInput } from './add-input.ts'
import { checkDirectory, checkPath } from './check-path.ts'
import {
  checkCollectOptions,
  COLLECT_OPTIONS,
  type CollectedEntry,
  collectFiles,
  type CollectOptions,
} from './collect.ts'
import { digestPath, makeDirectory, type PathDigest, removePath } from './change-paths.ts'
import type { ExecResult } from './exec.ts'
import { checkWhole, closedError, idleError, invalid, notAloneError } from './failures.ts'
import { IdleClock } from './idle-clock.ts'
import { Inputs } from './inputs.ts'
import { Link } from './link.ts'
import { type FileEntry, listFiles, type ListOptions, statFile } from './list-files.ts'
import { Operation, type Question } from './operation.ts'
import { Neighbours } from './neighbours.ts'
import { PersistedFiles, type PersistOptions } from './persisted-files.ts'
import type { Program } from './program.ts'
import type { ExecOptions, StartOptions } from './program-options.ts'
import { Programs } from './programs.ts'
import { checkFilesInput, putFiles } from './put-files.ts'
import { getFile, readFile } from './read-files.ts'
import { openRun, type RunSandbox } from './run.ts'
import { type SavedFile, saveFiles, type SaveOptions } from './save.ts'
import type { Checkpoint, RestoreResult, SyncResult } from './sync-result.ts'

/** The request of a script to run in a workspace. */
export interface BorrowRequest {
  readonly executionId?: string | undefined
  readonly files?: unknown
  readonly hasSecrets: boolean
  readonly shareSecrets: boolean
  readonly maxOutputBytes: number
  /** The group of the session of a cell. */
  readonly group?: object | undefined
  readonly signal?: AbortSignal | undefined
}

/** The sandbox of a script that runs in a workspace. */
export interface BorrowedSandbox {
  readonly sandbox: RunSandbox
  readonly executionId: string
  release(): Promise<void>
}

const DEFAULT_GET_BYTES = 64 * 1024 * 1024
const MAX_GET_BYTES = 2 ** 31
/** A session ends after the rollbacks of its branches, which the sandbox performs one after the other. */
const SESSION_CANCEL_MS = 4000

/** A workspace over a sandbox that it owns. */
export class ActivityWorkspace implements WorkspaceActivities {
  readonly trust: 'separate' | 'shared'
  readonly #sandbox: Sandbox
  readonly #link: Link
  readonly #idle: IdleClock
  readonly #claim: ReturnType<typeof claim>
  /** Its id in spans. */
  readonly #execId: string
  readonly #neighbours: Neighbours
  readonly #programs: Programs
  readonly #inputs: Inputs
  #persisted: PersistedFiles | undefined
  /** True while the files of a script are written that must then run alone: no other activity may begin meanwhile. */
  #isReserved = false
  #closing: { readonly why: SandglassError; readonly done: Promise<void> } | undefined

  /**
   * @param options.timeoutSec the timeout of programs that `exec` runs.
   * @param options.idleTimeoutSec closes it after that time without use.
   * @param options.executionId names it in its spans; default: its id.
   * @param options.noPrograms the error of calls for programs and connections, if the engine has none.
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
    this.#execId = options.executionId ?? sandbox.id
    // With `serial`, activities run one at a time, so that none can reach another.
    this.trust = sandbox.ready.checks['signal_scope'] === 'scan' ? 'shared' : 'separate'
    this.#claim = claim(sandbox)
    this.#idle =
      idleTimeoutSec === undefined
        ? new IdleClock(undefined, () => undefined)
        : new IdleClock(idleTimeoutSec * 1000, () => void this.#close(idleError(idleTimeoutSec)))
    // A sandbox whose channel is lost cannot be used any more.
    const onLost = (error: SandglassError): void => {
      void this.#persisted?.abandon(error)
      void this.#destroy()
    }
    // Without programs, there are no processes that scripts could leave either.
    this.#link = new Link(sandbox, this.#idle, onLost, options.noPrograms === undefined)
    const noteChange = (): void => this.#persisted?.noteChange()
    const open = (): Link => this.#open()
    const execId = this.#execId
    this.#neighbours = new Neighbours(this.trust === 'shared', noteChange)
    this.#inputs = new Inputs({ engine: this.engine, inputsDir: sandbox.inputsDir, open, changed: noteChange })
    this.#programs = new Programs({
      sandbox,
      neighbours: this.#neighbours,
      execId,
      timeoutSec: options.timeoutSec,
      refusal: options.noPrograms,
      open,
      blockingSync: () => this.#blockingSync(),
    })
  }

  /**
   * Restores the files that a store has, and keeps them there from now on. The workspace owns the lease.
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

  /** The memory limit of everything in it. */
  get memoryBytes(): number {
    return this.#sandbox.info.limits.memoryBytes
  }

  /** Resolves when nothing of its sandbox runs any more. Never rejects. */
  get closed(): Promise<unknown> {
    return this.#sandbox.closed
  }

  /** The reason why it is closed; undefined while it is open. */
  get closedBy(): SandglassError | undefined {
    return this.#closing?.why
  }

  /** Keeps it from being idle until the result is disposed of. @throws SandglassError `workspace_closed` */
  use(): Disposable {
    return this.#open().use()
  }

  /** Returns a sandbox for one script, with its files in place. */
  async borrow(request: BorrowRequest): Promise<BorrowedSandbox> {
    const { executionId, files, hasSecrets, shareSecrets, maxOutputBytes, group, signal } = request
    const checked = files === undefined ? [] : await checkFilesInput(files)
    const syncing = this.#blockingSync()
    if (syncing !== undefined) await syncing
    const link = this.#open()
    link.assertFree(group !== undefined)
    const leave = this.#neighbours.enter(hasSecrets, shareSecrets, group)
    this.#isReserved = link.isSerial
    const attributes: SpanAttributes = { exec_id: this.#execId, cmd: 'python', cwd: '' }
    const end = beginSpan('workspace.run', attributes)
    try {
      await putFiles(link, checked, signal)
      const run = openRun(this.#sandbox, link, { executionId, maxOutputBytes, ofSession: group !== undefined })
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

  /**
   * Begins a session. Between two cells, the session does not count as use of the workspace.
   * @param group a key that it shares with its branches.
   * @throws SandglassError as {@link Link.open} does; `secrets_not_separate`
   */
  beginSession(handler: ActivityHandler, group: object): Activity {
    const link = this.#open()
    const leave = this.#neighbours.enter(false, false, group)
    const onEnd = (end: ActivityEnd): void => {
      leave()
      handler.onEnd(end)
    }
    try {
      return link.open(
        { onFrame: (frame, bytes) => handler.onFrame?.(frame, bytes), onEnd },
        { isBackground: true, isResting: true, hasProcesses: true, cancelMs: SESSION_CANCEL_MS },
      )
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Sends a short request to a session. @throws SandglassError for a failure that the sandbox reports */
  async ask(what: string, question: Question, id?: string): Promise<unknown> {
    return (await new Operation(this.#open(), what, question, { id, ofSession: true }).awaitDone()).result
  }

  async exec(command: string, args: readonly string[] = [], options: ExecOptions = {}): Promise<ExecResult> {
    return this.#programs.exec(command, args, options)
  }

  async start(command: string, args: readonly string[] = [], options: StartOptions = {}): Promise<Program> {
    return this.#programs.start(command, args, options)
  }

  dial(port: number): Duplex {
    return this.#programs.dial(port)
  }

  /** The endpoint for tool calls of a script. @throws SandglassError `websocket_unreachable`, `workspace_closed` */
  toolEndpoint(): ToolEndpoint {
    const { address } = this.#sandbox.info
    if (address !== undefined) return endpointAt(address)
    this.#programs.assertCanDial()
    return { host: '127.0.0.1', connect: (port) => this.#programs.dial(port) }
  }

  async put(files: FilesInput, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#open()
    await traceSpan('workspace.stage.files', { exec_id: this.#execId }, async (found) => {
      const checked = await checkFilesInput(files)
      found.count = checked.length
      await putFiles(this.#open(), checked, signal)
    })
    this.#persisted?.noteChange()
  }

  async addInput(name: string, path: string, options: InputOptions = {}): Promise<WorkspaceInput> {
    refuseUnknown('addInput', options, ['readOnly', 'replace', 'noLinks', 'signal'])
    const attributes = { exec_id: this.#execId, host_path: path, to: name }
    return traceSpan('workspace.stage.dir', attributes, async (found) => {
      const input = await this.#inputs.add(name, path, options)
      found.mount_used = input.how !== 'sent'
      return input
    })
  }

  async get(
    path: string,
    { maxBytes = DEFAULT_GET_BYTES, signal }: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Uint8Array> {
    const maxFileBytes = checkWhole('maxBytes', maxBytes, 0, MAX_GET_BYTES)
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
    await removePath(this.#open(), checkPath('path', path), { recursive, signal })
    this.#persisted?.noteChange()
  }

  async makeDirectory(
    path: string,
    { mode = 0o755, signal }: { readonly mode?: number; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const bits = checkWhole('mode', mode, 0, 0o777)
    await makeDirectory(this.#open(), checkPath('path', path), bits, signal)
    this.#persisted?.noteChange()
  }

  async digest(path: string = '', { signal }: { readonly signal?: AbortSignal } = {}): Promise<PathDigest> {
    return digestPath(this.#open(), checkDirectory('path', path), signal)
  }

  collect(globs: string | readonly string[], options: CollectOptions = {}): AsyncIterable<CollectedEntry> {
    refuseUnknown('collect', options, COLLECT_OPTIONS)
    return this.#traceCollection(globs, collectFiles(this.#open(), globs, checkCollectOptions(options)))
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

  #close(why: SandglassError): Promise<void> {
    this.#closing ??= {
      why,
      done: traceSpan('workspace.cleanup', { exec_id: this.#execId, path: INSIDE.workspace }, () => this.#end(why)),
    }
    return this.#closing.done
  }

  /** Traces a collection as a span, from its first file to the last one that the caller reads. */
  async *#traceCollection<T>(
    globs: string | readonly string[],
    files: AsyncIterable<T>,
  ): AsyncGenerator<T, void, void> {
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
    try {
      if (this.#persisted !== undefined) await this.#persisted.close(why)
      this.#link.close(why)
    } finally {
      await this.#destroy()
      this.#claim.free()
    }
  }

  /** Never rejects: the engine's own clean-up finds the remains of a sandbox that could not be ended. */
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

  /** Returns the end of a synchronisation that a script or a program must wait for; undefined if there is none. */
  #blockingSync(): Promise<void> | undefined {
    return this.#link.isSerial ? this.#persisted?.drain() : undefined
  }
}
