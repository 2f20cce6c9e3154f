import type { CheckFrame, HarnessFrame, HostFrame } from '../../protocol/index.ts'
import {
  CAPS,
  decodeLine,
  LineSplitter,
  LineTooLongError,
  MODULE_NAME,
  SCRIPT_ERROR_KINDS,
  truncateLikeHarness,
} from '../../protocol/index.ts'
import { MAX_JSON_PARTS } from '../../support/index.ts'
import { DisplayCount } from './display-count.ts'
import type { RunOutbox } from './outbox.ts'
import { RunClock } from './run-clock.ts'
import { OutputGatherer } from './output-gatherer.ts'

type ExecuteFrame = Extract<HostFrame, { type: 'execute' }>
type ErrorFrame = Extract<HarnessFrame, { type: 'error' }>

/** The reason for which a run was ended from outside. */
export type KillCause = 'timeout' | 'output-limit' | 'cancelled' | 'memory'

const SETUP_OVER = Buffer.from('{"type":"setup_over"}')
const FINISHED = Buffer.from('{"type":"finished"}')
/** The beginning of this frame if it names the modules that the script loaded: at most 32 of 200 characters. */
const FINISHED_WITH = Buffer.from('{"type":"finished","imported":[')
const MAX_FINISHED_BYTES = 8 * 1024
const DISPLAY = Buffer.from('{"type":"display",')
const DISPLAYS_OVER = Buffer.from('{"type":"displays_over"}')
const WAKE = /^\{"type":"wake","after":(\d[\d.e+-]{0,30})\}$/
/** Frames that may be longer than the output limit: calls of tools do not count, and errors are cut first. */
const MAY_EXCEED = /^\{"type":"(?:tool_call|error|display)",/
const FROM_SCRIPT: ReadonlySet<string> = new Set([
  'final_result',
  'value',
  'intermediate',
  'log',
  'display',
  'error',
  'tool_call',
  'check_result',
])

/** The state of one run: its output, its counters and its ending. Ids and counters are the host's own. */
export class RunState {
  readonly id: string
  readonly request: ExecuteFrame | CheckFrame
  readonly startedAt: number = performance.now()
  readonly clock: RunClock
  readonly maxOutput: number
  readonly streams: readonly [stdout: OutputGatherer, stderr: OutputGatherer]
  /** The first reason for which it was ended from outside. */
  killedFor: KillCause | undefined
  /** True if the runtime finished normally. */
  finished = false
  /** The modules that the script loaded, as its process reports. */
  imported: readonly string[] = []
  over = false
  exitCode: number | null = null
  fault: string | null = null
  /** True if the host interrupts it, a cell. */
  isInterrupted = false
  /** True if the guest has reported how the script ended. */
  hasEnded = false
  limitsHit: readonly string[] = []
  readonly warnings: { code: string; message: string }[] = []
  /** True if the script may run from now on. */
  #isSetUp = false
  #hasSentError = false
  #hasSentTimeout = false
  #sent = 0
  readonly #displays = new DisplayCount()
  readonly #outbox: RunOutbox
  readonly #lines: LineSplitter
  readonly #onWake: (afterMs: number) => void

  constructor(request: ExecuteFrame | CheckFrame, outbox: RunOutbox, onWake: (afterMs: number) => void) {
    this.id = request.execution_id
    this.request = request
    this.clock = new RunClock(this.startedAt, request.timeout_sec * 1000, this.maxWaitMs)
    this.maxOutput = request.type === 'execute' ? request.max_output_bytes : CAPS.checkBytes
    this.#outbox = outbox
    this.#onWake = onWake
    this.#lines = new LineSplitter(
      Math.max(this.maxOutput, CAPS.displayBytes, this.hasTools ? CAPS.argBytes + CAPS.callHeadBytes : 0, 4096),
    )
    const output = (name: 'stdout' | 'stderr') => new OutputGatherer((text) => this.#emitOutput(name, text))
    this.streams = [output('stdout'), output('stderr')]
  }

  get hasTools(): boolean {
    return this.request.type === 'execute' && (this.request.tools?.length ?? 0) > 0
  }

  /** True if the script itself has begun, as its process reports. */
  get isSetUp(): boolean {
    return this.#isSetUp
  }

  get isCell(): boolean {
    return this.request.type === 'execute' && this.request.cell !== undefined
  }

  get deadline(): number {
    return this.clock.deadline
  }

  get killAt(): number {
    return this.deadline + CAPS.graceMs
  }

  /** The time by which tools of the host may move the deadline. */
  get maxWaitMs(): number {
    return this.request.type === 'execute' && this.hasTools ? (this.request.max_tool_wait_sec ?? 0) * 1000 : 0
  }

  get timeoutText(): string {
    return String(Number(this.request.timeout_sec.toPrecision(6)))
  }

  /** Takes bytes from the script's stream of frames. */
  takeFrames(data: Uint8Array): void {
    try {
      for (const line of this.#lines.push(data)) {
        if (this.over && this.#isSetUp) return
        if (this.over) this.#isSetUp = SETUP_OVER.equals(line)
        else if (!this.#takeLine(line)) this.#charge(line.length + CAPS.junkLineBytes)
      }
    } catch (error) {
      if (!(error instanceof LineTooLongError)) throw error
      this.over = true
    }
  }

  /** Sends a frame of this run, unless it exceeds the output limit. */
  emit(frame: object, counted = true): void {
    this.#send(Buffer.from(`${JSON.stringify({ ...frame, execution_id: this.id })}\n`), counted)
  }

  /** Sends the error that the script itself could not send. Called once, after its end. */
  emitFinalError(): void {
    const error = this.#finalError()
    if (error === undefined) return
    const [message, kind] = error
    const frame = { type: 'error', execution_id: this.id, message, traceback: null, kind }
    const line = Buffer.from(`${JSON.stringify(frame)}\n`)
    this.#sent += line.length
    this.#outbox.put(line)
  }

  #finalError(): readonly [message: string, kind: string] | undefined {
    switch (this.killedFor) {
      case 'timeout':
        return this.#hasSentTimeout ? undefined : [`Script timed out after ${this.timeoutText}s`, 'timeout']
      case 'output-limit':
        return [`the output went over the limit of ${this.maxOutput} bytes`, 'output_limit']
      case 'cancelled':
        return ['the run was cancelled', 'cancelled']
      case 'memory':
        return undefined // the ending contains it
      case undefined:
        if (this.finished) return undefined
        if (this.fault !== null) return [truncateLikeHarness(`the interpreter failed: ${this.fault}`, 8192), 'crash']
        if (this.exitCode === null) return undefined
        return [`the script's process ended with exit code ${this.exitCode} before the script was done`, 'crash']
    }
  }

  /** Records how its process ended: its exit code, and its output on the stderr of Node. */
  conclude(code: number | null, nodeStderr: string): void {
    if (this.over) this.killedFor ??= 'output-limit'
    if (!this.hasEnded && this.killedFor === undefined) {
      if (/heap out of memory|Allocation failed/.test(nodeStderr)) this.killedFor = 'memory'
      else this.exitCode = code
    }
    if (!this.hasEnded && this.request.type === 'execute' && this.request.collect.length > 0) {
      const message = 'the files were lost with the process, which was killed'
      this.warnings.push({ code: 'collect_skipped', message })
    }
    const hasEnded = this.exitCode !== null || this.fault !== null
    if (this.killedFor === undefined && hasEnded && !this.finished && !this.#hasSentError) {
      // Its own error was lost, or not sent yet: a long request is read before the script starts.
      if (performance.now() >= this.deadline) this.killedFor = 'timeout'
    }
  }

  /** The last frame of the run, without the fields that only the sandbox knows. */
  buildDoneFrame(signal: string | null): object {
    const [stdout, stderr] = this.streams
    return {
      type: 'script_done',
      execution_id: this.id,
      ending: this.#ending(signal),
      duration_ms: Math.round((performance.now() - this.startedAt) * 1000) / 1000,
      stdout_bytes: stdout.bytes,
      stderr_bytes: stderr.bytes,
      limits_hit: this.limitsHit,
      warnings: [...this.#displays.warnings, ...this.warnings],
      memory_kills: this.killedFor === 'memory' ? 1 : 0,
      ...(this.#endedInSetup && { in_setup: true }),
      ...(this.imported.length > 0 && { imported: this.imported }),
    }
  }

  /**
   * True if the preamble or a Python tool ended the run, also by a flood: frames are read until the process is dead. A
   * cancellation says nothing about it.
   */
  get #endedInSetup(): boolean {
    const { request } = this
    if (this.#isSetUp || request.type !== 'execute') return false
    if ((request.preamble ?? '') === '' && (request.tool_sources ?? []).length === 0) return false
    return this.killedFor !== 'cancelled'
  }

  /** The ending of the script's process, in the terms of the wire. */
  #ending(signal: string | null): object {
    if (this.killedFor === 'memory') return { cause: 'signal', exit_code: null, signal: 'SIGKILL', by: 'kernel' }
    const { exitCode } = this
    if (this.killedFor !== undefined) {
      const by = this.killedFor === 'cancelled' ? 'host' : 'harness'
      return { cause: this.killedFor, exit_code: exitCode, signal: exitCode === null ? signal : null, by }
    }
    if (exitCode === null && this.fault === null && signal !== null) {
      return { cause: 'signal', exit_code: null, signal, by: signal === 'SIGKILL' ? 'unknown' : 'script' }
    }
    return { cause: 'exit', exit_code: exitCode ?? 70, signal: null, by: 'script' }
  }

  #takeLine(line: Uint8Array): boolean {
    if (line.length < 64) {
      if (SETUP_OVER.equals(line) && !this.#isSetUp) return (this.#isSetUp = true)
      if (DISPLAYS_OVER.equals(line)) return (this.#displays.areOver = true)
      if (FINISHED.equals(line)) return (this.finished = true)
      const after = WAKE.exec(Buffer.from(line).toString('latin1'))?.[1]
      if (after !== undefined) {
        this.#onWake(Number(after) * 1000)
        return true
      }
    }
    if (line.length < MAX_FINISHED_BYTES && FINISHED_WITH.equals(line.subarray(0, FINISHED_WITH.length))) {
      const imported = moduleNamesIn(line)
      if (imported !== undefined) this.imported = imported
      return (this.finished = imported !== undefined)
    }
    if (line.length < 3 || line[0] !== 0x7b || line.at(-1) !== 0x7d) return false
    // Checked before the line is decoded, which takes far more memory than its bytes.
    if (
      this.#sent + line.length > this.maxOutput &&
      !MAY_EXCEED.test(Buffer.from(line.subarray(0, 24)).toString('latin1'))
    )
      return (this.over = true)
    // Last in the object: of duplicate keys the last one counts, so the id is always the host's own.
    const after = isDisplay(line) ? `,"after":{"stdout":${this.streams[0].bytes}}` : ''
    const ours = `${after},"execution_id":${JSON.stringify(this.id)}}\n`
    const stamped = Buffer.concat([line.subarray(0, -1), Buffer.from(ours)])
    const decoded = decodeLine(stamped.subarray(0, -1), Math.max(MAX_JSON_PARTS, this.maxOutput))
    if (decoded.kind !== 'frame' || !FROM_SCRIPT.has(decoded.frame.type)) return false
    const { frame } = decoded
    if (frame.type === 'error') {
      this.#takeError(frame)
      return true
    }
    if (frame.type === 'tool_call' && !this.hasTools) return false
    if ((frame.type === 'check_result') !== (this.request.type === 'check')) return false
    if (frame.type === 'value' && !(this.isCell && line.length <= CAPS.valueBytes)) return false
    if (frame.type === 'intermediate' && frame.label.length > CAPS.label) return false
    if (frame.type === 'display') return this.#takeDisplay(stamped)
    if (frame.type === 'log' && frame.level.length > CAPS.level) return false
    this.#send(stamped, frame.type !== 'tool_call')
    return true
  }

  /** Passes on a display that fits. Others count towards the output limit, because they take time. */
  #takeDisplay(line: Uint8Array): boolean {
    const isAdmitted = this.#displays.admit(line.length)
    if (isAdmitted) this.#send(line, false)
    return isAdmitted
  }

  #takeError({ message: told, traceback: traced, kind: claimed }: ErrorFrame): void {
    const message = truncateLikeHarness(told, CAPS.errorMessage)
    const traceback = traced === null ? null : truncateLikeHarness(traced, CAPS.traceback)
    const isTooEarly = claimed === 'timeout' && performance.now() < this.deadline - 1
    const isTooLate = claimed === 'setup' && this.#isSetUp
    const isMadeUp = claimed === 'interrupted' && !this.isInterrupted
    const isBelieved = SCRIPT_ERROR_KINDS.includes(claimed) && !isTooEarly && !isTooLate && !isMadeUp
    const kind = isBelieved ? claimed : 'exception'
    this.#hasSentError = true
    this.emit({ type: 'error', message, traceback, kind })
    if (kind !== 'timeout') return
    this.#hasSentTimeout = true
    this.killedFor ??= 'timeout'
  }

  /** Sends output, or the part of it that fits. Only its text is counted: the number of frames depends on timing. */
  #emitOutput(name: 'stdout' | 'stderr', text: string): void {
    if (this.over || text === '') return
    let bytes = Buffer.from(text)
    const room = this.maxOutput - this.#sent
    let kept = text
    if (bytes.length > room) {
      this.over = true
      kept = takeWholeCharacters(bytes, room)
      bytes = Buffer.from(kept)
    }
    if (kept === '') return
    this.#sent += bytes.length
    this.#outbox.put(Buffer.from(`${JSON.stringify({ type: name, execution_id: this.id, text: kept })}\n`))
  }

  #send(line: Uint8Array, counted: boolean): void {
    if (counted) {
      if (this.over || this.#sent + line.length > this.maxOutput) {
        this.over = true
        return
      }
      this.#sent += line.length
    }
    this.#outbox.put(line)
  }

  /** Counts lines that are not sent towards the output limit, because they take time. */
  #charge(bytes: number): void {
    this.#sent += bytes
    if (this.#sent > this.maxOutput) this.over = true
  }
}

function isDisplay(line: Uint8Array): boolean {
  return DISPLAY.equals(line.subarray(0, DISPLAY.length))
}

/** The texts in the field `imported` of a frame that can be names of modules; undefined if it is not a frame. */
function moduleNamesIn(line: Uint8Array): string[] | undefined {
  try {
    const { imported } = JSON.parse(Buffer.from(line).toString('utf8')) as { imported: unknown }
    return Array.isArray(imported) ? imported.slice(0, CAPS.imports).filter(isModuleName) : undefined
  } catch {
    return undefined
  }
}

function isModuleName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= CAPS.importName && MODULE_NAME.test(name)
}

function takeWholeCharacters(bytes: Uint8Array, max: number): string {
  let end = Math.max(0, max)
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return Buffer.from(bytes.subarray(0, end)).toString('utf8')
}
