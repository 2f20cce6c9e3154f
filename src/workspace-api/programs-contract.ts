/** Limits of one program. Absent or 0: those of the workspace. */
export interface ResourceLimits {
  /** Percent of one processor, while the program runs, for everything in the workspace. Refused where nothing enforces it. */
  readonly cpuPercent?: number
  /** Address space of each process, in MiB. */
  readonly memoryMB?: number
  /** Processes and threads that the program may start. */
  readonly maxPIDs?: number
}

/** A program and what it is given. */
export interface RunProgramSpec {
  readonly cmd: string
  readonly args?: readonly string[]
  /** Variables on top of those of the workspace. Nothing of the host's environment is passed on. */
  readonly env?: Readonly<Record<string, string>>
  /** Relative to the workspace, or with a prefix such as `$WORK_DIR/`. Default: the workspace. */
  readonly cwd?: string
  readonly stdin?: string
  /** After it everything that the program started is killed. Absent or 0: `executionTimeoutSec` of the Sandglass. */
  readonly timeoutMs?: number
  readonly limits?: ResourceLimits
}

/** The end of a program. */
export interface RunResult {
  readonly stdout: string
  readonly stderr: string
  /** The exit code as a shell reports it; -1 if the program could not be executed, with the reason in `stderr`. */
  readonly exitCode: number
  readonly durationMs: number
  readonly timedOut: boolean
}

/** A program with which a caller talks. */
export interface InteractiveProgramSpec extends RunProgramSpec {
  /** Runs it in a terminal. */
  readonly tty?: boolean
}

/** Output of a program: stdout and stderr in the order of arrival. */
export interface ProgramLog {
  readonly output: string
  /** The place of the output, in bytes from the beginning. */
  readonly offset: number
  /** The place behind it. */
  readonly nextOffset: number
}

/** Output that came since the last time. */
export interface ProgramPoll extends ProgramLog {
  readonly status: 'running' | 'exited'
  /** Null while it runs. */
  readonly exitCode: number | null
}

/** The status of a program. */
export interface ProgramState {
  readonly status: 'running' | 'exited'
  /** Null while it runs. */
  readonly exitCode: number | null
}

/** A session that tells its status without moving on. */
export interface ProgramStateProvider {
  state(): ProgramState
}

/** A session that tells the end of its program. */
export interface ProgramResultProvider {
  /** @throws SandglassError `invalid_request` while the program runs. */
  runResult(): RunResult
}

/** A program that runs. Every method can be called at any time, by several callers. */
export interface ProgramSession extends ProgramStateProvider, ProgramResultProvider {
  readonly id: string
  /** @param limit bytes, from 16; absent: 65,536. */
  poll(limit?: number): Promise<ProgramPoll>
  /**
   * @param offset absent: the first byte that is kept.
   * @param limit bytes, from 16; absent: all that is kept.
   */
  log(offset?: number, limit?: number): ProgramLog
  /** @throws SandglassError `program_not_running` after its end. */
  write(data: string, newline?: boolean): Promise<void>
  /** SIGTERM to its group, and after the grace the end of all that it started. */
  kill(graceMs?: number): Promise<void>
  /** Ends it, and frees what it held. Idempotent. */
  close(): Promise<void>
}
