import {
  CAPS,
  decodeLine,
  encodeToolResult,
  type HarnessFrame,
  LineSplitter,
  LineTooLongError,
  type ToolCallFrame,
} from '../protocol/index.ts'
import { constants } from 'node:buffer'
import { type Gathered, outputLimitMessage } from './gathered.ts'
import type { Hurry } from './hurry.ts'
import { Interrupt } from './interrupt.ts'
import { Departure, type Parting, type ScriptDone } from './parting.ts'
import type { PreparedRun } from './prepare.ts'
import type { RunEvent } from './result.ts'
import { Sender } from './sender.ts'
import type { ToolPort } from './tool-port.ts'

/** How long after its timeout a run may stay unanswered (EX-08). */
const BACKSTOP_MS = 5000
/** How long after the timeout a harness kills a script that does not end by itself; it needs the processor for that. */
const KILL_MS = 300
/** How long a harness may take to confirm a cancellation, and a closed pipe to show in both directions. */
const GRACE_MS = 2000
/** How long frames may still be on their way to a harness that has ended the run. */
const DRAIN_MS = 1000
/** What the frames of all tool calls of a run may take, each taken for {@link MIN_CALL_BYTES} at least. */
const MAX_CALLS_BYTES = 1024 * 1024 * 1024
const MIN_CALL_BYTES = 4096
/** A `file` frame and the harness's own messages fit into a line, however small `maxOutputBytes` is. */
const MIN_LINE_BYTES = 512 * 1024
const LINE_SLACK_BYTES = 64 * 1024

/** A callback failed: which, and with what. */
export class CallbackError extends Error {
  override readonly name = 'CallbackError'
  readonly callback: string

  constructor(callback: string, cause: unknown) {
    super(`${callback} threw`, { cause })
    this.callback = callback
  }
}

/** One run over one channel: sends and reads at the same time, until there is a reason to part. */
export class Conversation {
  readonly #run: PreparedRun
  readonly #gathered: Gathered
  readonly #deliver: (event: RunEvent) => Promise<void>
  readonly #sender: Sender
  readonly #hurry: Hurry
  readonly #splitter: LineSplitter
  readonly #interrupt = new Interrupt()
  readonly #tools: ToolPort | undefined
  /** What is being read while news of tool calls are told. */
  #receiving: Promise<Uint8Array | null> | undefined
  #news = Promise.withResolvers<undefined>()
  #receivedBytes = 0
  #readBytes = 0
  #grace: NodeJS.Timeout | undefined
  #cancelling = false
  #muted = false
  #callBytes = 0

  /**
   * @param deliver awaited for each event before the next line is read (EX-12); throws {@link CallbackError}.
   * @param hurry told when the run should be over.
   */
  constructor(run: PreparedRun, gathered: Gathered, deliver: (event: RunEvent) => Promise<void>, hurry: Hurry) {
    this.#run = run
    this.#gathered = gathered
    this.#deliver = deliver
    this.#hurry = hurry
    this.#sender = new Sender(run)
    const longest = Math.max(run.maxOutputBytes, MIN_LINE_BYTES, run.tools === undefined ? 0 : CAPS.toolBytes)
    this.#splitter = new LineSplitter(Math.min(longest + LINE_SLACK_BYTES, constants.MAX_STRING_LENGTH))
    this.#tools = this.#openTools()
  }

  /** Settles within the timeout and {@link BACKSTOP_MS}, whatever the peer or a callback does. */
  async hold(): Promise<Parting> {
    const backstop = setTimeout(
      () => this.#interrupt.fire({ kind: 'deadline' }),
      Math.ceil(this.#run.timeoutSec * 1000) + BACKSTOP_MS,
    )
    // Calls that wait for their turn must not stand before the last frame of a run that is over.
    const lastCall =
      this.#tools === undefined
        ? undefined
        : setTimeout(() => this.#tools?.close(), Math.ceil(this.#run.timeoutSec * 1000) + KILL_MS)
    const onAbort = (): void => this.#cancel()
    this.#run.signal?.addEventListener('abort', onAbort, { once: true })
    try {
      return await this.#talk()
    } catch (error) {
      if (error instanceof Departure) return error.parting
      if (error instanceof LineTooLongError) return this.#flooded()
      throw error
    } finally {
      clearTimeout(backstop)
      clearTimeout(lastCall)
      clearTimeout(this.#grace)
      this.#tools?.close()
      this.#hurry.stop()
      this.#run.signal?.removeEventListener('abort', onAbort)
    }
  }

  async #talk(): Promise<Parting> {
    const { executionId, sandbox, timeoutSec } = this.#run
    await this.#tell([{ type: 'started', executionId, sandboxId: sandbox.id }])
    this.#sender.start().then(
      () => this.#hurry.after(Math.ceil(timeoutSec * 1000) + KILL_MS),
      () => this.#partAfter(GRACE_MS, { kind: 'closed' }),
    )
    for (;;) {
      const chunk = await this.#receive()
      await this.#tell(this.#gathered.toolLog.takeNews())
      if (chunk === undefined) continue
      if (chunk === null) return this.#close()
      await this.#read(chunk)
      if (this.#gathered.done !== undefined) return this.#conclude(this.#gathered.done)
    }
  }

  #openTools(): ToolPort | undefined {
    const { executionId, tools } = this.#run
    const { redactor, toolLog } = this.#gathered
    return tools?.open({
      executionId,
      redact: (text) => redactor.text(text),
      answer: (id, answer) => this.#sender.answer(() => encodeToolResult(executionId, id, answer)),
      began: (call, effect) => toolLog.began(call, effect),
      ended: (id, outcome) => {
        toolLog.ended(id, outcome)
        this.#news.resolve(undefined)
      },
    })
  }

  /** The next chunk, null at the end, or undefined when there are news of tool calls first. */
  async #receive(): Promise<Uint8Array | null | undefined> {
    this.#receiving ??= this.#run.sandbox.channel.receive()
    try {
      const work = this.#tools === undefined ? this.#receiving : Promise.race([this.#receiving, this.#news.promise])
      const chunk = await this.#interrupt.wait(work)
      // Each time anew: a promise that stays pending would keep every chunk that won against it.
      this.#news = Promise.withResolvers()
      if (chunk !== undefined) this.#receiving = undefined
      return chunk
    } catch (error) {
      if (error instanceof Departure) throw error
      // A channel that cannot be read any more is at its end.
      return null
    }
  }

  async #read(chunk: Uint8Array): Promise<void> {
    this.#receivedBytes += chunk.length
    for (const line of this.#splitter.push(chunk)) {
      this.#readBytes += line.length + 1
      const decoded = decodeLine(line)
      if (this.#tools !== undefined && decoded.kind === 'frame' && this.#isCall(decoded.frame)) {
        this.#countCall(line.length)
        await this.#interrupt.wait(this.#tools.take(decoded.frame))
        await this.#tell(this.#gathered.toolLog.takeNews())
        continue
      }
      await this.#tell(this.#gathered.take(decoded, line))
      if (this.#gathered.done !== undefined) return
    }
  }

  /** Far above what scripts need: calls count towards no other limit, also those that come to nothing. */
  #countCall(bytes: number): void {
    this.#callBytes += Math.max(bytes, MIN_CALL_BYTES)
    if (this.#callBytes <= MAX_CALLS_BYTES) return
    throw new Departure({ kind: 'output-limit', message: 'the script made more tool calls than one run can carry' })
  }

  /** Calls in the name of another run are output like all else that nobody sends. */
  #isCall(frame: HarnessFrame): frame is ToolCallFrame {
    return frame.type === 'tool_call' && frame.execution_id === this.#run.executionId
  }

  async #conclude(frame: ScriptDone): Promise<Parting> {
    const parting = { kind: 'done', frame } as const
    // A harness that ended the run early would take an `execute` sent now for a new run.
    if (!this.#sender.executeBegun) this.#sender.stop()
    try {
      this.#tools?.close()
      await this.#tell([...this.#gathered.toolLog.takeNews(), ...this.#gathered.flush()])
      const clean = this.#readBytes === this.#receivedBytes && this.#sender.executeBegun
      clearTimeout(this.#grace)
      this.#partAfter(DRAIN_MS, { ...parting, clean: false })
      await this.#interrupt.wait(this.#sender.idle())
      return { ...parting, clean }
    } catch {
      return { ...parting, clean: false }
    }
  }

  async #close(): Promise<Parting> {
    this.#takeUnfinished()
    await this.#tell(this.#gathered.flush())
    return { kind: 'closed' }
  }

  #flooded(): Parting {
    this.#takeUnfinished()
    const { maxOutputBytes } = this.#run
    const tooLong = maxOutputBytes > constants.MAX_STRING_LENGTH ? '; a single line can not be that long' : ''
    return { kind: 'output-limit', message: outputLimitMessage(maxOutputBytes) + tooLong }
  }

  #takeUnfinished(): void {
    this.#gathered.takeUnfinished(this.#receivedBytes - this.#readBytes)
  }

  /** After a callback threw, none is called again. */
  async #tell(events: readonly RunEvent[]): Promise<void> {
    for (const event of events) {
      if (this.#muted) return
      try {
        await this.#interrupt.wait(this.#deliver(event))
      } catch (error) {
        if (!(error instanceof CallbackError)) throw error
        this.#muted = true
        this.#gathered.callbackFailed(error.callback, error.cause)
        this.#cancel()
      }
    }
  }

  #cancel(): void {
    if (this.#cancelling) return
    this.#cancelling = true
    if (!this.#sender.executeBegun) {
      this.#sender.stop()
      this.#interrupt.fire({ kind: 'cancelled' })
      return
    }
    this.#hurry.now()
    this.#tools?.close()
    this.#partAfter(GRACE_MS, { kind: 'cancelled' })
    // A peer that is gone shows at the reading side.
    this.#sender.cancel().catch(() => undefined)
  }

  #partAfter(ms: number, parting: Parting): void {
    clearTimeout(this.#grace)
    this.#grace = setTimeout(() => this.#interrupt.fire(parting), ms)
  }
}
