/** Limits of one program. Absent or 0: those of the workspace. */
export interface ResourceLimits {
  /** Percent of one processor, while the program runs, for everything in the workspace. Refused where the engine cannot enforce it. */
  readonly cpuPercent?: number
  /** Address space of each process, in MiB. */
  readonly memoryMB?: number
  /** Processes and threads that the program may start. */
  readonly maxPIDs?: number
}

/** A program with its arguments and environment. */
export interface RunProgramSpec {
  readonly cmd: string
  readonly args?: readonly string[]
  /** Variables in addition to those of the workspace. The host's environment is not passed on. */
  readonly env?: Readonly<Record<string, string>>
  /** Relative to the workspace, or with a prefix such as `$WORK_DIR/`. Default: the workspace. */
  readonly cwd?: string
  readonly stdin?: string
  /** Time after which the program and everything that it started are killed. Absent or 0: `executionTimeoutSec` of the Sandglass. */
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

/** An interactive program. */
export interface InteractiveProgramSpec extends RunProgramSpec {
  /** Runs it in a terminal. */
  readonly tty?: boolean
}

/** Output of a program: stdout and stderr in the order of arrival. */
export interface ProgramLog {
  readonly output: string
  /** The offset of the output, in bytes from the beginning. */
  readonly offset: number
  /** The offset after it. */
  readonly nextOffset: number
}

/** Output since the last poll. */
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

/** A session that reports its status without consuming output. */
export interface ProgramStateProvider {
  state(): ProgramState
}

/** A session that reports the result of its program. */
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
  /** Sends SIGTERM to its group, and kills everything that it started after the grace period. */
  kill(graceMs?: number): Promise<void>
  /** Ends the program, and frees its resources. Idempotent. */
  close(): Promise<void>
}
