import {
  CAPS,
  decodeLine,
  encodeToolResult,
  LineSplitter,
  LineTooLongError,
  MAX_PLAIN_PARTS,
  type ToolCallFrame,
} from '../protocol/index.ts'
import { constants } from 'node:buffer'
import type { SandglassError } from '../errors/index.ts'
import { Countdown, formatValue, MAX_JSON_PARTS } from '../support/index.ts'
import { type RunTranscript, outputLimitMessage } from './run-transcript.ts'
import type { CpuBoost } from './cpu-boost.ts'
import { Interrupt } from './interrupt.ts'
import { EndConversation, type ConversationEnd, type ScriptDone } from './conversation-end.ts'
import type { PreparedRun } from './prepare.ts'
import type { RunEvent } from './result.ts'
import { invalid } from './invalid.ts'
import { Sender, SourceError } from './sender.ts'
import { maxApprovalSec, ToolClock } from './tool-clock.ts'
import type { ToolPort } from './tool-port.ts'
import { isCallOf, ToolSocket } from './tool-socket.ts'

/** Time after a run's deadline for an answer of the harness. */
const BACKSTOP_MS = 5000
/** Time for a harness to confirm a cancellation, and for both directions of a closed channel to report it. */
const GRACE_MS = 2000
/** Time for a harness to confirm the cancellation of a cell: it waits for the copy, ends what the cell started, and the copy takes over. */
const CELL_GRACE_MS = 5000
/** Time in which frames may still be on their way to a harness that has ended the run. */
const DRAIN_MS = 1000
/** The maximum of bytes of all tool calls of a run together; each counts at least {@link MIN_CALL_BYTES}. */
const MAX_CALLS_BYTES = 1024 * 1024 * 1024
const MIN_CALL_BYTES = 4096
/** Minimum length limit of a line, so that `file` frames and the harness's own messages fit, however small `maxOutputBytes` is. */
const MIN_LINE_BYTES = 512 * 1024
const LINE_SLACK_BYTES = 64 * 1024

/** A callback threw `cause`. */
export class CallbackError extends Error {
  override readonly name = 'CallbackError'
  readonly callback: string

  constructor(callback: string, cause: unknown) {
    super(`${callback} threw`, { cause })
    this.callback = callback
  }
}

/** One run over one channel: sends and reads at the same time, until there is a reason to end. */
export class Conversation {
  readonly #run: PreparedRun
  readonly #transcript: RunTranscript
  readonly #deliver: (event: RunEvent) => Promise<void>
  readonly #sender: Sender
  readonly #boost: CpuBoost
  readonly #splitter: LineSplitter
  /** Maximum number of values in a line. The lines of a check hold no values from a script. */
  readonly #maxParts: number
  readonly #interrupt = new Interrupt()
  readonly #tools: ToolPort | undefined
  readonly #toolClock: ToolClock
  /** The read that stays pending while events of tool calls are delivered. */
  #receiving: Promise<Uint8Array | null> | undefined
  #news = Promise.withResolvers<undefined>()
  #receivedBytes = 0
  #readBytes = 0
  #grace: NodeJS.Timeout | undefined
  #cancelling = false
  #muted = false
  #callBytes = 0
  /** The reason that the run could not begin. */
  #startError: SandglassError | undefined
  /** The socket for tool calls, if the run has one; else they use the channel. */
  readonly #socket: ToolSocket | undefined
  /** Stop the clock of the calls that wait for approval. */
  readonly #approvals = new Set<() => void>()
  #isStarted = false

  /**
   * @param deliver awaited for each event before the next line is read; throws {@link CallbackError}.
   * @param boost lifts the CPU limit when the run should be over.
   */
  constructor(
    run: PreparedRun,
    transcript: RunTranscript,
    deliver: (event: RunEvent) => Promise<void>,
    boost: CpuBoost,
  ) {
    this.#run = run
    this.#maxParts = run.checks ? MAX_PLAIN_PARTS : Math.max(MAX_JSON_PARTS, run.maxOutputBytes)
    this.#transcript = transcript
    this.#deliver = deliver
    this.#boost = boost
    this.#sender = new Sender(run)
    const longest = Math.max(
      run.maxOutputBytes,
      MIN_LINE_BYTES,
      CAPS.displayBytes,
      run.tools === undefined ? 0 : CAPS.argBytes,
    )
    this.#splitter = new LineSplitter(Math.min(longest + LINE_SLACK_BYTES, constants.MAX_STRING_LENGTH), true)
    const maxTimes = { toolsMs: run.maxToolWaitSec * 1000, approvalsMs: maxApprovalSec(run.tools) * 1000 }
    this.#toolClock = new ToolClock(maxTimes, (movedMs, moving) => {
      // The reading side reports a closed channel.
      this.#sender.toolTime(movedMs, moving).catch(() => undefined)
    })
    this.#tools = this.#openTools()
    if (run.endpoint !== undefined) {
      this.#socket = new ToolSocket(run.endpoint, run.executionId, {
        onMessages: () => this.#news.resolve(undefined),
        onClose: () => this.#endCalls(),
      })
    }
  }

  /**
   * Settles within the sum of the timeout, the time of tools and approvals, the time to send the files, and {@link BACKSTOP_MS},
   * whatever the peer or a callback does.
   * @throws SandglassError `invalid_request` for a file whose source fails; `websocket_failed`.
   */
  async hold(): Promise<ConversationEnd> {
    const backstop = this.#atDeadline(BACKSTOP_MS, () => this.#expire())
    // Calls that wait for their turn must not delay the last frame of a run that is over.
    const lastCall = this.#tools === undefined ? undefined : this.#atDeadline(CAPS.graceMs, () => this.#endTools())
    const onAbort = (): void => this.#cancel()
    this.#run.signal?.addEventListener('abort', onAbort, { once: true })
    try {
      return await this.#converse()
    } catch (error) {
      if (this.#startError !== undefined) throw this.#startError
      if (error instanceof EndConversation) return error.end
      if (error instanceof LineTooLongError) return this.#endFlood()
      throw error
    } finally {
      backstop.stop()
      lastCall?.stop()
      clearTimeout(this.#grace)
      this.#sender.stop()
      this.#closeTools()
      this.#socket?.close()
      this.#boost.stop()
      this.#run.signal?.removeEventListener('abort', onAbort)
    }
  }

  /** True once the harness knows of the run. */
  get hasBegun(): boolean {
    return this.#sender.executeBegun
  }

  async #converse(): Promise<ConversationEnd> {
    // With a socket, the script starts when it is connected.
    if (this.#socket === undefined) await this.#deliverStart()
    this.#sender.start().then(
      () => {
        const now = performance.now()
        // The harness needs CPU time for its kill.
        this.#boost.after(this.#remainingMsFrom(() => now, CAPS.graceMs))
        this.#socket?.limitConnect((error) => this.#failStart(error))
      },
      (error: unknown) => {
        if (error instanceof SourceError) this.#failStart(error.cause)
        else this.#endAfter(GRACE_MS, { kind: 'closed' })
      },
    )
    for (;;) {
      const chunk = await this.#receive()
      if (this.#socket?.hasMessages === true) await this.#takeMessages(this.#socket)
      await this.#deliverAll(this.#transcript.toolLog.takeNews())
      if (chunk === undefined) continue
      if (chunk === null) return this.#close()
      await this.#read(chunk)
      this.#run.sandbox.channel.release?.()
      if (this.#transcript.done !== undefined) return this.#conclude(this.#transcript.done)
    }
  }

  /** Calls a function this long after the deadline, which moves while tools execute. */
  #atDeadline(afterMs: number, onEnd: () => void): Countdown {
    // The time to send files does not count towards the script's timeout.
    return new Countdown(
      this.#remainingMsFrom(() => this.#sender.beginsAt, afterMs),
      onEnd,
    )
  }

  #remainingMsFrom(started: () => number, afterMs: number): () => number {
    const ms = Math.ceil(this.#run.timeoutSec * 1000) + afterMs
    return () => started() + ms + this.#toolClock.movedMs - performance.now()
  }

  #expire(): void {
    const { awaited } = this.#sender
    if (awaited === undefined) return this.#interrupt.fire({ kind: 'deadline' })
    this.#failStart(invalid(`files[${formatValue(awaited)}]`, 'its source sent no more data before the timeout'))
  }

  /** Ends a run that has not begun. */
  #failStart(error: SandglassError): void {
    this.#startError ??= error
    this.#interrupt.fire({ kind: 'cancelled' })
  }

  #closeTools(): void {
    this.#toolClock.stop()
    this.#tools?.close()
  }

  /** Ends the connection for tools after the script has ended: while the script reacts to a request to end, it must stay open. */
  #endTools(): void {
    this.#closeTools()
    // An answer that the script does not read would delay the end.
    this.#socket?.end()
  }

  #openTools(): ToolPort | undefined {
    const { executionId, tools } = this.#run
    const { redactor, toolLog } = this.#transcript
    return tools?.open({
      executionId,
      redact: (text, isCut = false) => redactor.text(text, { end: isCut }),
      answer: (id, answer) => this.#answer(() => encodeToolResult(executionId, id, answer)),
      noteCall: (call, effect) => toolLog.noteCall(call, effect),
      noteExecution: (id) => {
        toolLog.noteExecution(id)
        return this.#toolClock.begin()
      },
      redactValue: (value) => redactor.value(value),
      noteApproval: (id, approvalId, args) => {
        const noteDecision = toolLog.noteApproval(id, approvalId, args)
        this.#news.resolve(undefined)
        const stop = this.#toolClock.beginApproval()
        this.#approvals.add(stop)
        return (decision) => {
          if (this.#approvals.delete(stop)) stop()
          noteDecision(decision)
          this.#news.resolve(undefined)
        }
      },
      noteEnd: async (id, outcome) => {
        await toolLog.noteEnd(id, outcome)
        this.#news.resolve(undefined)
      },
    })
  }

  async #answer(makeLine: () => Uint8Array): Promise<void> {
    if (this.#socket?.isConnected !== true) return this.#sender.answer(makeLine)
    // The harness must receive the tool time before the answer, as on the channel.
    await this.#sender.drain()
    await this.#socket.send(makeLine)
  }

  async #deliverStart(): Promise<void> {
    if (this.#isStarted) return
    this.#isStarted = true
    const { executionId, sandbox } = this.#run
    await this.#deliverAll([{ type: 'started', executionId, sandboxId: sandbox.id }])
  }

  /** Connects to the port that the beginning of stdout names. Returns the output after it. @throws SandglassError `websocket_failed` */
  async #connectBy(socket: ToolSocket, text: string): Promise<string> {
    const { port, rest } = socket.findPort(text)
    this.#transcript.takeMarker(Buffer.byteLength(text) - Buffer.byteLength(rest))
    if (port === undefined) return ''
    await socket.connect(port, this.#interrupt)
    await this.#deliverStart()
    return rest
  }

  /** Aborts the calls of a closed connection, because nobody can receive their answers. The script continues. */
  #endCalls(): void {
    this.#tools?.close()
    for (const stop of this.#approvals) stop()
    this.#approvals.clear()
  }

  async #takeMessages(socket: ToolSocket): Promise<void> {
    if (this.#tools === undefined) return
    for (const { call, bytes } of socket.calls()) await this.#takeCall(this.#tools, call, bytes)
  }

  async #takeCall(tools: ToolPort, call: ToolCallFrame, bytes: number): Promise<void> {
    this.#countCall(bytes)
    await this.#interrupt.wait(tools.take(call))
    await this.#deliverAll(this.#transcript.toolLog.takeNews())
  }

  /** The next chunk, null at the end, or undefined if there is news of tool calls first. */
  async #receive(): Promise<Uint8Array | null | undefined> {
    this.#receiving ??= this.#run.sandbox.channel.receive()
    try {
      const work = this.#tools === undefined ? this.#receiving : Promise.race([this.#receiving, this.#news.promise])
      const chunk = await this.#interrupt.wait(work)
      // A new promise each time: a promise that stays pending would keep every chunk that won against it.
      this.#news = Promise.withResolvers()
      if (chunk !== undefined) this.#receiving = undefined
      return chunk
    } catch (error) {
      if (error instanceof EndConversation) throw error
      // A channel that fails is treated as closed.
      return null
    }
  }

  async #read(chunk: Uint8Array): Promise<void> {
    this.#receivedBytes += chunk.length
    for (const line of this.#splitter.push(chunk)) {
      this.#readBytes += line.length + 1
      const decoded = decodeLine(line, this.#maxParts)
      if (decoded.kind === 'frame') {
        const { frame } = decoded
        // With a socket, calls come over the socket only.
        if (this.#tools !== undefined && this.#socket === undefined && isCallOf(this.#run.executionId, frame)) {
          await this.#takeCall(this.#tools, frame, line.length)
          continue
        }
        if (
          this.#socket?.isConnected === false &&
          frame.type === 'stdout' &&
          frame.execution_id === this.#run.executionId
        ) {
          frame.text = await this.#connectBy(this.#socket, frame.text)
          if (frame.text === '') continue
        }
        if (!this.#isStarted) await this.#deliverStart()
      }
      await this.#deliverAll(this.#transcript.take(decoded, line))
      if (this.#transcript.done !== undefined) return
    }
  }

  /** Counts the bytes of a call. The limit is far above the needs of scripts; calls, including refused ones, count towards no other limit. */
  #countCall(bytes: number): void {
    this.#callBytes += Math.max(bytes, MIN_CALL_BYTES)
    if (this.#callBytes <= MAX_CALLS_BYTES) return
    throw new EndConversation({
      kind: 'output-limit',
      message: `the tool calls of the script exceed ${MAX_CALLS_BYTES} bytes, where each call counts at least ${MIN_CALL_BYTES}`,
    })
  }

  async #conclude(frame: ScriptDone): Promise<ConversationEnd> {
    const end = { kind: 'done', frame } as const
    // A harness that ended the run early would treat an `execute` sent now as a new run.
    if (!this.#sender.executeBegun) this.#sender.stop()
    try {
      this.#endTools()
      await this.#deliverAll([...this.#transcript.toolLog.takeNews(), ...this.#transcript.flush()])
      const clean = this.#readBytes === this.#receivedBytes && this.#sender.executeBegun
      clearTimeout(this.#grace)
      this.#endAfter(DRAIN_MS, { ...end, clean: false })
      await this.#interrupt.wait(this.#sender.drain())
      return { ...end, clean }
    } catch {
      return { ...end, clean: false }
    }
  }

  async #close(): Promise<ConversationEnd> {
    this.#takeUnfinished()
    await this.#deliverAll(this.#transcript.flush())
    return { kind: 'closed' }
  }

  #endFlood(): ConversationEnd {
    this.#takeUnfinished()
    const { maxOutputBytes } = this.#run
    const tooLong = maxOutputBytes > constants.MAX_STRING_LENGTH ? '; a single line cannot be that long' : ''
    return { kind: 'output-limit', message: outputLimitMessage(maxOutputBytes) + tooLong }
  }

  #takeUnfinished(): void {
    this.#transcript.takeUnfinished(this.#receivedBytes - this.#readBytes)
  }

  /** Delivers events until a callback throws; after that, no callback is called again. */
  async #deliverAll(events: readonly RunEvent[]): Promise<void> {
    for (const event of events) {
      if (this.#muted) return
      try {
        await this.#interrupt.wait(this.#deliver(event))
      } catch (error) {
        if (!(error instanceof CallbackError)) throw error
        this.#muted = true
        this.#transcript.noteCallbackError(error.callback, error.cause)
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
    this.#boost.now()
    this.#closeTools()
    this.#endAfter(this.#run.cell !== undefined ? CELL_GRACE_MS : GRACE_MS, { kind: 'cancelled' })
    // The reading side reports a closed channel.
    this.#sender.cancel().catch(() => undefined)
  }

  #endAfter(ms: number, end: ConversationEnd): void {
    clearTimeout(this.#grace)
    this.#grace = setTimeout(() => this.#interrupt.fire(end), ms)
  }
}
