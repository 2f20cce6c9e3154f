import { isUint8Array } from 'node:util/types'
import { checkSecrets } from '../executor/index.ts'
import type { HostActivityFrame, ProgramLimitsOnWire } from '../protocol/index.ts'
import { resolveLimits } from '../sandbox/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { checkCwd } from './check-path.ts'
import { checkWhole, invalid } from './failures.ts'

/** Bytes for the standard input of a program. */
export type ProgramInputData = Uint8Array | string | AsyncIterable<Uint8Array | string>

/** Bytes that a program wrote. With a terminal everything is `stdout`. */
export interface ProgramOutput {
  readonly stream: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
}

/**
 * Limits of one program. Absent: those of the workspace. All but `cpus` apply to each of its processes, as resource limits of
 * the kernel.
 */
export interface ProgramLimits {
  /**
   * CPU time per wall time, at least 0.05: 0.5 is half a core. It limits the whole workspace while the program runs, because its
   * processes share a control group; of several programs, the lowest limit applies. Refused where CPU time cannot be limited
   * (`limit_not_enforceable`).
   */
  readonly cpus?: number
  /** Address space of a process. */
  readonly memoryBytes?: number
  /** Processes and threads that the program may start. */
  readonly pids?: number
  /** CPU time of a process, in seconds. */
  readonly cpuSec?: number
  /** Size of a file that a process writes. */
  readonly fileBytes?: number
  /** Open descriptors of a process. */
  readonly openFiles?: number
}

/** Options of a program. */
export interface ProgramOptions {
  /** Variables on top of those of the sandbox; nothing of the host's environment is passed on. */
  readonly env?: Readonly<Record<string, string>>
  /** More variables, whose values are redacted in all output of the program, as the secrets of a run are. */
  readonly secrets?: Readonly<Record<string, string>>
  /** Passes secrets even if other activities of the workspace could read them: see `Workspace.trust`. Default false. */
  readonly shareSecrets?: boolean
  /** Relative to the root of the workspace, which is the default; or a directory of an input, such as `/inputs/data`. */
  readonly cwd?: string
  /** Its standard input. Default for `exec`: none; for `start`: the data written to `stdin`. */
  readonly stdin?: ProgramInputData
  /** Runs it in a terminal, by default of 24 rows and 80 columns. */
  readonly tty?: true | { readonly rows: number; readonly columns: number }
  /** Seconds after which all its processes are killed. Default for `exec`: `executionTimeoutSec`; for `start`: none. */
  readonly timeoutSec?: number
  readonly limits?: ProgramLimits
  /** Kills it. */
  readonly signal?: AbortSignal
}

/** Options of {@link WorkspaceActivities.exec}. */
export interface ExecOptions extends ProgramOptions {
  /** Bytes that are kept of each stream, half at its beginning and half at its end. Default 1 MiB. */
  readonly maxOutputBytes?: number
  /** Called and awaited for each piece of output; the program waits meanwhile. If it throws, the program is killed. */
  readonly onOutput?: (output: ProgramOutput) => unknown
}

/** Options of {@link WorkspaceActivities.start}. */
export interface StartOptions extends ProgramOptions {
  /** Bytes of output that `poll` and `log` can return. Default 1 MiB, at least 256 KiB. */
  readonly maxLogBytes?: number
}

/** A program that can be started. */
export interface CheckedProgram {
  readonly frame: Omit<Extract<HostActivityFrame, { type: 'start' }>, 'execution_id' | 'window' | 'stdin'>
  readonly stdin: ProgramInputData | undefined
  readonly secrets: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
  /** The limit of CPU time per wall time that applies to the whole workspace while the program runs. */
  readonly cpus: number | undefined
}

const OPTIONS: readonly (keyof ProgramOptions)[] = [
  'env',
  'secrets',
  'shareSecrets',
  'cwd',
  'stdin',
  'tty',
  'timeoutSec',
  'limits',
  'signal',
]
const LIMITS = {
  memoryBytes: 'memory_bytes',
  pids: 'pids',
  cpuSec: 'cpu_sec',
  fileBytes: 'file_bytes',
  openFiles: 'open_files',
} as const satisfies Record<Exclude<keyof ProgramLimits, 'cpus'>, keyof ProgramLimitsOnWire>
const DEFAULT_TERMINAL = { rows: 24, columns: 80 }
const MAX_CELLS = 65_535
const MAX_TIMEOUT_SEC = 86_400
/** The limit of `execve` on Linux for arguments and variables together, with the usual limit of the stack. */
const MAX_ARGUMENT_BYTES = 2 * 1024 * 1024
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Checks all arguments of a program before anything is sent.
 * @param own the options of the method in addition to those of every program.
 * @throws SandglassError `invalid_request` naming the field; TypeError for an option that does not exist.
 */
export function checkProgram(
  method: string,
  command: unknown,
  args: unknown,
  options: ProgramOptions,
  own: readonly string[],
  defaultTimeoutSec: number | null,
): CheckedProgram {
  refuseUnknown(method, options, [...OPTIONS, ...own])
  const { cwd = '', stdin, tty, timeoutSec = defaultTimeoutSec, limits = {}, signal } = options
  const secrets = checkSecrets(options.secrets)
  const argv = checkArguments(command, args)
  const env = { ...checkEnv(options.env), ...secrets }
  const size = [...argv, ...Object.entries(env).flat()].reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)
  if (size > MAX_ARGUMENT_BYTES)
    throw invalid(
      'args',
      `arguments and variables have ${size} bytes; at most ${MAX_ARGUMENT_BYTES}, use stdin or files`,
    )
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal', 'it is not an AbortSignal')
  if (timeoutSec !== null && !(typeof timeoutSec === 'number' && timeoutSec > 0 && timeoutSec <= MAX_TIMEOUT_SEC)) {
    throw invalid(
      'timeoutSec',
      `${formatValue(timeoutSec)} is not a number of seconds above 0 and up to ${MAX_TIMEOUT_SEC}`,
    )
  }
  return {
    frame: {
      type: 'start',
      argv,
      env,
      cwd: checkCwd(cwd),
      tty: tty === undefined ? null : checkTerminal(tty === true ? DEFAULT_TERMINAL : tty),
      timeout_sec: timeoutSec,
      limits: checkLimits(limits),
    },
    stdin: checkStdin(stdin),
    secrets,
    signal,
    cpus: limits.cpus === undefined ? undefined : resolveLimits({ cpus: limits.cpus }).cpus,
  }
}

/** @throws SandglassError `invalid_request` */
export function checkTerminal(size: { readonly rows: number; readonly columns: number }): {
  rows: number
  columns: number
} {
  return {
    rows: checkWhole('tty.rows', size.rows, 1, MAX_CELLS),
    columns: checkWhole('tty.columns', size.columns, 1, MAX_CELLS),
  }
}

function checkArguments(command: unknown, args: unknown): string[] {
  if (typeof command !== 'string' || command === '')
    throw invalid('command', `${formatValue(command)} is not the name or path of a program`)
  if (!Array.isArray(args)) throw invalid('args', `${formatValue(args)} is not an array of strings`)
  return [command, ...(args as unknown[])].map((arg, index) => {
    const field = index === 0 ? 'command' : `args[${index - 1}]`
    if (typeof arg !== 'string') throw invalid(field, `${formatValue(arg)} is not a string`)
    if (arg.includes('\0')) throw invalid(field, 'it holds a NUL')
    if (!arg.isWellFormed()) throw invalid(field, 'it holds a lone surrogate')
    return arg
  })
}

function checkEnv(given: unknown): Record<string, string> {
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid('env', `${formatValue(given)} is not an object of names and values`)
  const entries = Object.entries(given).map(([name, value]: [string, unknown]): [string, string] => {
    if (!VARIABLE.test(name))
      throw invalid(
        'env',
        `${formatValue(name)} is not a valid name of a variable: use letters, digits and "_", no digit first`,
      )
    if (typeof value !== 'string') throw invalid(`env.${name}`, 'its value is not a string')
    if (value.includes('\0') || !value.isWellFormed())
      throw invalid(`env.${name}`, 'its value holds a NUL or a lone surrogate')
    return [name, value]
  })
  return Object.fromEntries(entries)
}

function checkLimits(limits: ProgramLimits): ProgramLimitsOnWire {
  refuseUnknown('limits', limits, ['cpus', ...Object.keys(LIMITS)])
  const entries = Object.entries(LIMITS).flatMap(([name, wireName]) => {
    const value = limits[name as keyof typeof LIMITS]
    if (value === undefined) return []
    return [[wireName, checkWhole(`limits.${name}`, value, 1, Number.MAX_SAFE_INTEGER)] as const]
  })
  return Object.fromEntries(entries)
}

function checkStdin(stdin: unknown): ProgramInputData | undefined {
  if (stdin === undefined || typeof stdin === 'string' || isUint8Array(stdin)) return stdin
  if (typeof stdin === 'object' && stdin !== null && Symbol.asyncIterator in stdin)
    return stdin as AsyncIterable<Uint8Array | string>
  throw invalid('stdin', `${formatValue(stdin)} is neither a string, nor bytes, nor an async iterable of them`)
}
