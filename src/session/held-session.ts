import { randomUUID } from 'node:crypto'
import { SandglassError } from '../errors/index.ts'
import type { CellEnd, CellGroup, CheckpointState, SessionVariable } from '../executor/index.ts'
import type { HarnessActivityFrame } from '../protocol/index.ts'
import { truncate } from '../support/index.ts'
import {
  type Activity,
  type ActivityEnd,
  type ActivityHandler,
  type ActivityWorkspace,
  failureOf,
  type Question,
} from '../workspace/index.ts'
import { checkpointAnswer, namesAnswer, type Restored, restoredAnswer, variablesAnswer } from './answers.ts'

const MAX_REASON = 500

/** A session in a workspace: one long-lived activity that runs cells, one at a time. */
export class HeldSession implements ActivityHandler {
  /** One object for the session and its branches. */
  readonly group: CellGroup
  readonly #workspace: ActivityWorkspace
  readonly #activity: Activity
  readonly #noCheckpoints: MakeRefusal | undefined
  readonly #ready = Promise.withResolvers<void>()
  readonly #over = Promise.withResolvers<void>()
  /** Fires when no further cell can run. */
  readonly #ending = new AbortController()
  /** The error of further cells; undefined while cells can run. */
  #ended: SandglassError | undefined
  #loss: string | undefined
  #missing: readonly string[] = []
  #isBusy = false
  #count = 0
  /** The current cell: `interrupted` if an interrupt waits for its request to be sent. */
  #cell: 'none' | 'begun' | 'interrupted' | 'sent' = 'none'
  #state: CheckpointState = { grade: 'none', lacks: [] }

  private constructor(
    workspace: ActivityWorkspace,
    beginning: Beginning,
    {
      noCheckpoints,
      group = { displaysBytes: 0 },
    }: { readonly noCheckpoints?: MakeRefusal | undefined; readonly group?: CellGroup },
  ) {
    this.#workspace = workspace
    this.#noCheckpoints = noCheckpoints
    this.group = group
    this.#activity = workspace.beginSession(this, group)
    this.#ready.promise.catch(() => undefined)
    this.#activity.send(beginning)
  }

  /**
   * Begins a session. Resolves when it is ready for cells. An abort of the signal closes it, also later.
   * @throws SandglassError `activity_unavailable`, `sandbox_busy`, `workspace_closed`, `workspace_lost`, `aborted`
   */
  static async open(workspace: ActivityWorkspace, options: HeldSessionOptions): Promise<HeldSession> {
    const { checkpoints, memoryBytes, signal } = options
    using _opening = workspace.use()
    const session = new HeldSession(
      workspace,
      { type: 'session', limits: {}, checkpoints, memory_bytes: memoryBytes },
      options,
    )
    const onAbort = (): void => void session.close()
    signal?.addEventListener('abort', onAbort, { once: true })
    void session.over.then(() => signal?.removeEventListener('abort', onAbort))
    if (signal?.aborted === true) onAbort()
    try {
      await session.#ready.promise
    } catch (error) {
      if (signal?.aborted === true)
        throw new SandglassError('aborted', 'the session was aborted while it was opened', { cause: error })
      throw error
    }
    return session
  }

  /** The id of its activity. */
  get id(): string {
    return this.#activity.id
  }

  /** The error of further cells; undefined while cells can run. */
  get endedBy(): SandglassError | undefined {
    return this.#ended
  }

  /** The reason why its state was lost; undefined if it was not, or if nobody knows. */
  get loss(): string | undefined {
    return this.#loss
  }

  /** Descriptions of the state that a branch lacks; not redacted. */
  get missing(): readonly string[] {
    return this.#missing
  }

  /** The state that a rollback of the next cell would restore; not redacted. */
  get state(): CheckpointState {
    return this.#state
  }

  /** Resolves when all its processes have ended. Never rejects. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  /**
   * Reserves the session for one cell or operation.
   * @returns `beginCell`, which returns the number of a new cell, and `leave`, which ends the turn. With `isRefused`, the number of a
   * cell that was not sent belongs to the next one.
   * @throws SandglassError `session_closed`, `session_lost`, `sandbox_busy`
   */
  take(): { readonly beginCell: () => number; readonly leave: (isRefused?: boolean) => void } {
    if (this.#ended !== undefined) throw this.#ended
    if (this.#isBusy)
      throw new SandglassError(
        'sandbox_busy',
        'another cell or operation of this session is under way; wait for its end, or interrupt a cell with interrupt()',
      )
    this.#isBusy = true
    return {
      beginCell: () => {
        this.#cell = 'begun'
        return (this.#count += 1)
      },
      leave: (isRefused = false) => {
        if (isRefused && this.#cell !== 'none' && this.#cell !== 'sent') this.#count -= 1
        this.#isBusy = false
        this.#cell = 'none'
      },
    }
  }

  /** @param what the call that needs checkpoints. @throws SandglassError `checkpoint_unavailable` if the engine has none. */
  assertCheckpoints(what: string): void {
    if (this.#noCheckpoints !== undefined) throw this.#noCheckpoints(what)
  }

  /**
   * Copies the current state.
   * @param storeFiles stores the files that belong to it, before another cell or operation can begin. If it fails, the copy is released.
   * @throws SandglassError `checkpoint_unavailable`, and what `storeFiles` throws
   */
  async checkpoint<T>(
    storeFiles: (signal: AbortSignal) => Promise<T>,
  ): Promise<CheckpointState & { readonly id: string; readonly files: T }> {
    this.assertCheckpoints('checkpoint()')
    return this.#inTurn(async () => {
      const id = randomUUID()
      const question = { type: 'session_checkpoint', session: this.id } as const
      const state = checkpointAnswer.parse(await this.#ask('checkpoint', question, id))
      try {
        return { ...state, id, files: await storeFiles(this.#ending.signal) }
      } catch (error) {
        // Nobody gets its id. The release fails if the session has ended.
        await this.#release(id).catch(() => undefined)
        throw this.#ended ?? error
      }
    })
  }

  /**
   * Goes back to the state of a checkpoint.
   * @param restoreFiles restores the files that belong to it, before another cell or operation can begin.
   * @throws SandglassError `checkpoint_unavailable`, and what `restoreFiles` throws
   */
  async restore(checkpoint: string, restoreFiles: (signal: AbortSignal) => Promise<void>): Promise<Restored> {
    this.assertCheckpoints('restore()')
    return this.#inTurn(async () => {
      const question = { type: 'session_restore', session: this.id, checkpoint } as const
      const restored = restoredAnswer.parse(await this.#ask('restore', question))
      this.#state = restored.checkpoint
      await restoreFiles(this.#ending.signal).catch((error: unknown) => {
        throw this.#ended ?? error
      })
      return restored
    })
  }

  /** Releases a checkpoint. @throws SandglassError `checkpoint_unavailable` */
  async release(checkpoint: string): Promise<void> {
    this.assertCheckpoints('release()')
    await this.#inTurn(() => this.#release(checkpoint))
  }

  async #release(checkpoint: string): Promise<void> {
    await this.#ask('release', { type: 'session_release', session: this.id, checkpoint })
  }

  async variables(): Promise<readonly SessionVariable[]> {
    const question = { type: 'session_look', session: this.id, code: null, cursor: 0 } as const
    return variablesAnswer.parse(await this.#inTurn(() => this.#ask('variables', question)))
  }

  /** Returns the names that complete a piece of code. */
  async complete(code: string): Promise<readonly string[]> {
    const question = { type: 'session_look', session: this.id, code, cursor: code.length } as const
    return namesAnswer.parse(await this.#inTurn(() => this.#ask('complete', question)))
  }

  /** Begins sessions with the current state. If one fails, all are closed. @throws SandglassError `checkpoint_unavailable` */
  async branch(count: number): Promise<readonly HeldSession[]> {
    this.assertCheckpoints('branch()')
    const { leave } = this.take()
    const question = { type: 'session_branch', session: this.id, checkpoint: null } as const
    const branches: HeldSession[] = []
    try {
      using _branching = this.#workspace.use()
      while (branches.length < count) branches.push(new HeldSession(this.#workspace, question, { group: this.group }))
      await Promise.all(branches.map((branch) => branch.#ready.promise))
      // Branches continue the count, so that the names of cells stay distinct.
      for (const branch of branches) branch.#count = this.#count
      return branches
    } catch (error) {
      await Promise.all(branches.map((branch) => branch.close()))
      throw error
    } finally {
      leave()
    }
  }

  /** Does something while no cell and no other operation can begin. */
  async #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const { leave } = this.take()
    try {
      return await act()
    } finally {
      leave()
    }
  }

  async #ask(what: string, question: Question, id?: string): Promise<unknown> {
    try {
      return await this.#workspace.ask(what, question, id)
    } catch (error) {
      throw this.#ended ?? error
    }
  }

  /** Ends the session if a cell lost its state. @param why how the cell ended, after its number. */
  noteEnd(end: CellEnd, why: string): void {
    this.#state = end.checkpoint
    if (end.state !== 'lost') return
    this.#endAsLost(`cell ${this.#count} ${why}, and there was no checkpoint: ${end.checkpoint.lacks.join(', ')}`)
    // If the end of the cell was not confirmed, the state of the session is unknown.
    if (!this.#activity.isOver) this.#activity.cancel()
  }

  /** Notes that the request of the current cell is on its way, and sends an interrupt that came before it. */
  noteSent(): void {
    const isInterrupted = this.#cell === 'interrupted'
    this.#cell = 'sent'
    if (isInterrupted && this.#ended === undefined) this.interrupt()
  }

  /** Interrupts the current cell. The sandbox knows a cell from its request on; an interrupt that comes earlier waits for it. */
  interrupt(): void {
    if (this.#ended !== undefined) throw this.#ended
    if (this.#cell === 'sent') this.#activity.send({ type: 'interrupt' })
    else if (this.#cell === 'begun') this.#cell = 'interrupted'
  }

  /** Ends the session and all its processes. Idempotent; never rejects. */
  close(): Promise<void> {
    this.#activity.cancel()
    this.#end(closedError())
    return this.#over.promise
  }

  onFrame(frame: HarnessActivityFrame): void {
    if (frame.type !== 'session_ready') return
    this.#state = frame.checkpoint
    this.#missing = frame.missing ?? []
    this.#ready.resolve()
  }

  onEnd(end: ActivityEnd): void {
    this.#endBy(end)
    this.#over.resolve()
  }

  #endBy(end: ActivityEnd): void {
    if ('lost' in end) return this.#end(end.lost)
    const { error, ending } = end.done
    // Its workspace has ended it.
    if (error?.code === 'cancelled' || (error === null && ending?.cause === 'cancelled'))
      return this.#end(closedError())
    if (error !== null && error.code !== 'lost') return this.#end(failureOf('session', error))
    this.#endAsLost(error === null ? 'its process ended' : truncate(error.message, MAX_REASON))
  }

  #endAsLost(reason: string): void {
    if (this.#ended === undefined) this.#loss = reason
    this.#end(lostError(reason))
  }

  #end(reason: SandglassError): void {
    this.#ended ??= reason
    this.#ending.abort()
    this.#ready.reject(this.#ended)
  }
}

/** Makes the error of an operation that needs checkpoints. */
type MakeRefusal = (what: string) => SandglassError

/** The frame that begins a session. */
type Beginning = Extract<Question, { type: 'session' | 'session_branch' }>

/** Options of {@link HeldSession.open}. */
export interface HeldSessionOptions {
  /** True to keep a copy of the process while each cell runs. */
  readonly checkpoints: boolean
  /** Set if the engine's sessions have no checkpoints. */
  readonly noCheckpoints?: MakeRefusal | undefined
  /** The memory limit of its sandbox, in bytes. */
  readonly memoryBytes: number
  readonly signal?: AbortSignal | undefined
}

function lostError(reason: string): SandglassError {
  return new SandglassError('session_lost', `the state of the session is lost: ${reason}; open another session`)
}

function closedError(): SandglassError {
  return new SandglassError('session_closed', 'the session is closed; open another one with sg.session()')
}
