import { randomUUID } from 'node:crypto'
import { SandglassError } from '../errors/index.ts'
import type { CellEnd, CheckpointState, SessionVariable } from '../executor/index.ts'
import { CAPS } from '../protocol/index.ts'
import { formatValue, truncate } from '../support/index.ts'
import {
  type Activity,
  type ActivityEnd,
  type ActivityHandler,
  type ActivityWorkspace,
  failureOf,
  type Question,
} from '../workspace/index.ts'
import { holdsAnswer, namesAnswer, type Restored, restoredAnswer, variablesAnswer } from './answers.ts'

const MAX_REASON = 500

/** A session in its workspace: one activity that lasts, and its cells, one at a time. */
export class HeldSession implements ActivityHandler {
  /** One object for the session and its branches. */
  readonly group: object
  readonly #workspace: ActivityWorkspace
  readonly #activity: Activity
  readonly #noCheckpoints: MakeRefusal | undefined
  readonly #ready = Promise.withResolvers<void>()
  readonly #over = Promise.withResolvers<void>()
  /** Why no cell can run any more. */
  #ended: SandglassError | undefined
  #isBusy = false
  #count = 0

  private constructor(
    workspace: ActivityWorkspace,
    beginning: Beginning,
    { noCheckpoints, group = {} }: { readonly noCheckpoints?: MakeRefusal | undefined; readonly group?: object },
  ) {
    this.#workspace = workspace
    this.#noCheckpoints = noCheckpoints
    this.group = group
    this.#activity = workspace.beginSession(this, group)
    this.#ready.promise.catch(() => undefined)
    this.#activity.send(beginning)
  }

  /**
   * Begins a session, which is ready for cells when this resolves. An abort of the signal closes it, then and later.
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
        throw new SandglassError('aborted', 'the session was aborted while it was made', { cause: error })
      throw error
    }
    return session
  }

  /** The id of its activity. */
  get id(): string {
    return this.#activity.id
  }

  /** Why no cell can run any more; undefined while one can. */
  get endedBy(): SandglassError | undefined {
    return this.#ended
  }

  /** Resolves when nothing of it runs any more. Never rejects. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  /**
   * Takes the turn of a cell or an operation.
   * @returns `count`, the number of a new cell, and `leave`, which ends the turn.
   * @throws SandglassError `session_closed`, `session_lost`, `sandbox_busy`
   */
  take(): { readonly count: () => number; readonly leave: () => void } {
    if (this.#ended !== undefined) throw this.#ended
    if (this.#isBusy)
      throw new SandglassError(
        'sandbox_busy',
        'another cell or operation of this session is under way; wait for its end, or interrupt a cell with interrupt()',
      )
    this.#isBusy = true
    return {
      count: () => (this.#count += 1),
      leave: () => {
        this.#isBusy = false
      },
    }
  }

  /** @throws SandglassError `checkpoint_unavailable`, naming what needs checkpoints, where the engine has none. */
  assertCheckpoints(what: string): void {
    if (this.#noCheckpoints !== undefined) throw this.#noCheckpoints(what)
  }

  /** Keeps the present state. @returns the id of the checkpoint, and its content. @throws SandglassError `checkpoint_unavailable` */
  async checkpoint(): Promise<CheckpointState & { readonly id: string }> {
    this.assertCheckpoints('checkpoint()')
    const id = randomUUID()
    return {
      ...holdsAnswer.parse(await this.#ask('checkpoint', { type: 'session_checkpoint', session: this.id }, id)),
      id,
    }
  }

  /** Makes the state that of a checkpoint. @throws SandglassError `checkpoint_unavailable` */
  async restore(checkpoint: string): Promise<Restored> {
    this.assertCheckpoints('restore()')
    assertPossibleId(checkpoint)
    return restoredAnswer.parse(await this.#ask('restore', { type: 'session_restore', session: this.id, checkpoint }))
  }

  /** Ends a checkpoint. @throws SandglassError `checkpoint_unavailable` */
  async release(checkpoint: string): Promise<void> {
    this.assertCheckpoints('release()')
    assertPossibleId(checkpoint)
    await this.#ask('release', { type: 'session_release', session: this.id, checkpoint })
  }

  async variables(): Promise<readonly SessionVariable[]> {
    const question = { type: 'session_look', session: this.id, code: null, cursor: 0 } as const
    return variablesAnswer.parse(await this.#ask('variables', question))
  }

  /** The names that complete a text. */
  async complete(code: string): Promise<readonly string[]> {
    const question = { type: 'session_look', session: this.id, code, cursor: code.length } as const
    return namesAnswer.parse(await this.#ask('complete', question))
  }

  /** Begins sessions with the present state. @throws SandglassError `checkpoint_unavailable`; then none of them is left. */
  async branch(count: number): Promise<readonly HeldSession[]> {
    this.assertCheckpoints('branch()')
    const { leave } = this.take()
    const question = { type: 'session_branch', session: this.id, checkpoint: null } as const
    const branches: HeldSession[] = []
    try {
      using _branching = this.#workspace.use()
      while (branches.length < count) branches.push(new HeldSession(this.#workspace, question, { group: this.group }))
      await Promise.all(branches.map((branch) => branch.#ready.promise))
      // Cells are counted on, so that their names stay apart.
      for (const branch of branches) branch.#count = this.#count
      return branches
    } catch (error) {
      await Promise.all(branches.map((branch) => branch.close()))
      throw error
    } finally {
      leave()
    }
  }

  async #ask(what: string, question: Question, id?: string): Promise<unknown> {
    const { leave } = this.take()
    try {
      return await this.#workspace.ask(what, question, id)
    } catch (error) {
      throw this.#ended ?? error
    } finally {
      leave()
    }
  }

  /** Notes how a cell left the session. */
  noteEnd(end: CellEnd, why: string): void {
    if (end.state !== 'lost') return
    this.#end(lostError(`cell ${this.#count} ${why}, and there was no checkpoint: ${end.checkpoint.lacks.join(', ')}`))
    // The end of a cell that was not confirmed leaves the session in an unknown state.
    if (!this.#activity.isOver) this.#activity.cancel()
  }

  interrupt(): void {
    if (this.#ended !== undefined) throw this.#ended
    this.#activity.send({ type: 'interrupt' })
  }

  /** Ends it and all that it started. Idempotent; never rejects. */
  close(): Promise<void> {
    this.#activity.cancel()
    this.#end(new SandglassError('session_closed', 'the session is closed; open another one with sg.session()'))
    return this.#over.promise
  }

  onFrame(frame: { readonly type: string }): void {
    if (frame.type === 'session_ready') this.#ready.resolve()
  }

  onEnd(end: ActivityEnd): void {
    this.#end(this.#reasonOf(end))
    this.#over.resolve()
  }

  #reasonOf(end: ActivityEnd): SandglassError {
    if ('lost' in end) return end.lost
    const { error } = end.done
    if (error !== null && error.code !== 'lost') return failureOf('session', error)
    return lostError(error === null ? 'its process ended' : truncate(error.message, MAX_REASON))
  }

  #end(why: SandglassError): void {
    this.#ended ??= why
    this.#ready.reject(this.#ended)
  }
}

/** Makes the error of an operation that needs checkpoints. */
type MakeRefusal = (what: string) => SandglassError

/** The frame that begins a session. */
type Beginning = Extract<Question, { type: 'session' | 'session_branch' }>

/** Options of {@link HeldSession.open}. */
export interface HeldSessionOptions {
  /** True if a copy is kept while each cell runs. */
  readonly checkpoints: boolean
  /** Set where the engine has cells alone. */
  readonly noCheckpoints?: MakeRefusal | undefined
  /** The memory limit of its sandbox, in bytes. */
  readonly memoryBytes: number
  readonly signal?: AbortSignal | undefined
}

/** A broker ends its sandbox after a frame with another id. @throws SandglassError `checkpoint_unavailable` */
function assertPossibleId(checkpoint: string): void {
  if (checkpoint === '' || checkpoint.length > CAPS.executionId || !checkpoint.isWellFormed())
    throw new SandglassError('checkpoint_unavailable', `the session has no checkpoint ${formatValue(checkpoint)}`)
}

function lostError(why: string): SandglassError {
  return new SandglassError('session_lost', `the state of the session is lost: ${why}`)
}
