import { messageOf } from '../errors/index.ts'
import { CAPS, type DecodedLine, type HarnessFrame, truncateLikeHarness, UNCOUNTED_FRAMES } from '../protocol/index.ts'
import { isWarningCode, OUTCOMES, outcomeOfWireKind, type WarningCode } from '../outcomes/index.ts'
import type { CheckAnswer } from './check-request.ts'
import { CollectedFiles } from './collected-files.ts'
import { reportSkipped } from './diagnostics.ts'
import { RunDisplays, SESSION_SHOWED_ALL } from './run-displays.ts'
import { MemoryWatch } from './memory-watch.ts'
import { NanNulls } from './nan-nulls.ts'
import { listFailedLoads } from './not-loaded.ts'
import { OutputStream } from './output-stream.ts'
import { ChannelViolation, EndConversation, type ScriptDone } from './conversation-end.ts'
import type { PreparedRun } from './prepare.ts'
import { Redactor } from '../redaction/index.ts'
import type { CollectedFile, ExecutionResult, RunEvent, RunWarning } from './result.ts'
import { ToolLog } from './tool-log.ts'

/** The first of `final_result`, `error` and a throwing callback. */
export type Decision =
  | { readonly kind: 'result'; readonly data: unknown }
  | { readonly kind: 'error'; readonly message: string; readonly traceback: string | null; readonly errorKind: string }
  | { readonly kind: 'callback'; readonly message: string }

type OutputReport = Pick<
  ExecutionResult,
  'stdout' | 'stderr' | 'stdoutBytes' | 'stderrBytes' | 'truncated' | 'limitsHit' | 'files'
>
type RunFrame = Exclude<HarnessFrame, { type: 'ready' | 'pong' | 'reset_done' }>

/** Bytes that the host accepts beyond the limit: the harness enforces the limit, then still sends an error. */
const ALLOWANCE_BYTES = 64 * 1024

/** Everything that arrived in one run, in order of arrival and without secrets. It does not judge the outcome. */
export class RunTranscript {
  readonly #run: PreparedRun
  readonly #files: CollectedFiles
  readonly #stdout: OutputStream
  readonly #stderr: OutputStream
  readonly #warnings: RunWarning[] = []
  readonly redactor: Redactor
  readonly memory: MemoryWatch
  readonly toolLog: ToolLog
  readonly nanNulls: NanNulls
  readonly displays: RunDisplays
  readonly intermediates: { readonly label: string; readonly data: unknown }[] = []
  readonly logs: { readonly level: string; readonly message: string }[] = []
  decision: Decision | undefined
  /** The value that a callback threw, boxed because it may be undefined. */
  callbackError: { readonly thrown: unknown } | undefined
  done: ScriptDone | undefined
  /** The value of the last expression of a cell. */
  value: unknown
  outputBytes = 0
  ignoredFrames = 0
  /** Bytes of the marker in stdout: they count towards the limit and are not part of the output. */
  #markerBytes = 0

  constructor(run: PreparedRun) {
    this.#run = run
    this.redactor = new Redactor(...run.hidden)
    this.#files = new CollectedFiles(this.redactor, run.collectCaps)
    this.memory = new MemoryWatch(run)
    this.toolLog = new ToolLog(run.executionId, this.redactor)
    this.nanNulls = new NanNulls(this.redactor)
    this.displays = new RunDisplays(this.redactor, run.cell?.group)
    this.#stdout = new OutputStream(this.redactor)
    this.#stderr = new OutputStream(this.redactor)
    for (const name of this.redactor.tooShort) {
      this.warn('secret_too_short', `the value of ${name} has fewer than 4 characters and is not redacted`)
    }
    for (const { code, message } of listFailedLoads(run.sandbox)) this.warn(code, this.redactor.text(message))
  }

  /**
   * Adds one line.
   * @returns the events to deliver.
   * @throws EndConversation if the peer exceeds a limit or breaks the protocol.
   */
  take(decoded: DecodedLine, line: Uint8Array): readonly RunEvent[] {
    const wireBytes = line.length + 1
    if (decoded.kind === 'frame' && isOfRun(decoded.frame, this.#run.executionId)) {
      if (!UNCOUNTED_FRAMES.has(decoded.frame.type)) this.#count(countOf(decoded.frame, wireBytes))
      return this.#takeFrame(decoded.frame, wireBytes)
    }
    // Everything else counts as output, so that a flood of it reaches the limit.
    this.#count(wireBytes)
    if (decoded.kind !== 'blank') this.#ignore(decoded, line)
    return []
  }

  /** Counts bytes of the marker. */
  takeMarker(bytes: number): void {
    this.#count(bytes)
    this.#markerBytes += bytes
  }

  /** Counts bytes that were read and do not form a complete line. */
  takeUnfinished(bytes: number): void {
    if (bytes === 0) return
    this.outputBytes += bytes
    this.ignoredFrames += 1
  }

  /** Returns the ends of stdout and stderr, which were held back as possible beginnings of secrets. */
  flush(): readonly RunEvent[] {
    return [...this.#outputEvent('stdout', this.#stdout.flush()), ...this.#outputEvent('stderr', this.#stderr.flush())]
  }

  /** Notes that a callback of the caller threw. */
  noteCallbackError(name: string, thrown: unknown): void {
    const message = this.redactor.text(`${name} threw: ${messageOf(thrown)}`)
    this.callbackError = { thrown }
    if (this.decision === undefined) this.decision = { kind: 'callback', message }
    else this.warn('callback_failed', message)
  }

  warn(code: WarningCode, message: string, traceback: string | null = null): void {
    this.#warnings.push({ code, message, traceback })
  }

  get warnings(): readonly RunWarning[] {
    return this.#warnings
  }

  /** The path of a file whose last pieces never arrived. */
  get unfinishedFile(): string | undefined {
    return this.#files.unfinished
  }

  /** The output and the files, for the result. Called once. */
  report(): OutputReport {
    this.flush()
    const { stdout_bytes = 0, stderr_bytes = 0, limits_hit = [] } = this.done ?? {}
    const stdoutBytes = Math.max(0, stdout_bytes - this.#markerBytes)
    return {
      stdout: this.#stdout.text,
      stderr: this.#stderr.text,
      stdoutBytes: this.#stdout.byteCount(stdoutBytes),
      stderrBytes: this.#stderr.byteCount(stderr_bytes),
      truncated: this.#stdout.isTruncated(stdoutBytes) || this.#stderr.isTruncated(stderr_bytes),
      limitsHit: limits_hit.map((limit) => this.redactor.text(limit)),
      files: this.#files.complete.map(({ file, holdsSecret }) => {
        const path = this.redactor.text(file.path)
        if (holdsSecret) {
          this.warn('secret_in_file', `the file ${path} holds the value of a secret; its content is unchanged`)
        }
        return { ...file, path, ...(holdsSecret ? { holdsSecret } : {}) }
      }),
    }
  }

  #count(bytes: number): void {
    this.outputBytes += bytes
    if (this.outputBytes <= this.#run.maxOutputBytes + ALLOWANCE_BYTES) return
    throw new EndConversation({ kind: 'output-limit', message: outputLimitMessage(this.#run.maxOutputBytes) })
  }

  #ignore(decoded: Exclude<DecodedLine, { kind: 'blank' }>, line: Uint8Array): void {
    this.ignoredFrames += 1
    if (decoded.kind === 'frame') return
    const reason = decoded.kind === 'unknown' ? decoded.reason : 'not JSON'
    reportSkipped(this.#run.executionId, reason, () => this.redactor.text(new TextDecoder().decode(line)))
  }

  #takeFrame(frame: RunFrame, wireBytes: number): readonly RunEvent[] {
    const { executionId } = this.#run
    switch (frame.type) {
      case 'intermediate': {
        const intermediate = {
          label: this.redactor.head(frame.label, CAPS.label),
          data: this.redactor.value(frame.data),
        }
        this.nanNulls.add(`the intermediate ${JSON.stringify(intermediate.label)}`, frame.nan_as_null)
        this.intermediates.push(intermediate)
        return [{ type: 'intermediate', executionId, ...intermediate }]
      }
      case 'value': {
        if (this.#run.cell === undefined) throw new ChannelViolation('it sent the value of a cell for a script')
        this.nanNulls.add('the value', frame.nan_as_null)
        this.value = this.redactor.value(frame.data)
        return []
      }
      case 'log': {
        const log = { level: this.redactor.head(frame.level, CAPS.level), message: this.redactor.text(frame.message) }
        this.logs.push(log)
        return [{ type: 'log', executionId, ...log }]
      }
      case 'stdout':
        return this.#outputEvent('stdout', this.#stdout.push(frame.text))
      case 'stderr':
        return this.#outputEvent('stderr', this.#stderr.push(frame.text))
      case 'final_result':
        if (this.decision === undefined) this.nanNulls.add('the result', frame.nan_as_null)
        return this.#takeResult(this.redactor.value(frame.data))
      case 'error':
        return this.#takeError(
          this.#errorText(frame.message, CAPS.errorMessage),
          frame.traceback === null ? null : this.#errorText(frame.traceback, CAPS.traceback),
          frame.kind === 'memory' && !this.memory.explainsError ? 'exception' : frame.kind,
        )
      case 'tool_call':
        // The conversation handles allowed calls; only the others get here.
        this.#count(wireBytes)
        this.ignoredFrames += 1
        return []
      case 'check_result':
        if (this.#run.checks) {
          return this.#takeResult({
            violations: frame.violations,
            isWhole: frame.whole === true,
            calledTools: frame.tools,
          } satisfies CheckAnswer)
        }
        throw new ChannelViolation('it sent the result of a check that was not requested')
      case 'file':
        if (!this.#run.collects) throw new ChannelViolation('it sent a file that was not requested')
        return this.#fileEvent(this.#files.take(frame, wireBytes))
      case 'display': {
        const added = this.displays.take(frame, wireBytes)
        if (added === undefined) {
          if (this.displays.leftOut === 1) this.warn('displays_left_out', SESSION_SHOWED_ALL)
          return []
        }
        const { display, place, problem } = added
        if (problem !== undefined) this.warn('secret_in_display', problem)
        return [{ type: 'display', executionId, place, ...display }]
      }
      case 'script_done':
        this.done = frame
        this.memory.noteKills(frame.memory_kills)
        for (const warning of frame.warnings) this.#takeWarning(warning)
        return []
    }
  }

  /** Redacts and bounds the text of an error for all later uses: hints, prompts, stores. */
  #errorText(text: string, max: number): string {
    return this.redactor.text(truncateLikeHarness(text, max))
  }

  #takeWarning({ code, message }: { readonly code: string; readonly message: string }): void {
    const text = this.redactor.text(message)
    if (isWarningCode(code)) this.warn(code, text)
    else this.warn('harness_warning', `${this.redactor.text(code)}: ${text}`)
  }

  #takeResult(data: unknown): readonly RunEvent[] {
    if (this.decision === undefined) {
      this.decision = { kind: 'result', data }
      return [{ type: 'final_result', executionId: this.#run.executionId, data }]
    }
    if (this.decision.kind === 'result') {
      this.warn('second_result', 'emit_result was called again; the first result stands')
    } else {
      this.warn('result_after_error', 'emit_result was called after the run had failed; it is not the result')
    }
    return []
  }

  #takeError(message: string, traceback: string | null, errorKind: string): readonly RunEvent[] {
    if (this.decision === undefined) {
      this.decision = { kind: 'error', message, traceback, errorKind }
      return [{ type: 'error', executionId: this.#run.executionId, message, traceback }]
    }
    if (this.decision.kind === 'result') {
      this.warn(OUTCOMES[outcomeOfWireKind(errorKind)].lateWarning, message, traceback)
    } else if (errorKind !== 'cancelled') {
      // A run whose callback threw is cancelled; the cancellation adds no information.
      this.warn('second_error', message, traceback)
    }
    return []
  }

  #fileEvent(file: CollectedFile | undefined): readonly RunEvent[] {
    if (file === undefined) return []
    const { executionId } = this.#run
    return [{ type: 'file', executionId, path: this.redactor.text(file.path), size: file.size }]
  }

  #outputEvent(type: 'stdout' | 'stderr', text: string): readonly RunEvent[] {
    return text === '' ? [] : [{ type, executionId: this.#run.executionId, text }]
  }
}

/**
 * The bytes that a frame counts towards the limit. The harness counts in the same way: stdout and stderr by their text, because
 * the cuts between their frames depend on timing. A frame without text, which no harness sends, counts with its full length, so that
 * every frame counts.
 */
function countOf(frame: RunFrame, wireBytes: number): number {
  if (frame.type !== 'stdout' && frame.type !== 'stderr') return wireBytes
  return frame.text === '' ? wireBytes : Buffer.byteLength(frame.text)
}

/** The message of an output limit, which names the limit. */
export function outputLimitMessage(maxOutputBytes: number): string {
  return `the script sent more than maxOutputBytes (${maxOutputBytes} bytes)`
}

/** Frames without an execution id are never expected while a script runs. */
function isOfRun(frame: HarnessFrame, executionId: string): frame is RunFrame {
  return 'execution_id' in frame && frame.execution_id === executionId
}
