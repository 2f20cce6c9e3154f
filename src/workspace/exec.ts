import type { Sandbox } from '../sandbox/index.ts'
import type { Activity } from './activity.ts'
import { abortedError, checkWhole } from './failures.ts'
import type { Link } from './link.ts'
import { OutputWindow } from './output-window.ts'
import { checkProgram, type CheckedProgram, type ExecOptions, type ProgramOutput } from './program-options.ts'
import { type OutputSink, type ProgramExit, ProgramFailure, RunningProgram } from './running-program.ts'

/** The outcome of a program. Whatever happens to the program is a value. */
export interface ExecResult {
  /**
   * The exit code as a shell reports it: 128 plus the number of the signal if one ended the program; -1 if it could not be
   * executed.
   */
  readonly exitCode: number
  /** The signal that ended it, like `SIGKILL`; null if it ended by itself. */
  readonly signal: string | null
  /** True if it was killed, with everything that it had started, because `timeoutSec` had elapsed. */
  readonly timedOut: boolean
  /** True if SIGKILL ended it (or it exited with 137, as shells do) and there was an OOM kill in this workspace meanwhile. */
  readonly outOfMemory: boolean
  /** The output. If it was longer than `maxOutputBytes`, its beginning and its end with a marker between them. */
  readonly stdout: string
  /** Shortened in the same way. For a program that could not be executed, the reason. */
  readonly stderr: string
  /** Bytes that it wrote. */
  readonly stdoutBytes: number
  readonly stderrBytes: number
  /** True if `stdout` or `stderr` was cut. */
  readonly truncated: boolean
  readonly durationMs: number
}

const DEFAULT_OUTPUT_BYTES = 1024 * 1024
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024

/** The checked arguments of {@link exec}. */
export interface CheckedExec {
  readonly program: CheckedProgram
  readonly maxOutputBytes: number
  readonly onOutput: ExecOptions['onOutput']
}

/** @throws SandglassError `invalid_request`; TypeError for an option that does not exist. */
export function checkExec(command: unknown, args: unknown, options: ExecOptions, timeoutSec: number): CheckedExec {
  const { maxOutputBytes = DEFAULT_OUTPUT_BYTES, onOutput } = options
  return {
    program: checkProgram('exec', command, args, options, ['maxOutputBytes', 'onOutput'], timeoutSec),
    maxOutputBytes: checkWhole('maxOutputBytes', maxOutputBytes, 1, MAX_OUTPUT_BYTES),
    onOutput,
  }
}

/** Runs a program to its end. */
export async function exec(sandbox: Sandbox, link: Link, given: CheckedExec): Promise<ExecResult> {
  const { program, maxOutputBytes, onOutput } = given
  const started = performance.now()
  const output = new KeptOutput(maxOutputBytes)
  const running: RunningProgram = new RunningProgram({
    sandbox,
    link,
    program,
    stdin: program.stdin === undefined ? 'none' : 'pipe',
    makeSink: (activity) =>
      output.sinkOf(
        activity,
        onOutput === undefined ? undefined : { call: onOutput, fail: (error) => running.fail(error) },
      ),
  })
  if (program.stdin !== undefined) void running.feed(program.stdin)
  try {
    const exit = await running.exited
    await awaitCalls(output.drain(), link, program.signal)
    return output.resultOf(exit)
  } catch (error) {
    if (!(error instanceof ProgramFailure) || error.code !== 'program_not_found') throw error
    return makeNotExecutedResult(error.failure.message, performance.now() - started)
  }
}

/** Waits for the calls of `onOutput`. Rejects if the signal fires or the workspace ends first. */
async function awaitCalls(calls: Promise<void>, link: Link, signal: AbortSignal | undefined): Promise<void> {
  const { promise: left, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(abortedError('the program'))
  const forget = link.onEnd(reject)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  try {
    await Promise.race([calls, left])
  } finally {
    signal?.removeEventListener('abort', onAbort)
    forget()
  }
}

function makeNotExecutedResult(reason: string, durationMs: number): ExecResult {
  const none = { signal: null, timedOut: false, outOfMemory: false, stdout: '', stdoutBytes: 0, truncated: false }
  return { exitCode: -1, ...none, stderr: reason, stderrBytes: Buffer.byteLength(reason), durationMs }
}

interface Listener {
  readonly call: (output: ProgramOutput) => unknown
  readonly fail: (error: unknown) => void
}

/** Keeps the head and the tail of both streams. */
class KeptOutput {
  readonly #stdout: OutputWindow
  readonly #stderr: OutputWindow
  #calls: Promise<void> = Promise.resolve()
  #hasFailed = false

  constructor(maxBytes: number) {
    this.#stdout = new OutputWindow(maxBytes)
    this.#stderr = new OutputWindow(maxBytes)
  }

  sinkOf(activity: Activity, listener: Listener | undefined): OutputSink {
    return {
      take: (output, received) => {
        const window = output.stream === 'stdout' ? this.#stdout : this.#stderr
        window.push(output.bytes)
        if (listener === undefined) activity.credit(output.stream, received)
        else this.#tell(listener, output, () => activity.credit(output.stream, received))
      },
      close: () => {},
    }
  }

  /** Resolves when every call of the listener has settled. @throws what the listener threw. */
  drain(): Promise<void> {
    return this.#calls
  }

  resultOf(exit: ProgramExit): ExecResult {
    const [stdout, stderr] = [this.#stdout.result(), this.#stderr.result()]
    return { ...exit, stdout: stdout.text, stderr: stderr.text, truncated: stdout.truncated || stderr.truncated }
  }

  #tell(listener: Listener, output: ProgramOutput, taken: () => void): void {
    this.#calls = this.#calls.then(async () => {
      await listener.call(output)
      taken()
    })
    this.#calls.catch((error: unknown) => {
      if (!this.#hasFailed) listener.fail(error)
      this.#hasFailed = true
    })
  }
}
