import type { EngineOptions } from '../engines/index.ts'
import type { EnvironmentOptions } from '../environments/index.ts'
import type { RunEvent } from '../executor/index.ts'
import type { ApprovalOptions } from '../review/index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'

/** Options of every executor. */
export interface PythonExecutorOptions extends ApprovalOptions {
  /** Packages that every script can import, as `pip` names them. They are trusted. */
  readonly availableDependencies?: readonly string[]
  /**
   * A directory of the host. Scripts get a copy of it, and new and changed files are copied back after each script. Names that
   * begin with a dot are copied in neither direction, and files that a script deletes stay on the host. Default: none; the files of a
   * script are deleted after it.
   */
  readonly workspaceDir?: string
  /**
   * The directory of the packages, which a later executor may use again. Default: a temporary one, removed at the executor's end.
   * Sandboxes must be able to read it.
   */
  readonly runtimeDir?: string
  /** The source of packages, and those that a model may name (`allow`, default `known`). */
  readonly environments?: Omit<EnvironmentOptions, 'cacheDir' | 'fromScript'>
  /** Limits of each script. */
  readonly limits?: ResourceLimits
  /** Environment variables of each script, redacted in all output. */
  readonly secrets?: Readonly<Record<string, string>>
  /**
   * The transport of tool calls. `websocket`: the process of the script listens at a port in the sandbox, and the host connects. Each
   * script then has a workspace of its own. It needs the package `ws`. Default `stdio`: the channel of the sandbox, without a port.
   */
  readonly transport?: 'stdio' | 'websocket'
  /** Called with each event of a running script. A promise is awaited; an error ends the script. */
  readonly onEvent?: (event: RunEvent) => unknown
}

/** Options of {@link LocalPythonExecutor}. */
export interface LocalPythonExecutorOptions extends PythonExecutorOptions {
  readonly local?: EngineOptions['local']
}

/** Options of {@link DockerPythonExecutor}. */
export interface DockerPythonExecutorOptions extends PythonExecutorOptions {
  /** Default `python:3.12`, or the default image of the engine if that is missing. */
  readonly image?: string
  /** Options of the engine, without the image. */
  readonly docker?: Omit<NonNullable<EngineOptions['docker']>, 'image'>
  /** Logs what scripts print, line by line, while they run. Default true. */
  readonly streamContainerOutput?: boolean
  /** Called with each line of the log. Default: `console.error`. */
  readonly log?: (line: string) => void
}

/** The names of the options of every executor. */
export const COMMON_OPTIONS = [
  'availableDependencies',
  'workspaceDir',
  'runtimeDir',
  'environments',
  'limits',
  'secrets',
  'transport',
  'onEvent',
  'approveWrites',
  'approvalTimeoutMs',
  'onPending',
] as const
