import { randomUUID } from 'node:crypto'
import { messageOf, SandglassError } from '../errors/index.ts'
import {
  type ActivityDoneFrame,
  CAPS,
  decodeActivityFrame,
  encodeFrame,
  FramingError,
  FrameSplitter,
  headOfFrame,
  LineTooLongError,
  MAX_PAYLOAD_BYTES,
} from '../protocol/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { formatValue, MAX_TIMER_MS, promptGarbageCollection, truncate } from '../support/index.ts'
import { Activity, type ActivityHandler, type ActivityOwner, OUTPUT_WINDOW_BYTES } from './activity.ts'
import { invalid, notAloneError } from './failures.ts'
import type { IdleClock } from './idle-clock.ts'
import { Outbound } from './outbound.ts'

/** Time for a sandbox to confirm the end of an activity; then the sandbox ends. */
const CANCEL_MS = 1000
/** Time for a sandbox whose channel ended to report its end, for the message. */
const LAST_OUTPUT_MS = 500
/** Maximum characters of the reason for a loss. */
const MAX_REASON = 500
/** Enough for a tool call or a piece of a file. A run with a higher output limit raises it. */
const MAX_LINE_BYTES = CAPS.argBytes + 64 * 1024
/** The rest in a dead program's pipe arrives without credit. A program on Linux can enlarge its pipe to 1 MiB. */
const REST_BYTES = 1024 * 1024 + MAX_PAYLOAD_BYTES
/** Smaller payloads are copied: a view of one would keep the whole chunk in which it arrived. */
const COPIED_BYTES = 16 * 1024
/** The last frame of a run. */
const RUN_END = 'script_done'
/** The frame that grants more input. It is not passed to the reader of a run, which does not know it. */
const CREDIT = 'credit'

/** Options of an activity. */
interface ActivityOptions {
  readonly id?: string
  readonly window?: number
  readonly isBackground?: boolean
  readonly hasProcesses?: boolean
  readonly isResting?: boolean
  readonly ofSession?: boolean
  readonly isInternal?: boolean
  readonly cancelMs?: number
}

/** An activity in progress. `use` keeps the workspace from being idle; an activity in the background has none. */
interface OpenActivity {
  readonly activity: Activity
  readonly use: Disposable | undefined
  readonly hasProcesses: boolean
  readonly isResting: boolean
  readonly owner: ActivityOwner
  readonly cancelMs: number
}

/** Owns the channel of a workspace: one reader, one writer, many activities. */
export class Link implements ActivityOwner {
  readonly outbound: Outbound
  readonly #sandbox: Sandbox
  readonly #onLost: (error: SandglassError) => void
  readonly #splitter = new FrameSplitter(MAX_LINE_BYTES)
  readonly #idle: IdleClock
  readonly #activities = new Map<string, OpenActivity>()
  readonly #cancelling = new Map<Activity, NodeJS.Timeout>()
  /** Ids that callers chose: the sandbox must never see one twice. */
  readonly #givenIds = new Set<string>()
  /** Set while activities run: the descriptors of an idle sandbox do not keep the host's process alive. */
  #keepAlive: NodeJS.Timeout | undefined
  readonly #prefix = randomUUID().slice(0, 8)
  #count = 0
  #ended: SandglassError | undefined
  #ignoredFrames = 0
  readonly #onEnd = new Set<(error: SandglassError) => void>()
  #onQuiet = (): void => {}
  /** Returns the part of a loss's message that tells which files still exist. */
  lossNote: () => string = () => ''

  /** The owner of activities that do not count as use of the workspace. */
  readonly #internalOwner: ActivityOwner

  /** True if an activity with processes must run alone: it could read data that is sent for another one. */
  readonly isSerial: boolean

  /** True if processes of a session stay alive between its cells. */
  readonly #hasLastingProcesses: boolean

  /**
   * @param onLost called once, when the channel can no longer be used.
   * @param hasLastingProcesses true if processes of a session stay alive between its cells.
   */
  constructor(
    sandbox: Sandbox,
    idle: IdleClock,
    onLost: (error: SandglassError) => void,
    hasLastingProcesses: boolean,
  ) {
    this.#sandbox = sandbox
    this.#hasLastingProcesses = hasLastingProcesses
    this.isSerial = sandbox.ready.checks['signal_scope'] === 'serial'
    this.#idle = idle
    this.#onLost = onLost
    this.outbound = new Outbound(sandbox.channel, (error) => void this.#loseAfter(messageOf(error)))
    const { outbound } = this
    this.#internalOwner = { outbound, touch: () => undefined, cancel: (activity) => this.cancel(activity) }
    void this.#read()
  }

  /** The ids of the scripts and programs in progress. */
  get running(): readonly string[] {
    return [...this.#activities].filter(([, { hasProcesses }]) => hasProcesses).map(([id]) => id)
  }

  /** The number of frames of no activity, and of frames that broke the protocol. */
  get ignoredFrames(): number {
    return this.#ignoredFrames
  }

  /** The number of activities in progress. */
  get size(): number {
    return this.#activities.size
  }

  /**
   * Begins an activity. The caller sends its first frame.
   * @param options.id an id that the caller chose; default: a new one.
   * @param options.isBackground its bytes count as use of the workspace, its duration does not.
   * @param options.hasProcesses it is a script, a program or a session.
   * @param options.isResting it is a session, whose cells are activities of their own. Between them, others may begin: see
   * {@link isTaken}.
   * @param options.ofSession it is a cell or an operation of a session.
   * @param options.isInternal it belongs to the library: neither its bytes nor its duration count as use of the workspace.
   * @param options.cancelMs time for the sandbox to confirm its end, if it needs longer than usual.
   * @throws SandglassError `workspace_closed`, `workspace_lost`, `invalid_request` for an id that was used before, and
   * `sandbox_busy` where an activity with processes must be the only one.
   */
  open(handler: ActivityHandler, options: ActivityOptions = {}): Activity {
    if (this.#ended !== undefined) throw this.#ended
    const { window = OUTPUT_WINDOW_BYTES, isBackground = false, hasProcesses = false, isInternal = false } = options
    const { isResting = false, ofSession = false, cancelMs = CANCEL_MS } = options
    const owner = isInternal ? this.#internalOwner : this
    const activity = new Activity(options.id ?? this.#nextId(), handler, owner, window)
    if (this.#givenIds.has(activity.id) || this.#activities.has(activity.id)) {
      throw invalid('executionId', `${formatValue(activity.id)} was used before in this workspace; choose another one`)
    }
    if (this.isTaken(hasProcesses, ofSession)) throw notAloneError(this.#sandbox.info.engine)
    if (options.id !== undefined) this.#givenIds.add(activity.id)
    owner.touch()
    const use = isBackground || isInternal ? undefined : this.#idle.use()
    this.#activities.set(activity.id, { activity, use, hasProcesses, isResting, owner, cancelMs })
    this.#keepAlive ??= setInterval(() => undefined, MAX_TIMER_MS)
    return activity
  }

  /** @throws SandglassError `sandbox_busy` if a script, or a cell of a session, could not begin now. */
  assertFree(ofSession: boolean): void {
    if (this.isTaken(true, ofSession)) throw notAloneError(this.#sandbox.info.engine)
  }

  /**
   * True if an activity cannot run together with those in progress. Files can be used while a session is idle. A script or a
   * program can run only if no process of the session stays alive.
   */
  isTaken(hasProcesses: boolean, ofSession: boolean): boolean {
    if (!this.isSerial) return false
    const isExclusive = this.#hasLastingProcesses && hasProcesses && !ofSession
    const others = [...this.#activities.values()].filter(({ isResting }) => !isResting || isExclusive)
    return hasProcesses ? others.length > 0 : others.some((other) => other.hasProcesses)
  }

  /** Ends scripts and programs; resolves when they have ended, or the channel has. */
  async endProcesses(): Promise<void> {
    const quiet = Promise.withResolvers<void>()
    this.#onQuiet = quiet.resolve
    for (const { activity, hasProcesses } of this.#activities.values()) if (hasProcesses) activity.cancel()
    if (this.running.length > 0) await quiet.promise
  }

  /** Keeps the workspace from being idle until the result is disposed of. */
  use(): Disposable {
    return this.#idle.use()
  }

  touch(): void {
    this.#idle.touch()
  }

  /** Calls a function when the channel can no longer be used. Returns a function that removes the listener. */
  onEnd(listener: (error: SandglassError) => void): () => void {
    if (this.#ended === undefined) this.#onEnd.add(listener)
    else listener(this.#ended)
    return () => void this.#onEnd.delete(listener)
  }

  /** Allows lines of up to this many bytes, for a run that sends them. */
  allowLines(bytes: number): void {
    this.#splitter.maxLineBytes = Math.max(this.#splitter.maxLineBytes, bytes)
  }

  cancel(activity: Activity): void {
    if (this.#cancelling.has(activity)) return
    const frame = encodeFrame({ type: 'cancel', execution_id: activity.id })
    this.outbound.send(frame).catch(() => undefined)
    const ms = this.#activities.get(activity.id)?.cancelMs ?? CANCEL_MS
    const late = (): void =>
      this.lose(`it did not confirm the end of activity ${formatValue(activity.id)} within ${ms} ms`)
    this.#cancelling.set(activity, setTimeout(late, ms))
  }

  /** Removes an activity that the sandbox does not know, or whose last frame was received. */
  forget(activity: Activity): void {
    clearTimeout(this.#cancelling.get(activity))
    this.#cancelling.delete(activity)
    const held = this.#activities.get(activity.id)
    held?.use?.[Symbol.dispose]()
    this.#activities.delete(activity.id)
    held?.owner.touch()
    if (this.running.length === 0) this.#onQuiet()
    if (this.#activities.size > 0) return
    clearInterval(this.#keepAlive)
    this.#keepAlive = undefined
  }

  /** Settles every activity, because the workspace closes. */
  close(why: SandglassError): void {
    this.#end(why)
  }

  /** Settles every activity, because the sandbox broke the protocol or is gone. */
  lose(why: string): void {
    if (this.#ended !== undefined) return
    const error = new SandglassError(
      'workspace_lost',
      `the sandbox of the workspace is lost: ${why}${this.lossNote()}; open another one with sg.workspace()`,
    )
    this.#end(error)
    this.#onLost(error)
  }

  async #read(): Promise<void> {
    const { channel } = this.#sandbox
    try {
      for (;;) {
        const chunk = await channel.receive()
        if (this.#ended !== undefined) return
        if (chunk === null) break
        for (const { line, payload } of this.#splitter.push(chunk)) this.#route(line, payload)
      }
      await this.#loseAfter('its channel ended')
    } catch (error) {
      if (error instanceof FramingError || error instanceof LineTooLongError)
        this.lose(`it broke the protocol: ${error.message}`)
      else await this.#loseAfter(messageOf(error))
    }
  }

  /** Does what `lose` does, after waiting for the report of the sandbox about its end. */
  async #loseAfter(why: string): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), LAST_OUTPUT_MS)
    const ending = await Promise.race([this.#sandbox.closed, late])
    clearTimeout(timer)
    const cause = ending === undefined ? '' : ` (${ending.cause}${ending.message ? `: ${ending.message}` : ''})`
    this.lose(truncate(why + cause, MAX_REASON))
  }

  #route(line: Buffer, payload: Buffer | undefined): void {
    const head = headOfFrame(line)
    const held = head === undefined ? undefined : this.#activities.get(head.executionId)
    if (head === undefined || held === undefined || this.#ended !== undefined) {
      this.#ignoredFrames += 1
      return
    }
    const { activity, owner } = held
    owner.touch()
    const { handler } = activity
    if (handler.onLine !== undefined && payload === undefined && head.type !== CREDIT) {
      // The handler parses the frame; here it only matters whether it is the last one.
      const isLast = head.type === RUN_END
      if (isLast) {
        this.forget(activity)
        activity.dropInput()
      }
      handler.onLine(line, isLast)
      return
    }
    const frame = decodeActivityFrame(line)
    if (frame?.execution_id !== activity.id || (frame.type === 'output') !== (payload !== undefined)) {
      this.#ignoredFrames += 1
      return
    }
    if (frame.type === 'output') this.#takeOutput(activity, frame.stream, payload ?? Buffer.alloc(0))
    else if (frame.type === 'credit') activity.grantInput(frame.bytes)
    else if (frame.type === 'activity_done') this.#finish(activity, frame)
    else {
      const bytes = line.length + 1
      if (frame.type === 'entries' && !activity.receive('frames', bytes, MAX_LINE_BYTES))
        this.lose('it sent more of a listing than its window allows')
      else handler.onFrame?.(frame, bytes)
    }
  }

  #takeOutput(activity: Activity, stream: 'stdout' | 'stderr' | 'socket' | 'file', payload: Buffer): void {
    if (activity.receive(stream, payload.length, REST_BYTES)) {
      promptGarbageCollection(payload)
      activity.handler.onOutput?.(stream, payload.length < COPIED_BYTES ? Buffer.from(payload) : payload)
      return
    }
    // There is no room for these bytes, and dropping them would leave a gap in the output.
    this.lose('it sent more output than its window allows')
  }

  #finish(activity: Activity, done: ActivityDoneFrame): void {
    this.forget(activity)
    activity.end({ done })
    if (!done.confirmed) this.lose('processes of an activity could not be ended')
  }

  #end(error: SandglassError): void {
    if (this.#ended !== undefined) return
    this.#ended = error
    const open = [...this.#activities.values()].map(({ activity }) => activity)
    for (const activity of open) this.forget(activity)
    this.outbound.stop(error)
    for (const activity of open) activity.end({ lost: error })
    for (const listener of this.#onEnd) listener(error)
    this.#onEnd.clear()
  }

  #nextId(): string {
    this.#count += 1
    return `${this.#prefix}-${this.#count}`
  }
}
