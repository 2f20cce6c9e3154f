import { SandglassError } from './errors/index.ts'
import type { CellEnd, CellTurn, ExecutionResult, RunEvent, SessionVariable } from './executor/index.ts'
import {
  checkBranchCount,
  checkCellOptions,
  checkCheckpointName,
  checkCursor,
  checkpointIdOf,
  checkSessionOptions,
  type CellEvent,
  type CellOptions,
  type CellResult,
  partsOfSessionOptions,
  type RestoredState,
  type RunOptions,
  runOptionsOf,
  type Session,
  type SessionCheckpoint,
  type SessionOptions,
  type Workspace,
  type WorkspaceSessionOptions,
} from './options/index.ts'
import { Redactor } from './redaction/index.ts'
import { addHidden, HeldSession } from './session/index.ts'
import { definedOf, formatValue, refuseUnknown } from './support/index.ts'
import type { Workspaces } from './workspaces.ts'

/** Runs cells: the part of a Sandglass that sessions need. */
export interface CellRunner {
  runCell(cell: string, options: RunOptions, turn: CellTurn): Promise<ExecutionResult>
  streamCell(cell: string, options: RunOptions, turn: CellTurn): AsyncGenerator<RunEvent, void, void>
}

/** The sessions of one Sandglass. Their workspaces close with it. */
export class Sessions {
  readonly #workspaces: Workspaces
  readonly #runner: CellRunner

  constructor(workspaces: Workspaces, runner: CellRunner) {
    this.#workspaces = workspaces
    this.#runner = runner
  }

  /**
   * Opens a session with a workspace of its own, which is closed with it.
   * @throws SandglassError as `Workspaces.open` does; `activity_unavailable`
   */
  async open(options: SessionOptions = {}): Promise<Session> {
    const { session, workspace: wanted } = partsOfSessionOptions(options)
    checkSessionOptions(session)
    const workspace = await this.#workspaces.open(wanted)
    try {
      const held = await this.#hold(workspace, { ...session, ...definedOf(options, ['signal']) })
      return new WorkspaceSession(held, workspace, this.#runner, session, () => workspace.close())
    } catch (error) {
      await workspace.close()
      throw error
    }
  }

  /** Opens a session in a workspace. Programs of the workspace continue to run. @throws SandglassError `activity_unavailable`, `workspace_closed` */
  async openIn(workspace: Workspace, options: WorkspaceSessionOptions = {}): Promise<Session> {
    checkSessionOptions(options)
    const held = await this.#hold(workspace, options)
    return new WorkspaceSession(held, workspace, this.#runner, options, () => held.close())
  }

  /**
   * The workspace of a session, and the defaults of its cells.
   * @throws SandglassError `invalid_request` for one of another Sandglass; the reason why the session has ended.
   */
  settingsOf(session: Session): SessionSettings {
    if (!(session instanceof WorkspaceSession) || !session.isOf(this.#runner)) throw foreignSessionError()
    return session.settings()
  }

  /**
   * Reserves the session for a cell that the caller runs itself.
   * @throws SandglassError `sandbox_busy`, `session_closed`, `session_lost`, `invalid_request`, `checkpoint_unavailable`
   */
  turnOf(session: Session, onError: 'keep' | 'rollback'): TakenTurn {
    if (!(session instanceof WorkspaceSession)) throw foreignSessionError()
    return session.take(onError)
  }

  /** The reason why a session was lost, if it is known. Resolves when its processes have ended. */
  async lossOf(session: Session): Promise<string | undefined> {
    if (!(session instanceof WorkspaceSession)) throw foreignSessionError()
    return session.loss
  }

  #hold(
    workspace: Workspace,
    { checkpoints = 'auto', onError, signal }: WorkspaceSessionOptions,
  ): Promise<HeldSession> {
    const { activities, memoryBytes, noCheckpoints } = this.#workspaces.sessionSupportOf(workspace)
    if (onError === 'rollback' && noCheckpoints !== undefined) throw noCheckpoints(ROLLBACK)
    const keepsThem = checkpoints === 'auto' && noCheckpoints === undefined
    return HeldSession.open(activities, { checkpoints: keepsThem, noCheckpoints, memoryBytes, signal })
  }
}

/** The workspace of a session, and the defaults of its cells. */
export interface SessionSettings {
  readonly workspace: Workspace
  readonly defaults: Pick<CellOptions, 'tools' | 'toolLimits'>
  readonly onError: 'keep' | 'rollback'
}

function foreignSessionError(): SandglassError {
  return new SandglassError('invalid_request', 'session: was not made by this Sandglass; open one with its session()')
}

/** The turn of one cell. Call `leave` to end it, and tell whether the cell was refused. */
export interface TakenTurn {
  readonly turn: CellTurn
  readonly leave: (isRefused?: boolean) => void
}

/** A session in a workspace. */
class WorkspaceSession implements Session {
  readonly #held: HeldSession
  readonly #workspace: Workspace
  readonly #runner: CellRunner
  readonly #defaults: WorkspaceSessionOptions
  readonly #end: () => Promise<void>
  /** Its checkpoints by id, the oldest first. */
  readonly #kept = new Map<string, SessionCheckpoint>()
  #missing: readonly string[] = []
  /** The secrets and hidden values of all cells so far, because variables can hold them. One per object: a name can have had several. */
  #hidden: readonly Readonly<Record<string, string>>[] = []

  constructor(
    held: HeldSession,
    workspace: Workspace,
    runner: CellRunner,
    defaults: WorkspaceSessionOptions,
    end: () => Promise<void>,
  ) {
    this.#held = held
    this.#workspace = workspace
    this.#runner = runner
    this.#defaults = defaults
    this.#end = end
  }

  get id(): string {
    return this.#held.id
  }

  get missing(): readonly string[] {
    return this.#missing
  }

  /** The reason why its state was lost, if it is known, when its processes have ended. */
  get loss(): Promise<string | undefined> {
    return this.#held.over.then(() => this.#held.loss)
  }

  isOf(runner: CellRunner): boolean {
    return this.#runner === runner
  }

  /** @throws SandglassError `session_closed`, `session_lost` */
  settings(): SessionSettings {
    if (this.#held.endedBy !== undefined) throw this.#held.endedBy
    const { onError = 'keep' } = this.#defaults
    return { workspace: this.#workspace, defaults: definedOf(this.#defaults, ['tools', 'toolLimits']), onError }
  }

  /** @throws SandglassError `sandbox_busy`, `session_closed`, `session_lost`, `checkpoint_unavailable` */
  take(onError: 'keep' | 'rollback', onEnd?: (end: CellEnd) => void): TakenTurn {
    if (onError === 'rollback') this.#held.assertCheckpoints(ROLLBACK)
    const { beginCell, leave } = this.#held.take()
    const { id: session, group } = this.#held
    const note = (end: CellEnd): void => this.#held.noteEnd(end, 'was ended')
    const onSent = (): void => this.#held.noteSent()
    const turn = { session, group, number: beginCell(), onError, hidden: this.#hidden, onSent, onEnd: onEnd ?? note }
    return { turn, leave }
  }

  async run(cell: string, options: CellOptions = {}): Promise<CellResult> {
    const started = this.#begin(cell, options)
    try {
      return started.finish(await this.#runner.runCell(cell, started.options, started.turn))
    } finally {
      started.leave()
    }
  }

  async *stream(cell: string, options: CellOptions = {}): AsyncGenerator<CellEvent, void, void> {
    const started = this.#begin(cell, options)
    try {
      for await (const event of this.#runner.streamCell(cell, started.options, started.turn)) {
        started.accept()
        yield event.type === 'result' ? { ...event, result: started.finish(event.result) } : event
      }
    } finally {
      started.leave()
    }
  }

  async interrupt(): Promise<void> {
    this.#held.interrupt()
  }

  async checkpoint(name?: string, options: { readonly files?: boolean } = {}): Promise<SessionCheckpoint> {
    checkCheckpointName(name)
    refuseUnknown('checkpoint', options, FILES_OPTION)
    const storeFiles = async (signal: AbortSignal): Promise<string | null> =>
      options.files === true ? (await this.#workspace.checkpoint({ signal })).id : null
    const { id, grade, lacks, files } = await this.#held.checkpoint(storeFiles)
    const redactor = this.#redactor()
    const kept = { id, name: name ?? null, grade, lacks: lacks.map((text) => redactor.text(text)), files }
    this.#kept.set(id, kept)
    return kept
  }

  async restore(
    checkpoint: SessionCheckpoint | string,
    options: { readonly files?: boolean } = {},
  ): Promise<RestoredState> {
    refuseUnknown('restore', options, FILES_OPTION)
    const { files = false } = options
    const { id, files: stored } = this.#find(checkpoint, 'restore()')
    if (files && stored === null)
      throw new SandglassError(
        'invalid_request',
        'files: this checkpoint has no files; make it with checkpoint(name, { files: true })',
      )
    const {
      ended,
      missing,
      checkpoint: state,
    } = await this.#held.restore(id, async (signal) => {
      if (files && stored !== null) await this.#workspace.restore(stored, { signal })
    })
    const redactor = this.#redactor()
    const redactAll = (texts: readonly string[]): string[] => texts.map((text) => redactor.text(text))
    const kept = files ? SHARED_STAYS : FILES_STAY
    return {
      ended: redactAll(ended),
      missing: [...redactAll(missing), kept],
      checkpoint: { ...state, lacks: redactAll(state.lacks) },
    }
  }

  async release(checkpoint: SessionCheckpoint | string): Promise<void> {
    const { id } = this.#find(checkpoint, 'release()')
    await this.#held.release(id)
    this.#kept.delete(id)
  }

  /** @throws SandglassError `invalid_request`, `checkpoint_unavailable`, `session_closed`, `session_lost` */
  #find(checkpoint: SessionCheckpoint | string, what: string): SessionCheckpoint {
    const wanted = checkpointIdOf(checkpoint)
    const all = [...this.#kept.values()]
    const named = typeof checkpoint === 'string' ? all.findLast(({ name }) => name === wanted) : undefined
    const found = this.#kept.get(wanted) ?? named
    if (found !== undefined) return found
    if (this.#held.endedBy !== undefined) throw this.#held.endedBy
    this.#held.assertCheckpoints(what)
    throw unknownCheckpointError(wanted, all)
  }

  async branch(count: number): Promise<Session[]> {
    checkBranchCount(count)
    const held = await this.#held.branch(count)
    const redactor = this.#redactor()
    return held.map((branch) => {
      const session = new WorkspaceSession(branch, this.#workspace, this.#runner, this.#defaults, () => branch.close())
      session.#hidden = this.#hidden
      session.#missing = branch.missing.map((text) => redactor.text(text))
      return session
    })
  }

  async variables(): Promise<SessionVariable[]> {
    const found = await this.#held.variables()
    const redactor = this.#redactor()
    return found.map(({ name, type, ...sizes }) => ({ name: redactor.text(name), type: redactor.text(type), ...sizes }))
  }

  async complete(code: string, given?: number): Promise<string[]> {
    const cursor = checkCursor(code, given)
    const names = await this.#held.complete(code.slice(Math.max(0, cursor - COMPLETED_CHARS), cursor))
    const redactor = this.#redactor()
    return names.map((name) => redactor.text(name))
  }

  /** Make one for a whole answer: one for each of its up to 800 texts would block the event loop. */
  #redactor(): Redactor {
    return new Redactor(...this.#hidden)
  }

  async close(): Promise<void> {
    // `#end` also ends what this leaves, so nothing waits for it.
    void this.#held.close()
    await this.#end()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #begin(cell: string, options: CellOptions): StartedCell {
    checkCellOptions(cell, options)
    const given = { ...this.#defaultsOfCells(), ...options }
    const hidden = addHidden(this.#hidden, options.hide, options.secrets)
    let end: CellEnd | undefined
    const { turn, leave } = this.take(given.onError ?? 'keep', (it) => (end = it))
    const { number } = turn
    let isRefused = true
    this.#hidden = hidden
    return {
      options: { ...runOptionsOf(given), workspace: this.#workspace },
      turn,
      accept: () => void (isRefused = false),
      leave: () => {
        if (end !== undefined) this.#held.noteEnd(end, 'was ended') // also of a cell whose loop was left
        leave(isRefused)
      },
      finish: (result) => {
        isRefused = false
        // Without an end, the cell was cancelled before it began, and changed nothing.
        const known = end ?? this.#describeUntouched()
        this.#held.noteEnd(known, `ended as ${result.status}`)
        return { ...result, ...known, number }
      },
    }
  }

  #describeUntouched(): CellEnd {
    const { grade, lacks } = this.#held.state
    const redactor = this.#redactor()
    const checkpoint = { grade, lacks: lacks.map((text) => redactor.text(text)) }
    return { value: null, state: 'kept', checkpoint, missing: [], ended: [] }
  }

  #defaultsOfCells(): CellOptions {
    return definedOf(this.#defaults, ['tools', 'toolLimits', 'timeoutSec', 'maxOutputBytes', 'onError'])
  }
}

const ROLLBACK = "onError: 'rollback'"
const FILES_STAY = 'files, shared memory and the effects of host tools were not rolled back'
const SHARED_STAYS = 'shared memory and the effects of host tools were not rolled back'
const COMPLETED_CHARS = 2000
const FILES_OPTION = ['files']

function unknownCheckpointError(wanted: string, kept: readonly SessionCheckpoint[]): SandglassError {
  const names = [...new Set(kept.flatMap(({ name }) => (name === null ? [] : [formatValue(name)])))]
  const known = names.length === 0 ? '' : `; the names of its checkpoints are ${names.join(', ')}`
  return new SandglassError('checkpoint_unavailable', `the session has no checkpoint ${formatValue(wanted)}${known}`)
}

interface StartedCell {
  readonly options: RunOptions
  readonly turn: CellTurn
  /** Keeps the number for this cell: its caller has an event of it. */
  readonly accept: () => void
  readonly leave: () => void
  readonly finish: (result: ExecutionResult) => CellResult
}
