import { SandglassError } from '../errors/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { formatValue } from '../support/index.ts'
import { checkWhole, invalid } from './failures.ts'
import type { Link } from './link.ts'
import { type LogOptions, type PollOptions, ProgramLog, type ProgramText } from './program-log.ts'
import {
  type CheckedProgram,
  checkProgram,
  checkTerminal,
  type ProgramOutput,
  type StartOptions,
} from './program-options.ts'
import { type ProgramExit, RunningProgram } from './running-program.ts'
import { isSignal } from './signals.ts'

/** The output of a program, and its status. */
export interface ProgramState extends ProgramText {
  readonly status: 'running' | 'exited'
  /** Its end; null while it runs. */
  readonly exit: ProgramExit | null
}

/** A program that runs in the background. Leaving its scope kills it. */
export interface Program extends AsyncDisposable {
  readonly id: string
  readonly status: 'running' | 'exited'
  /** Its end, once none of its processes runs any more. Rejects if the workspace is lost. */
  readonly exited: Promise<ProgramExit>
  /** Its standard input, or its terminal's. */
  readonly stdin: {
    /**
     * Resolves when the program can be sent more.
     * @throws SandglassError `program_not_running`
     */
    write(data: Uint8Array | string): Promise<void>
    /** Ends the input; in a terminal the same as Ctrl-D. */
    end(): void
  }
  /**
   * Its output, from the first byte that is kept. The program waits for a reader; without one it never waits, and the oldest
   * output is dropped. One reader at a time.
   */
  readonly output: AsyncIterable<ProgramOutput>
  /**
   * Returns the output since the last call. Nothing is returned twice, and an incomplete line is returned at once.
   * @throws SandglassError `invalid_request`
   */
  poll(options?: PollOptions): Promise<ProgramState>
  /** Returns output that is kept. Does not affect `poll`. @throws SandglassError `invalid_request` */
  log(options?: LogOptions): ProgramState
  /**
   * Writes to its standard input, followed by a line break if `newline` is true.
   * @throws SandglassError `program_not_running`
   */
  write(data: Uint8Array | string, newline?: boolean): Promise<void>
  /** Sets the size of its terminal. @throws SandglassError `invalid_request` for a program without one. */
  resize(size: { readonly rows: number; readonly columns: number }): void
  /** Sends a signal, like `SIGINT`, to its process group. @throws SandglassError `program_not_running`, `invalid_request` */
  signal(name: string): void
  /** SIGTERM to its process group, and after `graceMs` (default 2000) the end of all its processes. Resolves at its end. */
  kill(options?: { readonly graceMs?: number }): Promise<ProgramExit>
  /** Kills it, if it runs, and resolves when all its processes have ended. Idempotent; never rejects. */
  close(): Promise<void>
}

const DEFAULT_LOG_BYTES = 1024 * 1024
const MIN_LOG_BYTES = 256 * 1024
const MAX_LOG_BYTES = 256 * 1024 * 1024
const KILL_GRACE_MS = 2000
const MAX_GRACE_MS = 3_600_000
/** The share of the log for one window: both windows and the rest in the pipes fit into the log, so a reader misses nothing. */
const WINDOW_SHARE = 8

/** The checked arguments of {@link start}. */
export interface CheckedStart {
  readonly program: CheckedProgram
  readonly maxLogBytes: number
}

/** @throws SandglassError `invalid_request`; TypeError for an option that does not exist. */
export function checkStart(command: unknown, args: unknown, options: StartOptions): CheckedStart {
  const { maxLogBytes = DEFAULT_LOG_BYTES } = options
  return {
    program: checkProgram('start', command, args, options, ['maxLogBytes'], null),
    maxLogBytes: checkWhole('maxLogBytes', maxLogBytes, MIN_LOG_BYTES, MAX_LOG_BYTES),
  }
}

/** Starts a program. @throws SandglassError `program_not_found` and others for one that cannot be executed. */
export async function start(sandbox: Sandbox, link: Link, { program, maxLogBytes }: CheckedStart): Promise<Program> {
  const logs: ProgramLog[] = []
  const running = new RunningProgram({
    sandbox,
    link,
    program,
    stdin: 'pipe',
    isBackground: true,
    maxWindow: Math.floor(maxLogBytes / WINDOW_SHARE),
    makeSink: (activity) => {
      const log = new ProgramLog(maxLogBytes, (stream, bytes) => activity.credit(stream, bytes))
      logs.push(log)
      return {
        take: ({ stream, bytes }, received) => log.push(stream, bytes, received),
        close: (error) => log.close(error),
      }
    },
  })
  if (program.stdin !== undefined) void running.feed(program.stdin)
  using _starting = link.use()
  await running.started
  return new StartedProgram(link, running, logs[0] as ProgramLog, program)
}

class StartedProgram implements Program {
  readonly #link: Link
  readonly #running: RunningProgram
  readonly #log: ProgramLog
  readonly #program: CheckedProgram
  readonly stdin: Program['stdin']
  #exit: ProgramExit | null = null

  constructor(link: Link, running: RunningProgram, log: ProgramLog, program: CheckedProgram) {
    this.#link = link
    this.#running = running
    this.#log = log
    this.#program = program
    this.stdin = { write: (data) => this.write(data), end: () => running.activity.endInput() }
    running.exited.then(
      (exit) => {
        this.#exit = exit
      },
      () => undefined,
    )
  }

  get id(): string {
    return this.#running.activity.id
  }

  get status(): 'running' | 'exited' {
    return this.#running.activity.isOver ? 'exited' : 'running'
  }

  get exited(): Promise<ProgramExit> {
    return this.#running.exited
  }

  get output(): AsyncIterable<ProgramOutput> {
    return { [Symbol.asyncIterator]: () => this.#readOutput() }
  }

  async poll(options?: PollOptions): Promise<ProgramState> {
    using _call = this.#link.use()
    const text = await this.#log.poll(options)
    return { ...text, status: this.status, exit: this.#exit }
  }

  log(options?: LogOptions): ProgramState {
    this.#link.touch()
    return { ...this.#log.look(options), status: this.status, exit: this.#exit }
  }

  async write(data: Uint8Array | string, newline: boolean = false): Promise<void> {
    this.#assertRunning()
    const bytes = Buffer.concat([Buffer.from(data), Buffer.from(newline ? '\n' : '')])
    using _call = this.#link.use()
    if (!(await this.#running.activity.write(bytes))) throw notRunning()
  }

  resize(size: { readonly rows: number; readonly columns: number }): void {
    this.#assertRunning()
    if (this.#program.frame.tty === null) throw invalid('resize', 'the program has no terminal; start it with tty')
    this.#running.activity.send({ type: 'resize', ...checkTerminal(size) })
  }

  signal(name: string): void {
    if (!isSignal(name)) throw invalid('signal', `${formatValue(name)} is not the name of a signal, like SIGINT`)
    this.#assertRunning()
    this.#running.activity.send({ type: 'signal', signal: name })
  }

  async kill({ graceMs = KILL_GRACE_MS }: { readonly graceMs?: number } = {}): Promise<ProgramExit> {
    checkWhole('graceMs', graceMs, 0, MAX_GRACE_MS)
    using _call = this.#link.use()
    if (this.status === 'running' && graceMs > 0) {
      this.signal('SIGTERM')
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, graceMs)
      await Promise.race([this.exited.catch(() => undefined), late])
      clearTimeout(timer)
    }
    this.#running.cancel()
    return await this.exited
  }

  async close(): Promise<void> {
    this.#running.cancel()
    await this.exited.catch(() => undefined)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async *#readOutput(): AsyncGenerator<ProgramOutput, void, void> {
    using _reader = this.#link.use()
    yield* this.#log.read()
  }

  #assertRunning(): void {
    if (this.status === 'exited') throw notRunning()
  }
}

function notRunning(): SandglassError {
  return new SandglassError(
    'program_not_running',
    'session is not running: the program has ended or its input is closed',
  )
}
