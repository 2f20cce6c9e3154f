import type { DependencyRequest } from './dependencies.ts'
import { ENGINE_NAMES, ENGINES, type EngineTable } from './engines/index.ts'
import { ERROR_CODES, type ErrorCode, SandglassError } from './errors/index.ts'
import type { PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult, RunEvent, ToolEndpoint } from './executor/index.ts'
import {
  checkWorkspaceOptions,
  type RunOptions,
  type SandglassOptions,
  type Session,
  type Workspace,
  type WorkspaceOptions,
  type WorkspaceRunOptions,
  type WorkspaceSessionOptions,
} from './options/index.ts'
import { WorkspaceLease } from './persistence/index.ts'
import { limitsOfRun, specOf } from './run-spec.ts'
import {
  assertEnforced,
  DEFAULT_LIMITS,
  INSIDE,
  type ReportReason,
  type ResourceLimits,
  resolveLimits,
  type Sandbox,
  type SandboxCapabilities,
  type SandboxEngine,
  unlessAborted,
} from './sandbox/index.ts'
import { traceSpan } from './telemetry/index.ts'
import { ActivityWorkspace, type BorrowedSandbox, checkFilesInput } from './workspace/index.ts'

/** The part of a Sandglass that its workspaces use. */
export interface WorkspaceOwner {
  readonly options: SandglassOptions
  limitsOf(limits: ResourceLimits | undefined): ResourceLimits
  environmentFor(request: DependencyRequest): Promise<PreparedEnvironment | undefined>
  startIn<T>(
    wanted: DependencyRequest,
    environment: PreparedEnvironment | undefined,
    start: (environment: PreparedEnvironment | undefined) => Promise<T>,
  ): Promise<{ readonly started: T; readonly present: PreparedEnvironment | undefined }>
  run<T>(script: string, run: RunOptions<T>): Promise<ExecutionResult<T>>
  stream<T>(script: string, run: RunOptions<T>): AsyncGenerator<RunEvent<T>, void, void>
  openSession(workspace: Workspace, options?: WorkspaceSessionOptions): Promise<Session>
}

/** A workspace that is open, and the packages in it. */
interface Opened {
  readonly activities: ActivityWorkspace
  readonly environment: PreparedEnvironment | undefined
}

/** The workspaces of one Sandglass. Their sandboxes are their own: none comes from the pool or goes there. */
export class Workspaces {
  readonly #engine: SandboxEngine
  readonly #owner: WorkspaceOwner
  readonly #open = new Map<Workspace, Opened>()
  readonly #closed = new AbortController()
  /** The capabilities of the engine, once a report had workspaces. */
  #capabilities: SandboxCapabilities | undefined
  /** Workspaces that are being opened. */
  readonly #starting = new Set<Promise<unknown>>()

  constructor(engine: SandboxEngine, owner: WorkspaceOwner) {
    this.#engine = engine
    this.#owner = owner
  }

  /** @throws SandglassError `workspaces_unavailable`, `limit_not_enforceable`, `pool_closed`, those of the engine and of the store. */
  open(options: WorkspaceOptions = {}): Promise<Workspace> {
    const attributes = options.executionId === undefined ? {} : { exec_id: options.executionId }
    const starting = traceSpan('workspace.create', attributes, async (found) => {
      const workspace = await this.#start(options)
      found.exec_id ??= workspace.id
      found.path = INSIDE.workspace
      return workspace
    })
    this.#starting.add(starting)
    const forget = (): void => void this.#starting.delete(starting)
    starting.then(forget, forget)
    return starting
  }

  /** True if an open workspace has the packages of this directory. */
  hasUsers(path: string): boolean {
    return [...this.#open.values()].some(({ environment }) => environment?.environment.path === path)
  }

  /** The packages of a workspace. */
  environmentOf(workspace: Workspace): PreparedEnvironment | undefined {
    return this.#openedOf(workspace).environment
  }

  /**
   * The needs of a session in this workspace. `noCheckpoints` makes the error of a call that needs checkpoints; undefined if there are any.
   * @throws SandglassError `workspace_closed`, `invalid_request`; `activity_unavailable` where the engine has no sessions.
   */
  sessionSupportOf(workspace: Workspace): {
    readonly activities: ActivityWorkspace
    readonly memoryBytes: number
    readonly noCheckpoints: ((what: string) => SandglassError) | undefined
  } {
    const { activities } = this.#openedOf(workspace)
    // Set when this workspace was opened.
    const sessions = this.#capabilities?.sessions
    if (sessions === undefined) throw this.#noSessionsError()
    const noCheckpoints = sessions === 'checkpoints' ? undefined : (what: string) => this.#noCheckpointsError(what)
    return { activities, memoryBytes: activities.memoryBytes, noCheckpoints }
  }

  /** Keeps the workspace from timing out as idle until the result is disposed of. @throws SandglassError `workspace_closed`, `invalid_request` */
  use(workspace: Workspace): Disposable {
    return this.#openedOf(workspace).activities.use()
  }

  /** @throws SandglassError `invalid_request` for files that cannot be put into a workspace. */
  async checkFiles(files: WorkspaceOptions['files']): Promise<void> {
    if (files !== undefined) await checkFilesInput(files)
  }

  /** The endpoint for tool calls of a script in a workspace. @throws SandglassError `websocket_unreachable` */
  toolEndpointOf(workspace: Workspace): ToolEndpoint {
    return this.#openedOf(workspace).activities.toolEndpoint()
  }

  /** A sandbox for one script in a workspace. @param group groups the cells of one session and its branches. */
  borrow<T>(workspace: Workspace, run: RunOptions<T>, files: unknown, group?: object): Promise<BorrowedSandbox> {
    const { executionId, secrets = {}, shareSecrets = false, limits, signal } = run
    const { maxOutputBytes = DEFAULT_LIMITS.maxOutputBytes } = this.#owner.limitsOf(limits)
    const hasSecrets = Object.keys(secrets).length > 0
    const request = { executionId, files, hasSecrets, shareSecrets, maxOutputBytes, group, signal }
    return this.#openedOf(workspace).activities.borrow(request)
  }

  /** Closes all of them, also those that are being opened. */
  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.allSettled(this.#starting)
    await Promise.all([...this.#open.keys()].map((workspace) => workspace.close()))
  }

  async #start(options: WorkspaceOptions): Promise<Workspace> {
    checkWorkspaceOptions(options)
    const signal = AbortSignal.any([this.#closed.signal, ...(options.signal === undefined ? [] : [options.signal])])
    this.#assertOpen()
    const { workspaces, programs } = await this.#loadCapabilities(signal)
    if (signal.aborted) throw abortedOpening()
    if (workspaces !== true) throw this.#unavailableError()
    const { persist, store, waitSec = 0 } = options
    if (persist === undefined || store === undefined) return this.#make(options, programs === true, undefined, signal)
    const acquiring = WorkspaceLease.acquire(store, persist, { waitMs: waitSec * 1000, signal })
    const lease = await unlessAborted(acquiring, signal, 'the store was asked for the workspace').catch(
      async (error: unknown) => {
        void acquiring.then((late) => late.release()).catch(() => undefined)
        throw error
      },
    )
    try {
      return await this.#make(options, programs === true, lease, signal)
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  async #make(
    options: WorkspaceOptions,
    hasPrograms: boolean,
    lease: WorkspaceLease | undefined,
    signal: AbortSignal,
  ): Promise<Workspace> {
    const { dependencies, untrustedDependencies: untrusted } = options
    const request: DependencyRequest = { dependencies, untrusted, signal }
    const limits = { ...this.#owner.options.limits, ...options.limits }
    const { started: sandbox, present: environment } = await this.#owner.startIn(
      request,
      await this.#owner.environmentFor(request),
      (packages) =>
        this.#engine.create({ ...specOf(this.#owner.options, options.limits, packages), activities: true }, { signal }),
    )
    const { executionTimeoutSec = DEFAULT_LIMITS.executionTimeoutSec } = limitsOfRun(limits)
    const { idleTimeoutSec, executionId } = options
    const activities = await this.#activitiesOf(sandbox, limits, {
      timeoutSec: executionTimeoutSec,
      idleTimeoutSec,
      executionId,
      noPrograms: hasPrograms ? undefined : this.#noProgramsError(),
    })
    const workspace = this.#workspaceOf(activities)
    this.#open.set(workspace, { activities, environment })
    void activities.closed.then(() => this.#open.delete(workspace))
    const onAbort = (): void => void activities.close()
    signal.addEventListener('abort', onAbort, { once: true })
    void activities.closed.then(() => signal.removeEventListener('abort', onAbort))
    try {
      const { onSyncError: onError = () => undefined } = options
      if (lease !== undefined) {
        const restoring = activities.persist(lease, signal, { maxBytes: resolveLimits(limits).diskBytes, onError })
        await unlessAborted(restoring, signal, 'the store was asked for files')
      }
      if (options.files !== undefined) await activities.put(options.files, { signal })
      if (signal.aborted) throw abortedOpening()
      return workspace
    } catch (error) {
      await activities.close()
      throw error
    }
  }

  /**
   * A report needs a sandbox of its own, so a positive answer is cached.
   * @throws SandglassError the reason for a report that failed: it shows nothing.
   */
  async #loadCapabilities(signal: AbortSignal): Promise<SandboxCapabilities> {
    if (this.#capabilities !== undefined) return this.#capabilities
    const { capabilities, usable, reasons } = await this.#engine.report({ signal })
    if (signal.aborted) throw abortedOpening()
    const failure = usable ? undefined : reasons.find(({ severity }) => severity === 'error')
    if (failure !== undefined) throw errorOf(failure)
    if (capabilities.workspaces === true) this.#capabilities = capabilities
    return capabilities
  }

  async #activitiesOf(
    sandbox: Sandbox,
    limits: SandglassOptions['limits'],
    times: ConstructorParameters<typeof ActivityWorkspace>[1],
  ): Promise<ActivityWorkspace> {
    try {
      assertEnforced(sandbox.info, limits ?? {})
      // An engine of a third party may ignore `activities`.
      if (typeof sandbox.ready.checks['signal_scope'] !== 'string') throw this.#unavailableError()
      return new ActivityWorkspace(sandbox, times)
    } catch (error) {
      await sandbox.destroy()
      throw error
    }
  }

  #workspaceOf(activities: ActivityWorkspace): Workspace {
    const optionsOf = <T>(run: WorkspaceRunOptions<T> = {}): RunOptions<T> => ({ ...run, workspace })
    const workspace: Workspace = Object.assign(activities, {
      run: <T>(script: string, run?: WorkspaceRunOptions<T>) => this.#owner.run<T>(script, optionsOf(run)),
      stream: <T>(script: string, run?: WorkspaceRunOptions<T>) => this.#owner.stream<T>(script, optionsOf(run)),
      session: (given?: WorkspaceSessionOptions) => this.#owner.openSession(workspace, given),
    })
    return workspace
  }

  /** @throws SandglassError `workspace_closed`, `invalid_request` */
  #openedOf(workspace: Workspace): Opened {
    const opened = this.#open.get(workspace)
    if (opened !== undefined) return opened
    if (workspace instanceof ActivityWorkspace)
      throw (
        workspace.closedBy ??
        new SandglassError(
          'workspace_closed',
          'workspace: is closed, or belongs to another Sandglass; open one with sg.workspace()',
        )
      )
    throw new SandglassError('invalid_request', 'workspace: was not made by sg.workspace()')
  }

  #assertOpen(): void {
    if (this.#closed.signal.aborted)
      throw new SandglassError('pool_closed', 'the Sandglass is closed; create another one')
  }

  #unavailableError(): SandglassError {
    return new SandglassError(
      'workspaces_unavailable',
      `the engine ${this.#engine.name} has no workspaces here; engines with workspaces: ${enginesWith('workspaces')} (docs/engines.md)`,
    )
  }

  #noProgramsError(): SandglassError {
    return new SandglassError(
      'activity_unavailable',
      `the engine ${this.#engine.name} has no programs, terminals and connections in workspaces, only scripts, cells and files; engines ` +
        `with programs: ${enginesWith('programs')} (docs/engines.md)`,
    )
  }

  #noSessionsError(): SandglassError {
    return new SandglassError(
      'activity_unavailable',
      `the engine ${this.#engine.name} has no sessions here; engines with sessions: ${enginesWith('sessions')} (docs/engines.md)`,
    )
  }

  #noCheckpointsError(what: string): SandglassError {
    return new SandglassError(
      'checkpoint_unavailable',
      `${what}: sessions of the engine ${this.#engine.name} have no checkpoints here, so the state cannot go back or be copied; engines ` +
        `with checkpoints: ${enginesWith('checkpoints')} (docs/engines.md)`,
    )
  }
}

/** The engines of the table that have workspaces, or something in them, each with its condition. */
function enginesWith(what: 'workspaces' | 'programs' | 'sessions' | 'checkpoints'): string {
  const table: EngineTable = ENGINES
  return ENGINE_NAMES.map((name) => ({ name, answer: table[name]?.[what] ?? 'no' }))
    .filter(({ answer }) => answer !== 'no')
    .map(({ name, answer }) => `${name}${answer.replace(/^yes,?/, '')}`)
    .join(', ')
}

/** The error of a report. Its code may be that of a system call. */
function errorOf({ code, message }: ReportReason): SandglassError {
  const known = Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'sandbox_setup_failed'
  return new SandglassError(known, message)
}

function abortedOpening(): SandglassError {
  return new SandglassError('aborted', 'the workspace was aborted while it was opened')
}
