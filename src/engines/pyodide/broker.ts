import { messageOf } from '../../errors/index.ts'
import { type HostFrame, LineSplitter, PROTOCOL_VERSION, type ReadyFrame } from '../../protocol/index.ts'
import type { Channel, Ending } from '../../sandbox/index.ts'
import { Instances } from './instances.ts'
import { Outbox } from './outbox.ts'
import { refusalOf, type Request } from './requests.ts'
import { RunCourse } from './run-course.ts'
import type { StartGuest } from './spare.ts'

const MAX_REQUEST_BYTES = 80 * 1024 * 1024
/** So long a script has all of the machine; then the next instance is made beside it. A shorter one is over before. */
const ALONE_MS = 100
const ANSWER_HEAD = '{"type":"tool_result",'

/** What the broker is made of. */
export interface BrokerOptions {
  readonly start: StartGuest
  readonly startTimeoutMs: number
  /** Whether it is there to check scripts, and runs none. */
  readonly checker?: boolean
  /** Frees what the sandbox held; called once, when nothing of it runs any more. */
  readonly release?: () => void
}

/**
 * Stands where a harness's broker stands, in the host's own process: it speaks the wire protocol on one side, and has one
 * process with one instance of Pyodide for each script on the other, the next of which is made ready between runs.
 */
export class Broker {
  readonly channel: Channel
  readonly closed: Promise<Ending>
  readonly #options: BrokerOptions
  readonly #outbox: Outbox
  readonly #inbox = new LineSplitter(MAX_REQUEST_BYTES)
  readonly #instances: Instances
  readonly #waiting: HostFrame[] = []
  readonly #settle: (ending: Ending) => void
  #course: RunCourse | undefined
  #intakeOf: string | undefined
  #uses = 0
  #isOver = false

  constructor(options: BrokerOptions) {
    this.#options = options
    this.#outbox = new Outbox((paused) => this.#course?.press(paused))
    this.#instances = new Instances({
      ...options,
      onReady: () => this.#serveWaiting(),
      onFailed: (error) => {
        // During a run, it is tried again when that is over.
        if (this.#course === undefined) this.#fail('harness', String(error))
      },
      onLost: (lastWords) => this.#fail('kernel', lastWords),
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

  /** Makes the first instance. Resolves with what a harness says when it is ready. */
  async start(): Promise<ReadyFrame> {
    const spare = await this.#instances.prepare()
    if (spare === undefined) throw new Error('it was ended before it was ready')
    const { python, loaded, checks } = spare
    return { type: 'ready', protocol: PROTOCOL_VERSION, python, ...loaded, checks }
  }

  /** Resolves when there is an instance for the next script, or when all is over. */
  recovered(): Promise<void> {
    return this.#instances.recovered()
  }

  /** Ends everything. Idempotent. */
  async end(ending: Ending): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#course?.stop()
    this.#outbox.end()
    await this.#instances.end(this.#course?.guest)
    this.#options.release?.()
    this.#settle(ending)
    this.#instances.giveUp() // not earlier: who waits would take this for one that lives
  }

  #fail(by: 'harness' | 'kernel', message: string): void {
    void this.end({ cause: 'exit', exitCode: 1, signal: null, by, message })
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

  #take(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return Promise.reject(new Error('the sandbox is gone'))
    try {
      for (const line of this.#inbox.push(bytes)) this.#takeLine(line)
    } catch {
      // What no host sends: a line that is too long, or no JSON.
      this.#fail('harness', 'a request cannot be read')
    }
    return Promise.resolve()
  }

  #takeLine(line: Uint8Array): void {
    const head = Buffer.from(line.subarray(0, 600)).toString('utf8')
    if (head.startsWith(ANSWER_HEAD)) {
      const course = this.#course
      if (course === undefined) return
      if (head.startsWith(`${ANSWER_HEAD}"execution_id":${JSON.stringify(course.run.id)},`)) course.answer(line)
      return
    }
    const text = Buffer.from(line).toString('utf8').trim()
    if (text === '') return
    const frame = JSON.parse(text) as HostFrame
    if (frame.type === 'ping') this.#send({ type: 'pong', nonce: frame.nonce })
    else if (frame.type === 'cancel') this.#cancel(frame.execution_id)
    else if (this.#instances.spare === undefined && this.#course === undefined) this.#waiting.push(frame)
    else this.#serve(frame)
  }

  #serve(frame: HostFrame): void {
    switch (frame.type) {
      case 'file_put':
        if (this.#course !== undefined) return // its `execute` will be refused
        this.#belongTo(frame.execution_id)
        return this.#instances.spare?.guest.send({
          type: 'put',
          path: frame.path,
          mode: frame.mode,
          offset: frame.offset,
          contentBase64: frame.content_base64,
        })
      case 'execute':
        if (this.#options.checker !== true || this.#course !== undefined) return void this.#execute(frame)
        this.#forget()
        return this.#refuse(frame, 'request', 'this sandbox is there to check scripts; it runs none')
      case 'check':
        return void this.#execute(frame)
      case 'reset':
        if (this.#course === undefined) this.#forget()
        return this.#send({ type: 'reset_done', nonce: frame.nonce, reusable: this.#course === undefined })
      case 'ping':
      case 'cancel':
      case 'tool_result':
        return undefined // served at once
    }
  }

  #cancel(id: string): void {
    if (this.#course?.run.id === id) return this.#course.cancel()
    const mine = this.#waiting.filter((frame) => 'execution_id' in frame && frame.execution_id === id)
    for (const frame of mine) {
      this.#waiting.splice(this.#waiting.indexOf(frame), 1)
      if (frame.type !== 'execute' && frame.type !== 'check') continue
      this.#refuse(frame, 'cancelled', 'the run was cancelled', { cause: 'cancelled', by: 'host' })
    }
  }

  /** Files of one execution id are never there for another. */
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
    if (this.#course !== undefined || spare === undefined) {
      return this.#refuse(request, 'request', 'SANDBOX_BUSY: this sandbox is busy with another run')
    }
    this.#belongTo(request.execution_id)
    const refusal = refusalOf(request)
    if (refusal !== undefined) {
      this.#forget()
      return this.#refuse(request, refusal.kind, refusal.message)
    }
    this.#intakeOf = undefined
    this.#instances.take()
    const course = (this.#course = new RunCourse(request, spare, this.#outbox))
    const preparing = setTimeout(() => void this.#instances.prepare(), ALONE_MS)
    try {
      await this.#follow(course)
    } catch (error) {
      // A guest that does not speak as ours do is no guest of ours any more.
      this.#fail('harness', `what an instance said cannot be read: ${messageOf(error)}`)
    } finally {
      clearTimeout(preparing)
      course.stop()
    }
  }

  async #follow(course: RunCourse): Promise<void> {
    const { run, spare, guest } = course
    const refusal = await course.follow()
    if (refusal !== undefined) {
      this.#course = undefined
      this.#instances.putBack(spare)
      this.#refuse(run.request, 'request', refusal)
      return this.#serveWaiting()
    }
    const gone = this.#instances.endOf(guest)
    // One that had come to its end runs no step more once it is killed: to free its memory takes the kernel several times
    // as long as a short run, and nobody has to wait for that but the end of the sandbox.
    const { code, signal } = run.hasEnded ? { code: null, signal: null } : await gone
    if (this.#isOver) return
    const done = course.conclude(code, signal)
    this.#uses += 1
    this.#course = undefined
    this.#send({ ...done, reusable: true, use: this.#uses })
    if (this.#instances.spare === undefined) void this.#instances.prepare()
    else this.#serveWaiting()
  }

  // ── between runs ──────────────────────────────────────────────────────────────────────────────────────────────

  #serveWaiting(): void {
    while (this.#waiting.length > 0 && this.#course === undefined && this.#instances.spare !== undefined) {
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
