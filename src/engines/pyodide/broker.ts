import { SandglassError } from '../../errors/index.ts'
import {
  CAPS,
  type CheckFrame,
  type HostFrame,
  LineSplitter,
  PROTOCOL_VERSION,
  type PythonToolSource,
  type ReadyFrame,
} from '../../protocol/index.ts'
import type { Channel, Ending } from '../../sandbox/index.ts'
import { BrokerRun, type KillCause } from './broker-run.ts'
import type { GuestMessage } from './guest/wire.ts'
import { Outbox } from './outbox.ts'
import { makeSpare, type Spare, type StartGuest } from './spare.ts'
import { cut } from './text.ts'

type ExecuteFrame = Extract<HostFrame, { type: 'execute' }>
type Request = ExecuteFrame | CheckFrame

const MAX_REQUEST_BYTES = 80 * 1024 * 1024
/** Of answers that a script does not read. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024
const COLLECT_MS = 5000
/** So long a script has all of the machine; then the next instance is made beside it. A shorter one is over before. */
const ALONE_MS = 100
/** Of it, what may lie behind the deadline. */
const AFTER_DEADLINE_MS = 300
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
  readonly #fatal: string[] = []
  readonly #waiting: HostFrame[] = []
  readonly #settle: (ending: Ending) => void
  #spare: Spare | undefined
  /** Who waits for the next one. */
  #wanted = Promise.withResolvers<void>()
  /** The instance that is being made. */
  #making: Promise<Spare | undefined> | undefined
  #starting: Spare['guest'] | undefined
  /** Killed, and not yet gone. */
  readonly #dying = new Set<Promise<unknown>>()
  #run: BrokerRun | undefined
  #guest: Spare['guest'] | undefined
  #intakeOf: string | undefined
  #uses = 0
  #isOver = false
  #collecting = false
  #wake: NodeJS.Timeout | undefined

  constructor(options: BrokerOptions) {
    this.#options = options
    this.#outbox = new Outbox((paused) => this.#press(paused))
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
    const spare = await this.#prepareSpare()
    if (spare === undefined) throw new Error('it was ended before it was ready')
    const { python, loaded, checks } = spare
    return { type: 'ready', protocol: PROTOCOL_VERSION, python, ...loaded, checks }
  }

  /** Resolves when there is an instance for the next script, or when all is over. */
  recovered(): Promise<void> {
    return this.#spare !== undefined && !this.#isOver ? Promise.resolve() : this.#wanted.promise
  }

  /** Ends everything. Idempotent. */
  async end(ending: Ending): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#wake)
    this.#outbox.end()
    const guests = [this.#spare?.guest, this.#starting, this.#guest].filter((guest) => guest !== undefined)
    for (const guest of guests) guest.destroy()
    await Promise.all([...guests.map((guest) => guest.ended), ...this.#dying])
    this.#options.release?.()
    this.#settle(ending)
    this.#wanted.resolve() // not earlier: who waits would take it for one that lives
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

  #take(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return Promise.reject(new Error('the sandbox is gone'))
    try {
      for (const line of this.#inbox.push(bytes)) this.#takeLine(line)
    } catch {
      // What no host sends: a line that is too long, or no JSON.
      void this.end({ cause: 'exit', exitCode: 1, signal: null, by: 'harness', message: 'a request cannot be read' })
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
    else if (this.#spare === undefined && this.#run === undefined) this.#waiting.push(frame)
    else this.#serve(frame)
  }

  #serve(frame: HostFrame): void {
    switch (frame.type) {
      case 'file_put':
        if (this.#run !== undefined) return // its `execute` will be refused
        this.#belongTo(frame.execution_id)
        return this.#spare?.guest.send({
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
    if (this.#intakeOf !== undefined) this.#spare?.guest.send({ type: 'wipe' })
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
    const spare = this.#spare
    if (this.#run !== undefined || spare === undefined) {
      return this.#refuse(request, 'request', 'SANDBOX_BUSY: this sandbox is busy with another run')
    }
    this.#belongTo(request.execution_id)
    const problem = request.type === 'execute' ? problemOfSources(request.tool_sources ?? []) : undefined
    if (problem !== undefined) {
      this.#forget()
      return this.#refuse(request, 'request', problem)
    }
    const missing =
      request.type === 'execute' ? request.required_secrets.filter((name) => !Object.hasOwn(request.secrets, name)) : []
    if (missing.length > 0) {
      this.#forget()
      return this.#refuse(request, 'secrets', `required secrets are missing: ${missing.join(', ')}`)
    }
    this.#intakeOf = undefined
    this.#spare = undefined
    this.#guest = spare.guest
    const run = (this.#run = new BrokerRun(request, this.#outbox, (afterMs) => this.#wakeAfter(afterMs)))
    const killing = setTimeout(() => this.#kill('timeout'), run.killAt - performance.now())
    // A script that waits for an answer sees the deadline only when it is woken.
    const waking = setTimeout(() => this.#wakeNow(), run.deadline - performance.now() + 5)
    const preparing = setTimeout(() => void this.#prepareSpare(), ALONE_MS)
    try {
      await this.#follow(run, spare)
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
    const budgetMs = Math.min(
      Math.max(request.timeout_sec * 1000 + AFTER_DEADLINE_MS, AFTER_DEADLINE_MS / 2),
      COLLECT_MS,
    )
    const memoryBytes = request.type === 'execute' ? request.limits.memory_bytes : undefined
    const drained = this.#listen(run, guest)
    guest.send({
      type: 'run',
      deadlineMs: Math.max(0, run.deadline - performance.now()),
      collect: request.type === 'execute' ? request.collect : [],
      collectMs: budgetMs,
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
    })
    guest.sendToScript(Buffer.from(JSON.stringify(bodyOf(run))))
    for (;;) {
      const next = await guest.control.next()
      if (next.done === true) break
      const message = next.value
      if (message.type === 'refused') {
        for (const stream of [guest.frames, guest.stdout, guest.stderr]) stream.removeAllListeners('data')
        this.#run = this.#guest = undefined
        this.#putBack(spare)
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
    const gone = this.#awaitEnd(guest)
    // One that had come to its end runs no step more once it is killed: to free its memory takes the kernel several times
    // as long as a short run, and nobody has to wait for that but the end of the sandbox.
    const { code, signal } = run.hasEnded ? { code: null, signal: null } : await gone
    if (this.#isOver) return
    this.#finish(run, code, signal, guest.lastWords())
  }

  /** Takes what the script says. Resolves when nothing more comes. */
  #listen(run: BrokerRun, guest: Spare['guest']): Promise<unknown> {
    const look = (): void => {
      if (run.over) this.#kill('output-limit')
    }
    guest.frames.on('data', (chunk: Uint8Array) => {
      run.takeFrames(chunk)
      look()
    })
    const streams = [guest.stdout, guest.stderr]
    for (const [n, stream] of streams.entries()) {
      stream.on('data', (chunk: Uint8Array) => {
        run.streams[n]?.take(chunk)
        look()
      })
    }
    const over = [guest.frames, ...streams].map(
      (stream) =>
        new Promise<void>((resolve) => {
          stream.once('close', () => resolve())
        }),
    )
    return Promise.all(over).then(() => {
      for (const stream of run.streams) stream.end()
      return undefined
    })
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
      setTimeout(kill, COLLECT_MS + AFTER_DEADLINE_MS).unref()
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
    const [stdout, stderr] = run.streams
    if (run.over) run.killedFor ??= 'output-limit'
    if (!run.hasEnded && run.killedFor === undefined) {
      if (/heap out of memory|Allocation failed/.test(words)) run.killedFor = 'memory'
      else run.exitCode = code
    }
    if (!run.hasEnded && run.request.type === 'execute' && run.request.collect.length > 0) {
      run.warnings.push({ code: 'collect_skipped', message: 'the files were lost with the process, which was killed' })
    }
    if (run.killedFor === undefined && run.exitCode !== null && !run.finished && !run.toldError) {
      if (performance.now() >= run.deadline) run.killedFor = 'timeout' // its own words were lost
    }
    run.lastWords()
    this.#uses += 1
    this.#run = this.#guest = undefined
    this.#collecting = false
    this.#send({
      type: 'script_done',
      execution_id: run.id,
      ending: run.ending(signal),
      duration_ms: Math.round((performance.now() - run.startedAt) * 1000) / 1000,
      stdout_bytes: stdout.bytes,
      stderr_bytes: stderr.bytes,
      limits_hit: run.limitsHit,
      warnings: run.warnings,
      memory_kills: run.killedFor === 'memory' ? 1 : 0,
      reusable: true,
      use: this.#uses,
    })
    if (this.#spare === undefined) void this.#prepareSpare()
    else this.#serveWaiting()
  }

  // ── between runs ──────────────────────────────────────────────────────────────────────────────────────────────

  #prepareSpare(): Promise<Spare | undefined> {
    if (this.#spare !== undefined || this.#isOver) return Promise.resolve(this.#spare)
    return (this.#making ??= this.#makeSpare())
  }

  async #makeSpare(): Promise<Spare | undefined> {
    const first = this.#uses === 0 && this.#run === undefined && !this.#isOver
    try {
      const spare = await makeSpare(
        (fatal) => {
          if (this.#isOver) throw new SandglassError('aborted', 'the sandbox was ended while an instance was made')
          const guest = this.#options.start(fatal)
          this.#starting = guest // so that an end meanwhile ends it too
          return guest
        },
        this.#fatal,
        this.#options.startTimeoutMs,
      )
      this.#starting = undefined
      if (this.#isOver || this.#spare !== undefined) {
        spare.guest.destroy()
        return undefined
      }
      this.#has(spare)
      void spare.guest.ended.then(() => this.#spareEnded(spare))
      this.#serveWaiting()
      return spare
    } catch (error) {
      if (first) throw error
      if (this.#run !== undefined) return undefined // tried again when the run is over
      void this.end({ cause: 'exit', exitCode: 1, signal: null, by: 'harness', message: String(error) })
      return undefined
    } finally {
      this.#making = undefined // before anybody who waited for it goes on
    }
  }

  #has(spare: Spare): void {
    this.#spare = spare
    this.#wanted.resolve()
    this.#wanted = Promise.withResolvers()
  }

  /** The instance of a run that was refused is as it was; one that was made meanwhile is not needed. */
  #putBack(spare: Spare): void {
    const other = this.#spare
    this.#has(spare)
    if (other === undefined) return
    other.guest.destroy()
    void this.#awaitEnd(other.guest)
  }

  /** The end of a guest that was killed, for which the end of all waits. */
  #awaitEnd(guest: Spare['guest']): Spare['guest']['ended'] {
    const gone = guest.ended.finally(() => this.#dying.delete(gone))
    this.#dying.add(gone)
    return gone
  }

  /** An instance that ends while it waits is nobody's doing but the machine's. */
  #spareEnded(spare: Spare): void {
    if (this.#spare !== spare || this.#isOver) return
    const message = spare.guest.lastWords()
    void this.end({ cause: 'exit', exitCode: 1, signal: null, by: 'kernel', message })
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0 && this.#run === undefined && this.#spare !== undefined) {
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

/** What is wrong with the Python tools that a run brings. */
function problemOfSources(sources: readonly PythonToolSource[]): string | undefined {
  if (sources.length > CAPS.toolSources) {
    return `the run brings ${sources.length} Python tools; at most ${CAPS.toolSources} are allowed`
  }
  for (const { name, source } of sources) {
    const bytes = Buffer.byteLength(source)
    if (bytes > CAPS.toolSourceBytes) {
      return `the source of the Python tool ${name} has ${bytes} bytes; at most ${CAPS.toolSourceBytes}`
    }
  }
  return undefined
}

/** What the script's process is told. */
function bodyOf(run: BrokerRun): object {
  const { request, timeoutText } = run
  if (request.type === 'execute') {
    const { script, inputs, secrets, tools, tool_sources } = request
    return { script, inputs, secrets, timeout_text: timeoutText, tools, tool_sources, check: null }
  }
  const { script, mode, policy, names, allow_modules, tools } = request
  const check = { mode, policy, names, allow_modules, tools }
  return { script, inputs: {}, secrets: {}, timeout_text: timeoutText, tools: null, check }
}

/** In place of an answer that there is no room for. The host writes an answer's id before all else. */
function tooLarge(line: Uint8Array): Uint8Array {
  const id = /"id":("(?:[^"\\]|\\.)*")/.exec(Buffer.from(line.subarray(0, 1024)).toString('utf8'))?.[1] ?? '""'
  const error = { code: 'result_too_large', message: 'the script has too many answers that it did not read yet' }
  return Buffer.from(`{"type":"tool_result","id":${id},"error":${JSON.stringify(error)}}\n`)
}
