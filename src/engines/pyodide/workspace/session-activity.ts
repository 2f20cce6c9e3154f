import { CAPS, type HostActivityFrame, LineSplitter } from '../../../protocol/index.ts'
import type { GuestProcess } from '../guest-interface.ts'
import { countsOf, GuestOutput } from '../guest-output.ts'
import type { GuestRun } from '../guest-run.ts'
import type { Outbox } from '../outbox.ts'
import type { Spare } from '../spare.ts'
import { type IncomingFiles, packOutgoing, type OutgoingFiles } from './carried-files.ts'
import { parseLookAnswer } from './look-answer.ts'
import type { FileNode, WorkspaceTree } from './tree.ts'

type LookFrame = Extract<HostActivityFrame, { type: 'session_look' }>
type Failure = { readonly code: string; readonly message: string }

/** The reason why there is no checkpoint. */
export const NO_COPIES = 'WebAssembly has no processes that could be copied'
const CHECKPOINT = { grade: 'none', lacks: [NO_COPIES] } as const
/** The timeout of code that lists variables or completes a name. `CAPS.graceMs` later the instance is killed. */
const LOOK_MS = 1500
const MAX_LOOK_BYTES = 1024 * 1024

/** The parts of a workspace that a session uses. */
export interface SessionContext {
  readonly tree: WorkspaceTree
  readonly outbox: Outbox
  /** An instance for one session alone; undefined if the session or the sandbox ended first. */
  lease(session: SessionActivity): Promise<Spare | undefined>
  /** Resolves when the instance has ended. */
  endOf(guest: GuestProcess): Promise<unknown>
  onOver(id: string): void
}

/**
 * A session of a workspace: an instance that runs its cells, one after the other. It serves nothing else, and ends with the
 * session.
 * Its files are sent to the host after each cell, and changes of the host are sent back before the next one.
 */
export class SessionActivity {
  readonly id: string
  readonly #context: SessionContext
  readonly #startedAt = performance.now()
  readonly #cancelled = Promise.withResolvers<void>()
  #instance: { readonly spare: Spare; readonly output: GuestOutput } | undefined
  #turn = 0
  /** The cell that runs, or is about to run. */
  #cell: { cancel(): void } | undefined
  #isCancelled = false
  #isGone = false
  #isLost = false
  #isOver = false
  /** The files that the instance had at the last exchange, and the state of the workspace then. */
  #known: ReadonlyMap<number, FileNode> = new Map()
  #version = -1

  constructor({ execution_id }: Extract<HostActivityFrame, { type: 'session' }>, context: SessionContext) {
    this.id = execution_id
    this.#context = context
  }

  get guest(): GuestProcess | undefined {
    return this.#instance?.spare.guest
  }

  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Resolves when it is cancelled. */
  get cancelled(): Promise<void> {
    return this.#cancelled.promise
  }

  /** The instance, while a cell can run in it. */
  get spare(): Spare | undefined {
    return this.#isOver || this.#isCancelled || this.#isLost ? undefined : this.#instance?.spare
  }

  /** The state of the session, as the last frame of a cell has it. */
  endOfCell(state: 'kept' | 'lost'): object {
    return { cell: { state, checkpoint: CHECKPOINT, missing: [], ended: [] } }
  }

  begin(): void {
    void this.#open()
  }

  async #open(): Promise<void> {
    const spare = await this.#context.lease(this)
    if (this.#isOver) return spare?.guest.destroy()
    if (spare === undefined) return this.#finish(CANCELLED)
    const { guest } = spare
    this.#instance = { spare, output: new GuestOutput(guest) }
    void this.#context.endOf(guest).then(() => this.#onGone())
    guest.send({ type: 'session' })
    this.#send({ type: 'session_ready', checkpoint: CHECKPOINT })
  }

  // ── cells ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The files to bring into the instance before a cell; undefined if it has them. */
  get missingFiles(): OutgoingFiles | undefined {
    const { tree } = this.#context
    return tree.version === this.#version ? undefined : packOutgoing(tree.top, this.#known)
  }

  /** The files of the instance, by their indices. */
  get files(): ReadonlyMap<number, FileNode> {
    return this.#known
  }

  /** Notes the files that the instance has; undefined: it may have none of them. */
  noteBrought(files: ReadonlyMap<number, FileNode> | undefined): void {
    this.#known = files ?? new Map()
    this.#version = files === undefined ? -1 : this.#context.tree.version
  }

  /** Takes the files of a cell. If there are none, the next cell gets the files of the workspace. */
  noteLeft(incoming: IncomingFiles): void {
    const { tree } = incoming
    if (tree === undefined) return this.noteBrought(undefined)
    this.#context.tree.replace(tree.top, tree.size)
    this.#known = incoming.files
    this.#version = this.#context.tree.version
  }

  /** The part of the session in the run of a cell. */
  beginTurn(): ConstructorParameters<typeof GuestRun>[4] {
    this.#turn += 1
    return this.#instance && { turn: this.#turn, output: this.#instance.output }
  }

  /** Notes a cell in progress until the returned function is called. */
  enter(cell: { cancel(): void }): () => void {
    this.#cell = cell
    return () => {
      this.#cell = undefined
      if (this.#isCancelled) this.#end()
      else if (this.#isGone) this.#onGone()
    }
  }

  /** Ends it after a cell whose instance cannot run another one. */
  lose(): void {
    this.#isLost = true
    void this.#destroy({ code: 'lost', message: 'its instance ended during a cell' })
  }

  /** Ends it for the host. A cell ends first. */
  cancel(): void {
    if (this.#isCancelled) return
    this.#isCancelled = true
    this.#cancelled.resolve()
    if (this.#cell === undefined) this.#end()
    else this.#cell.cancel()
  }

  /** Stops sending, because the workspace ends. */
  stop(): void {
    this.#isOver = true
    this.#cancelled.resolve()
  }

  #end(): void {
    // Without an instance, the lease fails.
    if (this.guest !== undefined) void this.#destroy(CANCELLED)
  }

  async #destroy(error: Failure): Promise<void> {
    this.guest?.destroy()
    await this.guest?.ended
    this.#finish(error)
  }

  #onGone(): void {
    this.#isGone = true
    // A cell reports the end itself.
    if (this.#cell === undefined && !this.#isCancelled && !this.#isLost)
      this.#finish({ code: 'lost', message: `its instance ended between two cells${describeStderr(this.guest)}` })
  }

  // ── variables ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Lists variables, or completes a name. */
  async look({ execution_id, code, cursor }: LookFrame): Promise<void> {
    const startedAt = performance.now()
    const found = this.spare === undefined || this.#cell !== undefined ? BUSY : await this.#ask({ code, cursor })
    const isFailure = !Array.isArray(found)
    this.#put({
      type: 'activity_done',
      execution_id,
      ending: null,
      error: isFailure ? found : null,
      result: isFailure ? null : found,
      duration_ms: Math.round(performance.now() - startedAt),
      confirmed: true,
    })
  }

  async #ask(look: { readonly code: string | null; readonly cursor: number }): Promise<readonly unknown[] | Failure> {
    const { spare, output } = this.#instance ?? {}
    if (spare === undefined || output === undefined) return BUSY
    const { guest } = spare
    const leave = this.enter({ cancel: () => guest.kill() })
    const kill = setTimeout(() => guest.kill(), LOOK_MS + CAPS.graceMs)
    try {
      const lines = new LineSplitter(MAX_LOOK_BYTES)
      const answers: Uint8Array[] = []
      const takeFrames = (chunk: Uint8Array): void => {
        try {
          for (const line of lines.push(chunk)) if (answers.length === 0) answers.push(Buffer.from(line))
        } catch {
          guest.kill() // a line without an end
        }
      }
      output.begin({ takeFrames, streams: [IGNORED, IGNORED] })
      // They may be paused, if the host read the output of a cell late.
      for (const stream of [guest.frames, guest.stdout, guest.stderr]) stream.resume()
      this.#turn += 1
      const clock = { deadlineMs: LOOK_MS, maxWaitMs: 0, graceMs: CAPS.graceMs }
      guest.send({ type: 'look', turn: this.#turn, ...clock, collect: { globs: [], maxMs: 0, caps: CAPS } })
      guest.sendToScript(Buffer.from(JSON.stringify({ look })))
      for (let next = await guest.control.next(); ; next = await guest.control.next()) {
        if (next.done === true) return { code: 'lost', message: 'its instance ended' }
        const counts =
          next.value.type === 'ended' && next.value.lives === true ? countsOf(next.value.written) : undefined
        if (counts === undefined) {
          guest.kill()
          continue
        }
        await output.reach(counts)
        return parseLookAnswer(answers[0], look.code === null)
      }
    } finally {
      clearTimeout(kill)
      leave()
    }
  }

  #finish(error: Failure): void {
    if (this.#isOver) return
    this.stop()
    this.#context.onOver(this.id)
    const duration_ms = Math.round(performance.now() - this.#startedAt)
    this.#send({ type: 'activity_done', ending: null, error, result: null, duration_ms, confirmed: true })
  }

  #send({ type, ...fields }: { readonly type: string; readonly [field: string]: unknown }): void {
    this.#put({ type, execution_id: this.id, ...fields })
  }

  #put(frame: object): void {
    this.#context.outbox.put(Buffer.from(`${JSON.stringify(frame)}\n`))
  }

  credit(): void {
    // A session has no output that needs credit.
  }

  input(): void {
    // A session has no input.
  }

  endInput(): void {
    // A session has no input.
  }
}

const CANCELLED: Failure = { code: 'cancelled', message: 'the session was cancelled' }
const BUSY: Failure = { code: 'busy', message: 'a cell or another operation of the session is under way' }
/** The stream of code that runs between two cells. */
const IGNORED = { take: () => undefined, end: () => undefined }

function describeStderr(guest: GuestProcess | undefined): string {
  const stderr = guest?.lastOutput() ?? ''
  return stderr === '' ? '' : `: ${stderr}`
}
