import { messageOf } from '../../../errors/index.ts'
import { CAPS, type HostFrame, FrameSplitter, PROTOCOL_VERSION, type ReadyFrame } from '../../../protocol/index.ts'
import type { Channel, Ending } from '../../../sandbox/index.ts'
import { Instances } from '../instances.ts'
import { Outbox } from '../outbox.ts'
import { findRefusal } from '../requests.ts'
import type { Spare, StartGuest } from '../spare.ts'
import { packOutgoing, type OutgoingFiles } from './carried-files.ts'
import { FileActivity, type FileContext } from './file-activity.ts'
import { FileError } from './file-error.ts'
import { readWorkspaceRequest, type WorkspaceRequest } from './requests.ts'
import { ScriptActivity, type ScriptContext } from './script-activity.ts'
import { NO_COPIES, SessionActivity, type SessionContext } from './session-activity.ts'
import { type TreeBounds, WorkspaceTree } from './tree.ts'

/** The time a script runs alone before the next instance is started. */
const ALONE_MS = 100
/** Maximum number of consecutive instances that end while they wait. After that, the workspace ends. */
const MAX_LOST = 3
const MiB = 1024 * 1024
const MAX_NODES = 100_000
const MAX_TEXT_BYTES = 32 * MiB
const BUSY = 'a script runs in the workspace, and this engine has one activity at a time: its files are in its process'
const CANCELLED = 'the run was cancelled'
const LOST = 'the instances ended while the files of the workspace were copied into them'
const NO_SESSION = 'the session is over'
const NO_PROGRAMS = 'this engine has no programs: WebAssembly has no processes'

/** The parts of a broker of a workspace. */
export interface WorkspaceBrokerOptions {
  readonly start: StartGuest
  readonly startTimeoutMs: number
  /** The path of the workspace in an instance. */
  readonly workspace: string
  /** The limit of its files. */
  readonly maxBytes: number
}

type ExecuteFrame = Extract<HostFrame, { type: 'execute' }>
type AnyActivity = ScriptActivity | FileActivity | SessionActivity

/**
 * The broker of a workspace: one script or cell at a time, each script in an instance of its own and the cells of a session in one,
 * and the files that last between them. The host holds the files: each script and cell gets a copy, and its files replace them
 * when its process has sent all of them. So a script sees nothing of an earlier one but its files, and if a process is lost, only
 * the changes of its own script are lost.
 */
export class WorkspaceBroker implements FileContext, ScriptContext, SessionContext {
  readonly channel: Channel
  readonly closed: Promise<Ending>
  readonly tree: WorkspaceTree
  readonly outbox: Outbox
  readonly #options: WorkspaceBrokerOptions
  readonly #inbox = new FrameSplitter(CAPS.requestLineBytes)
  readonly #instances: Instances
  readonly #activities = new Map<string, AnyActivity>()
  readonly #settle: (ending: Ending) => void
  #running: ScriptActivity | undefined
  #lost = 0
  #uses = 0
  #isOver = false

  constructor(options: WorkspaceBrokerOptions) {
    this.#options = options
    const bounds = { maxBytes: options.maxBytes, maxNodes: MAX_NODES, maxTextBytes: MAX_TEXT_BYTES }
    this.tree = new WorkspaceTree(options.workspace, bounds)
    this.outbox = new Outbox((paused) => this.#running?.setPaused(paused))
    this.#instances = new Instances({
      ...options,
      onReady: () => undefined,
      onFailed: (error) => this.#fail('harness', String(error)),
      onLost: (lastOutput) => this.#replaceLost(lastOutput),
    })
    const { promise, resolve } = Promise.withResolvers<Ending>()
    this.closed = promise
    this.#settle = resolve
    this.channel = {
      receive: () => this.outbox.take(),
      send: (bytes) => this.#take(bytes),
      close: () => void this.end({ cause: 'exit', exitCode: 0, signal: null, by: 'host' }),
    }
  }

  get bounds(): TreeBounds {
    return this.tree.bounds
  }

  /** Makes the first instance. Resolves with the frame that a harness sends when it is ready. */
  async start(): Promise<ReadyFrame> {
    const spare = await this.#instances.prepare()
    if (spare === undefined) throw new Error('it was ended before it was ready')
    const { python, loaded, checks } = spare
    return {
      type: 'ready',
      protocol: PROTOCOL_VERSION,
      python,
      ...loaded,
      checks: { ...checks, signal_scope: 'serial' },
    }
  }

  /** Resolves when there is an instance for the next script, or when the sandbox has ended. */
  recovered(): Promise<void> {
    void this.#instances.prepare() // a session may have taken the last one
    return this.#instances.awaitSpare()
  }

  /** Ends everything. Idempotent. */
  async end(ending: Ending): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    for (const activity of this.#activities.values()) activity.stop()
    this.outbox.end()
    await this.#instances.end([...this.#activities.values()].map((activity) => activity.guest))
    this.#settle(ending)
    this.#instances.giveUp() // last: to a caller that waits, an earlier call would mean that the sandbox lives
  }

  assertQuiet(): void {
    if (this.#running !== undefined) throw new FileError('busy', BUSY)
  }

  onOver(id: string): void {
    this.#activities.delete(id)
  }

  admit(activity: ScriptActivity, request: ExecuteFrame): void {
    void this.#execute(activity, request)
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

  #take(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return Promise.reject(new Error('the sandbox is gone'))
    try {
      for (const { line, payload } of this.#inbox.push(bytes)) {
        const frame = readWorkspaceRequest(line)
        if ((frame?.type === 'input') !== (payload !== undefined)) throw new Error('only the frame input has a payload')
        if (frame !== undefined) this.#serve(frame, payload ?? Buffer.alloc(0))
      }
    } catch (error) {
      // No host sends this, so the rest of the input cannot be trusted.
      this.#fail('harness', `the host sent an invalid request: ${messageOf(error)}`)
    }
    return Promise.resolve()
  }

  /** Interrupts the cell of a session, also one whose request has not arrived as a whole. */
  #interruptCellOf(sessionId: string): void {
    for (const one of this.#activities.values())
      if (one instanceof ScriptActivity && one.sessionId === sessionId) one.interrupt()
  }

  #serve(frame: WorkspaceRequest, payload: Uint8Array): void {
    if (frame.type === 'ping') return this.#send({ type: 'pong', nonce: frame.nonce })
    const activity = this.#activities.get(frame.execution_id)
    const script = activity instanceof ScriptActivity ? activity : undefined
    switch (frame.type) {
      case 'cancel':
        if (script?.isComplete === false) return this.#refuse(script, 'cancelled', CANCELLED)
        return activity?.cancel()
      case 'credit':
        return activity?.credit(frame.stream, frame.bytes)
      case 'input':
        return activity?.input(payload)
      case 'input_end':
        return activity?.endInput()
      case 'tool_result':
        return script?.answer(frame)
      case 'tool_time':
        return script?.reportToolTime(frame)
      case 'resize':
      case 'signal':
        return undefined // only programs have these
      case 'interrupt':
        return this.#interruptCellOf(frame.execution_id)
      case 'session':
        return this.#begin(new SessionActivity(frame, this))
      case 'session_look':
        return this.#look(frame)
      case 'session_branch':
      case 'session_checkpoint':
      case 'session_restore':
      case 'session_release':
        return this.#failActivity(frame.execution_id, { code: 'no_checkpoint', message: NO_COPIES })
      case 'start':
      case 'dial':
        return this.#failActivity(frame.execution_id, { code: 'invalid', message: NO_PROGRAMS })
      case 'execute':
      case 'execute_in_parts':
        return this.#begin(new ScriptActivity(frame, this))
      default:
        return this.#begin(new FileActivity(frame, this))
    }
  }

  #begin(activity: AnyActivity): void {
    if (this.#activities.has(activity.id))
      throw new Error(`execution_id ${JSON.stringify(activity.id)} is already in use`)
    this.#activities.set(activity.id, activity)
    activity.begin()
  }

  #look(frame: Extract<WorkspaceRequest, { type: 'session_look' }>): void {
    const session = this.#sessionOf(frame.session)
    if (session === undefined) return this.#failActivity(frame.execution_id, { code: 'lost', message: NO_SESSION })
    void session.look(frame)
  }

  #sessionOf(id: string | undefined): SessionActivity | undefined {
    const activity = id === undefined ? undefined : this.#activities.get(id)
    return activity instanceof SessionActivity ? activity : undefined
  }

  #failActivity(id: string, error: { readonly code: string; readonly message: string }): void {
    this.#send({ type: 'activity_done', execution_id: id, ending: null, error, duration_ms: 0, confirmed: true })
  }

  // ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #execute(activity: ScriptActivity, request: ExecuteFrame): Promise<void> {
    const refusal =
      this.#running === undefined ? findRefusal(request) : { kind: 'request', message: `SANDBOX_BUSY: ${BUSY}` }
    if (refusal !== undefined) return this.#refuse(activity, refusal.kind, refusal.message)
    this.#running = activity
    if (request.session !== undefined) return this.#executeCell(activity, request)
    try {
      const files = packOutgoing(this.tree.top)
      const spare = await this.#spareWith(files, activity)
      if (spare !== undefined && !this.#isOver) await this.#runIn(spare, { activity, request, files })
    } catch (error) {
      // A guest that breaks the protocol cannot be trusted.
      this.#fail('harness', `an instance broke the protocol: ${messageOf(error)}`)
    } finally {
      if (this.#running === activity) this.#running = undefined
      if (!this.#isOver) void this.#instances.prepare()
    }
  }

  /** Resolves to an instance with the files in it; undefined if the script was refused. */
  async #spareWith(files: OutgoingFiles, activity: ScriptActivity): Promise<Spare | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      const spare = await this.lease(activity)
      if (this.#isOver) return undefined
      const copied = spare && (await activity.copyFiles(spare, files, this.#options.startTimeoutMs))
      if (copied === 'restored') return spare
      spare?.guest.destroy()
      if (spare !== undefined) void this.#instances.endOf(spare.guest)
      if (copied === 'lost' && !activity.isCancelled && attempt <= MAX_LOST) continue
      this.#running = undefined
      if (activity.isCancelled) this.#refuse(activity, 'cancelled', CANCELLED)
      else this.#refuse(activity, 'request', typeof copied === 'object' ? copied.reason : LOST)
      return undefined
    }
  }

  /** Waits for a spare instance; undefined if the activity was cancelled, or the sandbox ended. */
  async lease(activity: ScriptActivity | SessionActivity): Promise<Spare | undefined> {
    while (this.#instances.spare === undefined && !this.#isOver && !activity.isCancelled) {
      void this.#instances.prepare()
      await Promise.race([this.#instances.awaitSpare(), activity.cancelled])
    }
    return this.#isOver || activity.isCancelled ? undefined : this.#instances.take()
  }

  endOf(guest: Spare['guest']): ReturnType<Instances['endOf']> {
    return this.#instances.endOf(guest)
  }

  async #runIn(
    spare: Spare,
    {
      activity,
      request,
      files,
    }: { readonly activity: ScriptActivity; readonly request: ExecuteFrame; readonly files: OutgoingFiles },
  ): Promise<void> {
    const preparing = setTimeout(() => void this.#instances.prepare(), ALONE_MS)
    const gone = this.#instances.endOf(spare.guest)
    try {
      const { done, incoming } = await activity.run(request, spare, { files: files.files, awaitEnd: () => gone })
      if (this.#isOver) return
      const { tree } = incoming
      if (tree !== undefined) this.tree.replace(tree.top, tree.size)
      this.#lost = 0
      this.#uses += 1
      this.#running = undefined
      this.onOver(activity.id)
      this.#send({ ...done, reusable: true, use: this.#uses })
    } finally {
      clearTimeout(preparing)
    }
  }

  // ── a cell ────────────────────────────────────────────────────────────────────────────────────────────────────

  async #executeCell(activity: ScriptActivity, request: ExecuteFrame): Promise<void> {
    const session = this.#sessionOf(request.session)
    const spare = session?.spare
    const leave = session?.enter(activity)
    try {
      if (session === undefined || spare === undefined) return this.#refuse(activity, 'request', NO_SESSION)
      if (await this.#copyFiles(activity, session, spare)) await this.#runCell(activity, request, session, spare)
    } catch (error) {
      // A guest that breaks the protocol cannot be trusted.
      this.#fail('harness', `an instance broke the protocol: ${messageOf(error)}`)
    } finally {
      if (this.#running === activity) this.#running = undefined
      leave?.()
    }
  }

  /** Copies the files that the instance of a session lacks into it. Returns false if the cell was refused. */
  async #copyFiles(activity: ScriptActivity, session: SessionActivity, spare: Spare): Promise<boolean> {
    const files = session.missingFiles
    const copied = files && (await activity.copyFiles(spare, files, this.#options.startTimeoutMs))
    if (this.#isOver) return false
    const isThere = copied === undefined || copied === 'restored'
    session.noteBrought(isThere ? (files ?? session).files : undefined)
    if (isThere && !activity.isCancelled) return true
    if (copied === 'lost' || activity.isCancelled) session.lose() // a cancellation kills the instance
    this.#running = undefined
    if (activity.isCancelled) this.#refuse(activity, 'cancelled', CANCELLED)
    else this.#refuse(activity, 'request', typeof copied === 'object' ? copied.reason : LOST)
    return false
  }

  async #runCell(
    activity: ScriptActivity,
    request: ExecuteFrame,
    session: SessionActivity,
    spare: Spare,
  ): Promise<void> {
    const context = { files: session.files, cell: session.beginTurn(), awaitEnd: () => spare.guest.ended }
    const { done, incoming, lives } = await activity.run(request, spare, context)
    if (this.#isOver) return
    session.noteLeft(incoming)
    this.#uses += 1
    this.#running = undefined
    this.onOver(activity.id)
    this.#send({ ...done, ...session.endOfCell(lives ? 'kept' : 'lost'), reusable: true, use: this.#uses })
    if (!lives) session.lose()
  }

  #refuse({ id, sessionId }: ScriptActivity, kind: string, message: string): void {
    const session = this.#sessionOf(sessionId)
    // A refused cell changed nothing.
    const ofCell = session?.endOfCell(session.spare === undefined ? 'lost' : 'kept')
    const isCancelled = kind === 'cancelled'
    this.onOver(id)
    this.#send({ type: 'error', execution_id: id, message, traceback: null, kind })
    const [cause, by] = isCancelled ? ['cancelled', 'host'] : ['not-started', 'harness']
    const ending = { cause, exit_code: null, signal: null, by }
    this.#send({ type: 'script_done', execution_id: id, ending, ...ofCell, reusable: true, use: this.#uses })
  }

  /** Replaces an instance that ended while it waited. No file is lost: the host has them. */
  #replaceLost(lastOutput: string): void {
    this.#lost += 1
    if (this.#lost > MAX_LOST) return this.#fail('kernel', lastOutput)
    void this.#instances.prepare()
  }

  #fail(by: 'harness' | 'kernel', message: string): void {
    void this.end({ cause: 'exit', exitCode: 1, signal: null, by, message })
  }

  #send(frame: object): void {
    this.outbox.put(Buffer.from(`${JSON.stringify(frame)}\n`))
  }
}
