import { SandglassError } from '../errors/index.ts'
import type { ActivityDoneFrame, ActivityFailure, ActivityStream } from '../protocol/index.ts'
import { Redactor } from '../redaction/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { Countdown, piecesUntil } from '../support/index.ts'
import { type Activity, type ActivityEnd, type ActivityHandler, OUTPUT_WINDOW_BYTES } from './activity.ts'
import { liftCpuLimit } from './cpu-share.ts'
import { abortedError, failureOf } from './failures.ts'
import type { Link } from './link.ts'
import type { CheckedProgram, ProgramInputData, ProgramOutput } from './program-options.ts'
import { exitCodeOf } from './signals.ts'

/** The end of a program. */
export interface ProgramExit {
  /** The exit code as a shell reports it: 128 plus the number of the signal for a program that a signal ended. */
  readonly exitCode: number
  /** The signal that ended it, like `SIGKILL`; null if it ended by itself. */
  readonly signal: string | null
  /** True if it was killed because its `timeoutSec` had elapsed. */
  readonly timedOut: boolean
  /** True if SIGKILL ended it (or it exited with 137, as shells do) and there was an OOM kill in this workspace meanwhile. */
  readonly outOfMemory: boolean
  /** Bytes that it wrote. */
  readonly stdoutBytes: number
  readonly stderrBytes: number
  readonly durationMs: number
}

/** Receives the redacted output of a program. `received` is the number of bytes to credit when the output was processed. */
export interface OutputSink {
  take(output: ProgramOutput, received: number): void
  /** Called at the end of the program. */
  close(error?: SandglassError): void
}

type Stream = ProgramOutput['stream']

/** After the deadline the sandbox kills the program, and needs CPU time for it. */
const BOOST_AFTER_MS = 100
/** The sandbox has its own clock; if it does not act, the host does. */
const BACKSTOP_MS = 2000
/** The exit code of a program that SIGKILL ended. A shell exits with it, too, if SIGKILL ended its command. */
const KILLED_EXIT_CODE = 137
/** The marker of a secret is longer than the secret, which can have four characters. So with secrets the window is smaller. */
const SECRETS_WINDOW_SHARE = 4

/** The options of a program to start. */
export interface ProgramStart {
  readonly sandbox: Sandbox
  readonly link: Link
  readonly program: CheckedProgram
  readonly stdin: 'none' | 'pipe'
  /** True if nobody waits for its end. */
  readonly isBackground?: boolean
  /** Bytes of each stream that may wait for the sink. */
  readonly maxWindow?: number
  readonly makeSink: (activity: Activity) => OutputSink
}

/** A program in a sandbox, from its start to its end. */
export class RunningProgram implements ActivityHandler {
  readonly activity: Activity
  /** Resolves when the program has been executed. */
  readonly started: Promise<void>
  /** Rejects when the program could not be executed, when the sandbox is lost, or with the error of a callback or of its input. */
  readonly exited: Promise<ProgramExit>
  readonly #program: CheckedProgram
  readonly #sandbox: Sandbox
  readonly #link: Link
  readonly #sink: OutputSink
  readonly #memoryKillsBefore: number
  readonly #start = Promise.withResolvers<void>()
  readonly #exit = Promise.withResolvers<ProgramExit>()
  readonly #redactors: Record<Stream, ReturnType<Redactor['stream']>>
  readonly #isRedacting: boolean
  readonly #received: Record<Stream, number> = { stdout: 0, stderr: 0 }
  readonly #onAbort = (): void => this.fail(abortedError('the program'))
  #timers: Countdown[] = []
  #lifted: AsyncDisposable | undefined
  #failure: { readonly error: unknown } | undefined

  /** @throws SandglassError as {@link Link.open} does. */
  constructor({
    sandbox,
    link,
    program,
    stdin,
    isBackground = false,
    maxWindow = OUTPUT_WINDOW_BYTES,
    makeSink,
  }: ProgramStart) {
    this.#sandbox = sandbox
    this.#link = link
    this.#program = program
    this.#memoryKillsBefore = sandbox.memoryKills() ?? 0
    this.#isRedacting = Object.keys(program.secrets).length > 0
    const redactor = new Redactor(program.secrets)
    this.#redactors = { stdout: redactor.stream(), stderr: redactor.stream() }
    this.started = this.#start.promise
    this.exited = this.#exit.promise
    // The caller may wait for one of them only.
    this.started.catch(() => undefined)
    this.exited.catch(() => undefined)
    const window = Math.min(OUTPUT_WINDOW_BYTES, maxWindow)
    const size = this.#isRedacting ? Math.ceil(window / SECRETS_WINDOW_SHARE) : window
    this.activity = link.open(this, { window: size, isBackground, hasProcesses: true })
    this.#sink = makeSink(this.activity)
    this.activity.send({ ...program.frame, stdin, window: size })
    this.#watchTime(program.frame.timeout_sec)
    program.signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (program.signal?.aborted === true) this.#onAbort()
  }

  /** Writes all data and ends the input. */
  async feed(data: ProgramInputData): Promise<void> {
    try {
      if (typeof data === 'string' || data instanceof Uint8Array) await this.activity.write(Buffer.from(data))
      else
        for await (const piece of piecesUntil(data, this.exited)) {
          // A program that has ended reads nothing: stop reading the source.
          if (!(await this.activity.write(Buffer.from(piece)))) break
        }
      this.activity.endInput()
    } catch (error) {
      this.fail(error)
    }
  }

  /** Ends the program, because a callback or the input of the caller failed; {@link exited} rejects with this error. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.cancel()
  }

  /** Kills all its processes. */
  cancel(): void {
    if (this.activity.isOver) return
    this.#lift()
    this.activity.cancel()
  }

  onFrame({ type }: { readonly type: string }): void {
    if (type === 'started') this.#start.resolve()
  }

  onOutput(stream: ActivityStream, bytes: Buffer): void {
    if (stream !== 'stdout' && stream !== 'stderr') return
    this.#received[stream] += bytes.length
    const safe = this.#isRedacting
      ? Buffer.from(this.#redactors[stream].push(bytes.toString('latin1')), 'latin1')
      : bytes
    this.#sink.take({ stream, bytes: safe }, bytes.length)
  }

  onEnd(end: ActivityEnd): void {
    for (const timer of this.#timers) timer.stop()
    this.#program.signal?.removeEventListener('abort', this.#onAbort)
    this.#lifted?.[Symbol.asyncDispose]().then(undefined, () => undefined)
    const { stdout, stderr } = this.#redactors
    for (const [stream, redactor] of [
      ['stdout', stdout],
      ['stderr', stderr],
    ] as const) {
      const rest = redactor.flush()
      if (rest !== '') this.#sink.take({ stream, bytes: Buffer.from(rest, 'latin1') }, 0)
    }
    this.#sink.close('lost' in end ? end.lost : undefined)
    this.#settle(end)
  }

  #settle(end: ActivityEnd): void {
    const problem = this.#problemOf(end)
    if (problem !== undefined) {
      this.#start.reject(problem.error)
      this.#exit.reject(problem.error)
      return
    }
    this.#start.resolve()
    this.#exit.resolve(this.#exitOf((end as { readonly done: ActivityDoneFrame }).done))
  }

  #problemOf(end: ActivityEnd): { readonly error: unknown } | undefined {
    if (this.#failure !== undefined) return this.#failure
    if ('lost' in end) return { error: end.lost }
    const { error } = end.done
    if (error === null && end.done.ending !== null) return undefined
    return {
      error: new ProgramFailure(error ?? { code: 'io', message: 'the sandbox did not report how the program ended' }),
    }
  }

  #exitOf({ ending, result, duration_ms }: ActivityDoneFrame): ProgramExit {
    const exitCode = exitCodeOf(ending?.exit_code ?? null, ending?.signal ?? null)
    return {
      exitCode,
      signal: ending?.signal ?? null,
      timedOut: ending?.cause === 'timeout',
      outOfMemory: exitCode === KILLED_EXIT_CODE && this.#isKilledByItself(ending) && this.#countsMemoryKills(result),
      stdoutBytes: this.#received.stdout,
      stderrBytes: this.#received.stderr,
      durationMs: duration_ms,
    }
  }

  /** False for a program that was ended from outside. */
  #isKilledByItself(ending: ActivityDoneFrame['ending']): boolean {
    return ending?.cause === 'exit' || ending?.cause === 'signal'
  }

  /** The host sees its control groups; in a container the harness does. */
  #countsMemoryKills(result: unknown): boolean {
    const { memory_kills: counted } = (result ?? {}) as Record<string, unknown>
    return (this.#sandbox.memoryKills() ?? 0) > this.#memoryKillsBefore || (typeof counted === 'number' && counted > 0)
  }

  #watchTime(timeoutSec: number | null): void {
    if (timeoutSec === null) return
    const endsAt = performance.now() + timeoutSec * 1000
    const at = (afterMs: number, action: () => void): Countdown =>
      new Countdown(() => endsAt + afterMs - performance.now(), action)
    this.#timers = [at(BOOST_AFTER_MS, () => this.#lift()), at(BACKSTOP_MS, () => this.cancel())]
  }

  /** Lifts the CPU limit, which the sandbox shares with the processes that it has to kill. */
  #lift(): void {
    this.#lifted ??= liftCpuLimit(this.#sandbox, this.#link)
  }
}

/** The error of a program that could not be executed. */
export class ProgramFailure extends SandglassError {
  readonly failure: ActivityFailure

  constructor(failure: ActivityFailure) {
    const { code, message } = failureOf('the program could not be started', failure)
    super(code, message)
    this.failure = failure
  }
}
