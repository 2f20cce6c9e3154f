import { messageOf } from '../../errors/index.ts'
import { type HostFrame, LineSplitter, PROTOCOL_VERSION, type ReadyFrame } from '../../protocol/index.ts'
import type { Channel, Ending } from '../../sandbox/index.ts'
import { BrokerRun, type KillCause } from './broker-run.ts'
import type { GuestProcess } from './guest-process.ts'
import type { GuestMessage } from './guest/wire.ts'
import { Instances } from './instances.ts'
import { listen } from './listen.ts'
import { Outbox } from './outbox.ts'
import { bodyOf, COLLECTED_MS, orderOf, refusalOf, type Request, tooLarge } from './requests.ts'
import type { Spare, StartGuest } from './spare.ts'
import { cut } from './text.ts'

const MAX_REQUEST_BYTES = 80 * 1024 * 1024
/** Of answers that a script does not read. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024
/** So long a script has all of the machine; then the next instance is made beside it. A shorter one is over before. */
const ALONE_MS = 100
const MAX_WARNING = 500
const ANSWER_HEAD = '{"type":"tool_result",'
const NO_BYTES: Uint8Array = new Uint8Array()

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
  #run: BrokerRun | undefined
  #guest: GuestProcess | undefined
  #intakeOf: string | undefined
  #uses = 0
  #isOver = false
  #collecting = false
  #wake: NodeJS.Timeout | undefined

  constructor(options: BrokerOptions) {
    this.#options = options
    this.#outbox = new Outbox((paused) => this.#press(paused))
    this.#instances = new Instances({
      ...options,
      onReady: () => this.#serveWaiting(),
      onFailed: (error) => {
        // During a run, it is tried again when that is over.
        if (this.#run === undefined) this.#fail('harness', String(error))
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
    clearTimeout(this.#wake)
    this.#outbox.end()
    await this.#instances.end(this.#guest)
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
      const run = this.#run
      const mine = run !== undefined && head.startsWith(`${ANSWER_HEAD}"execution_id":${JSON.stringify(run.id)},`)
      if (mine) this.#answer(line)
      return
    }
    const text = Buffer.from(line).toString('utf8').trim()
    if (text === '') return
    const frame = JSON.parse(text) as HostFrame
    if (frame.type === 'ping') this.#send({ type: 'pong', nonce: frame.nonce })
    else if (frame.type === 'cancel') this.#cancel(frame.execution_id)
    else if (this.#instances.spare === undefined && this.#run === undefined) this.#waiting.push(frame)
    else this.#serve(frame)
  }

  #serve(frame: HostFrame): void {
    switch (frame.type) {
      case 'file_put':
        if (this.#run !== undefined) return // its `execute` will be refused
        this.#belongTo(frame.execution_id)
        return this.#instances.spare?.guest.send({
          type: 'put',
          path: frame.path,
          mode: frame.mode,
          offset: frame.offset,
          contentBase64: frame.content_base64,
        })
      case 'execute':
        if (this.#options.checker !== true || this.#run !== undefined) return void this.#execute(frame)
        this.#forget()
        return this.#refuse(frame, 'request', 'this sandbox is there to check scripts; it runs none')
      case 'check':
        return void this.#execute(frame)
      case 'reset':
        if (this.#run === undefined) this.#forget()
        return this.#send({ type: 'reset_done', nonce: frame.nonce, reusable: this.#run === undefined })
      case 'ping':
      case 'cancel':
      case 'tool_result':
        return undefined // served at once
    }
  }

  #cancel(id: string): void {
    if (this.#run?.id === id) {
      if (!this.#collecting) this.#kill('cancelled')
      return
    }
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

  #answer(line: Uint8Array): void {
    const guest = this.#guest
    const run = this.#run
    if (guest === undefined || run === undefined || run.finished || run.hasEnded) return
    const fits = guest.unsentBytes + line.length <= MAX_UNREAD_BYTES
    guest.sendToScript(fits ? line : tooLarge(line))
  }

  // ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #execute(request: Request): Promise<void> {
    const { spare } = this.#instances
    if (this.#run !== undefined || spare === undefined) {
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
    this.#guest = spare.guest
    const run = (this.#run = new BrokerRun(request, this.#outbox, (afterMs) => this.#wakeAfter(afterMs)))
    const killing = setTimeout(() => this.#kill('timeout'), run.killAt - performance.now())
    // A script that waits for an answer sees the deadline only when it is woken.
    const waking = setTimeout(() => this.#wakeNow(), run.deadline - performance.now() + 5)
    const preparing = setTimeout(() => void this.#instances.prepare(), ALONE_MS)
    try {
      await this.#follow(run, spare)
    } catch (error) {
      // A guest that does not speak as ours do is no guest of ours any more.
      this.#fail('harness', `what an instance said cannot be read: ${messageOf(error)}`)
    } finally {
      clearTimeout(killing)
      clearTimeout(waking)
      clearTimeout(preparing)
      clearTimeout(this.#wake)
    }
  }

  async #follow(run: BrokerRun, spare: Spare): Promise<void> {
    const { guest } = spare
    const { request } = run
    const drained = listen(guest, run, () => {
      if (run.over) this.#kill('output-limit')
    })
    guest.send(orderOf(run))
    guest.sendToScript(Buffer.from(JSON.stringify(bodyOf(run))))
    for (;;) {
      const next = await guest.control.next()
      if (next.done === true) break
      const message = next.value
      if (message.type === 'refused') {
        for (const stream of [guest.frames, guest.stdout, guest.stderr]) stream.removeAllListeners('data')
        this.#run = this.#guest = undefined
        this.#instances.putBack(spare)
        const shown = cut(JSON.stringify(message.path), 400)
        const text = `the file ${shown} could not be put into the workspace: ${cut(message.reason, 200)}`
        this.#refuse(request, 'request', text)
        return this.#serveWaiting()
      }
      await this.#takeControl(run, message, drained, () => guest.kill())
      if (message.type === 'collected') break
    }
    guest.kill()
    await drained
    guest.destroy() // what it still says to nobody must not hold its end up
    const gone = this.#instances.endOf(guest)
    // One that had come to its end runs no step more once it is killed: to free its memory takes the kernel several times
    // as long as a short run, and nobody has to wait for that but the end of the sandbox.
    const { code, signal } = run.hasEnded ? { code: null, signal: null } : await gone
    if (this.#isOver) return
    this.#finish(run, code, signal, guest.lastWords())
  }

  async #takeControl(
    run: BrokerRun,
    message: GuestMessage,
    drained: Promise<unknown>,
    kill: () => void,
  ): Promise<void> {
    if (message.type === 'ended' && !run.hasEnded) {
      run.hasEnded = true
      run.exitCode = typeof message.exitCode === 'number' ? message.exitCode : null
      run.fault = typeof message.fault === 'string' ? message.fault : null
      this.#collecting = true
      setTimeout(kill, COLLECTED_MS).unref()
      await drained // files come after everything else
    } else if (message.type === 'file' && run.hasEnded) {
      const { path, size, offset, contentBase64 } = message
      run.emit({ type: 'file', path, size, offset, content_base64: contentBase64 }, false)
      await this.#outbox.room()
    } else if (message.type === 'collected') {
      run.limitsHit = message.limitsHit.map(String)
      for (const text of message.skipped) {
        run.warnings.push({ code: 'collect_skipped', message: cut(String(text), MAX_WARNING) })
      }
    } else if (message.type === 'out-of-memory') {
      run.killedFor ??= 'memory'
    }
  }

  #kill(cause: KillCause): void {
    const run = this.#run
    if (run === undefined || run.hasEnded) return
    run.killedFor ??= cause
    this.#guest?.kill()
    this.#press(false) // what is left in the pipes is not much
  }

  #finish(run: BrokerRun, code: number | null, signal: string | null, words: string): void {
    run.conclude(code, words)
    run.lastWords()
    this.#uses += 1
    this.#run = this.#guest = undefined
    this.#collecting = false
    this.#send({ ...run.done(signal), reusable: true, use: this.#uses })
    if (this.#instances.spare === undefined) void this.#instances.prepare()
    else this.#serveWaiting()
  }

  // ── between runs ──────────────────────────────────────────────────────────────────────────────────────────────

  #serveWaiting(): void {
    while (this.#waiting.length > 0 && this.#run === undefined && this.#instances.spare !== undefined) {
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

  #wakeAfter(ms: number): void {
    clearTimeout(this.#wake)
    if (ms < 1) this.#wakeNow()
    else this.#wake = setTimeout(() => this.#wakeNow(), Math.min(ms, 3_600_000))
  }

  #wakeNow(): void {
    if (this.#run?.hasTools === true && !this.#run.hasEnded) this.#guest?.sendToScript(NO_BYTES)
  }

  /** A host that does not read stops the reading of what the script says, and so the script; no deadline waits for it. */
  #press(paused: boolean): void {
    const guest = this.#guest
    if (guest === undefined || this.#run === undefined) return
    for (const stream of [guest.frames, guest.stdout, guest.stderr]) {
      if (paused) stream.pause()
      else stream.resume()
    }
  }
}
