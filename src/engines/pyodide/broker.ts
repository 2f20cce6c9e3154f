import { messageOf } from '../../errors/index.ts'
import {
  CAPS,
  encodeFrame,
  type HostFrame,
  LineSplitter,
  LineTooLongError,
  PROTOCOL_VERSION,
  type ReadyFrame,
} from '../../protocol/index.ts'
import type { Channel, Ending } from '../../sandbox/index.ts'
import { Instances } from './instances.ts'
import { Outbox } from './outbox.ts'
import { ANSWER_HEAD, beginsWith, findRefusal, type Request } from './requests.ts'
import { readRequest } from './request-shape.ts'
import { GuestRun } from './guest-run.ts'
import type { Reserve } from './reserve.ts'
import type { StartGuest } from './spare.ts'

/** The time a script runs alone before the next instance is started. Most scripts end earlier. */
const ALONE_MS = 100

/** The parts and callbacks of a broker. */
export interface BrokerOptions {
  readonly start: StartGuest
  readonly startTimeoutMs: number
  /** Allows more than one instance to wait. Absent: at most one. */
  readonly reserve?: Reserve
  /** True if it checks scripts and runs none. */
  readonly checker?: boolean
  /** Frees the resources of the sandbox; called once, after all its processes have ended. */
  readonly release?: () => void
}

/**
 * Replaces the harness's broker, in the process of the host. It speaks the wire protocol with the host, and starts one
 * process with one instance of Pyodide for each script. The next instance is prepared between runs.
 */
export class Broker {
  readonly channel: Channel
  readonly closed: Promise<Ending>
  readonly #options: BrokerOptions
  readonly #outbox: Outbox
  readonly #inbox = new LineSplitter(CAPS.requestLineBytes)
  readonly #instances: Instances
  readonly #waiting: HostFrame[] = []
  readonly #settle: (ending: Ending) => void
  #current: GuestRun | undefined
  #intakeOf: string | undefined
  #uses = 0
  #isOver = false

  constructor(options: BrokerOptions) {
    this.#options = options
    this.#outbox = new Outbox((paused) => this.#current?.setPaused(paused))
    this.#instances = new Instances({
      ...options,
      onReady: () => this.#serveWaiting(),
      onFailed: (error) => {
        // During a run, the next attempt follows the run.
        if (this.#current === undefined) this.#fail('harness', String(error))
      },
      onLost: (lastOutput) => this.#fail('kernel', lastOutput),
    })
    const { promise, resolve } = Promise.withResolvers<Ending>()
    this.closed = promise
    this.#settle = resolve
    this.channel = {
      receive: () => this.#outbox.take(),
      send: (bytes) => this.#take(bytes),
      close: () => void this.end({ cause: 'exit', exitCode: 0, signal: null, by: 'host' }),
    }
  }

  /** Makes the first instance. Resolves with the frame that a harness sends when it is ready. */
  async start(): Promise<ReadyFrame> {
    const spare = await this.#instances.prepare()
    if (spare === undefined) throw new Error('it was ended before it was ready')
    const { python, loaded, checks } = spare
    return { type: 'ready', protocol: PROTOCOL_VERSION, python, ...loaded, checks }
  }

  /** Resolves when there is an instance for the next script, or when the sandbox has ended. */
  recovered(): Promise<void> {
    return this.#instances.awaitSpare()
  }

  /** The memory of the instances that wait for scripts, in bytes. */
  get idleBytes(): number {
    return this.#instances.bytes
  }

  /** Ends everything. Idempotent. */
  async end(ending: Ending): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#current?.stop()
    this.#outbox.end()
    await this.#instances.end([this.#current?.guest])
    this.#options.release?.()
    this.#settle(ending)
    this.#instances.giveUp() // last: to a caller that waits, an earlier call would mean that the sandbox lives
  }

  #fail(by: 'harness' | 'kernel', message: string): void {
    void this.end({ cause: 'exit', exitCode: 1, signal: null, by, message })
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

  #take(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return Promise.reject(new Error('the sandbox is gone'))
    try {
      for (const line of this.#inbox.push(bytes)) this.#takeLine(line)
    } catch (error) {
      // No host sends this, so the rest of the input cannot be trusted.
      const isTooLong = error instanceof LineTooLongError
      const message = isTooLong
        ? `a request line is longer than ${CAPS.requestLineBytes} bytes`
        : `the host sent an invalid request: ${messageOf(error)}`
      this.#fail('harness', message)
    }
    return this.#awaitIntake()
  }

  /** Delays the host while much of a file waits for the instance. */
  async #awaitIntake(): Promise<void> {
    const guest = this.#current === undefined ? this.#instances.spare?.guest : undefined
    if (guest !== undefined && guest.unsentBytes > CAPS.highWaterBytes) await guest.awaitTaken()
  }

  #takeLine(line: Uint8Array): void {
    // An answer may be large. If it begins as the library writes it, it is passed on or dropped without parsing.
    const run = this.#current
    if (beginsWith(line, run?.answerHead ?? ANSWER_HEAD)) return run?.answer(line)
    const frame = readRequest(line)
    if (frame === undefined) return
    if (frame.type === 'ping') this.#send({ type: 'pong', nonce: frame.nonce })
    else if (frame.type === 'cancel') this.#cancel(frame.execution_id)
    else if (frame.type === 'tool_result') this.#passAnswer(frame)
    else if (frame.type === 'tool_time') {
      if (run?.id === frame.execution_id) run.state.clock.report(frame.executed_ms, frame.executing)
    } else if (this.#instances.spare === undefined && this.#current === undefined) this.#waiting.push(frame)
    else this.#serve(frame)
  }

  /** Passes on an answer whose keys are in any order. */
  #passAnswer({ type, execution_id, id, ...rest }: Extract<HostFrame, { type: 'tool_result' }>): void {
    if (this.#current?.id === execution_id) this.#current.answer(encodeFrame({ type, execution_id, id, ...rest }))
  }

  #serve(frame: HostFrame): void {
    switch (frame.type) {
      case 'file_put':
        if (this.#current !== undefined) return // its `execute` will be refused
        this.#belongTo(frame.execution_id)
        return this.#instances.spare?.guest.send({
          type: 'put',
          path: frame.path,
          mode: frame.mode,
          offset: frame.offset,
          contentBase64: frame.content_base64,
        })
      case 'execute':
        if (this.#options.checker !== true || this.#current !== undefined) return void this.#execute(frame)
        this.#forget()
        return this.#refuse(frame, 'request', 'this sandbox only checks scripts')
      case 'check':
        return void this.#execute(frame)
      case 'reset':
        if (this.#current === undefined) this.#forget()
        return this.#send({ type: 'reset_done', nonce: frame.nonce, reusable: this.#current === undefined })
      case 'ping':
      case 'cancel':
      case 'tool_result':
      case 'tool_time':
        return undefined // already served
    }
  }

  #cancel(id: string): void {
    if (this.#current?.id === id) return this.#current.cancel()
    const mine = this.#waiting.filter((frame) => 'execution_id' in frame && frame.execution_id === id)
    for (const frame of mine) {
      this.#waiting.splice(this.#waiting.indexOf(frame), 1)
      if (frame.type !== 'execute' && frame.type !== 'check') continue
      this.#refuse(frame, 'cancelled', 'the run was cancelled', { cause: 'cancelled', by: 'host' })
    }
  }

  /** Removes files that were sent for another execution id. */
  #belongTo(id: string): void {
    if (this.#intakeOf !== undefined && this.#intakeOf !== id) this.#forget()
    this.#intakeOf = id
  }

  #forget(): void {
    if (this.#intakeOf !== undefined) this.#instances.spare?.guest.send({ type: 'wipe' })
    this.#intakeOf = undefined
  }

  // ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #execute(request: Request): Promise<void> {
    const { spare } = this.#instances
    if (this.#current !== undefined || spare === undefined) {
      return this.#refuse(request, 'request', 'SANDBOX_BUSY: this sandbox is busy with another run')
    }
    this.#belongTo(request.execution_id)
    const refusal = findRefusal(request)
    if (refusal !== undefined) {
      this.#forget()
      return this.#refuse(request, refusal.kind, refusal.message)
    }
    this.#intakeOf = undefined
    this.#instances.take()
    const run = (this.#current = new GuestRun(request, spare, this.#outbox))
    const preparing = setTimeout(() => void this.#instances.prepare(), ALONE_MS)
    try {
      await this.#follow(run)
    } catch (error) {
      // A guest that breaks the protocol cannot be trusted.
      this.#fail('harness', `an instance broke the protocol: ${messageOf(error)}`)
    } finally {
      clearTimeout(preparing)
      run.stop()
    }
  }

  async #follow(run: GuestRun): Promise<void> {
    const { state, spare, guest } = run
    const refusal = await run.follow()
    if (refusal !== undefined) {
      this.#current = undefined
      this.#instances.putBack(spare)
      this.#refuse(state.request, 'request', refusal)
      return this.#serveWaiting()
    }
    const gone = this.#instances.endOf(guest)
    // After SIGKILL a process whose script has ended executes nothing more. The kernel needs several times the duration of a
    // short run to free its memory; only the end of the sandbox waits for that.
    const { code, signal } = state.hasEnded ? { code: null, signal: null } : await gone
    if (this.#isOver) return
    const done = run.conclude(code, signal)
    this.#uses += 1
    this.#current = undefined
    this.#send({ ...done, reusable: true, use: this.#uses })
    void this.#instances.prepare()
    this.#serveWaiting()
  }

  // ── between runs ──────────────────────────────────────────────────────────────────────────────────────────────

  #serveWaiting(): void {
    while (this.#waiting.length > 0 && this.#current === undefined && this.#instances.spare !== undefined) {
      const frame = this.#waiting.shift()
      if (frame !== undefined) this.#serve(frame)
    }
  }

  #refuse(
    { execution_id }: Request,
    kind: string,
    message: string,
    how: { cause: string; by: string } = { cause: 'not-started', by: 'harness' },
  ): void {
    this.#send({ type: 'error', execution_id, message, traceback: null, kind })
    const ending = { cause: how.cause, exit_code: null, signal: null, by: how.by }
    this.#send({ type: 'script_done', execution_id, ending, reusable: true, use: this.#uses })
  }

  #send(frame: object): void {
    this.#outbox.put(Buffer.from(`${JSON.stringify(frame)}\n`))
  }
}
