import { SandglassError } from '../errors/index.ts'
import type {
  CellEnd,
  ExecutionResult,
  RunEvent,
  RunRequest,
  ScriptExecutorOptions,
  SessionVariable,
} from '../executor/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import type { ToolLimits, ToolsInput } from '../tools/index.ts'
import { unknownValueError } from './unknown-value.ts'
import type { WorkspaceOptions } from './workspace.ts'

/** Options of one cell. Defaults of `tools`, `toolLimits`, `timeoutSec`, `maxOutputBytes` and `onError` are those of the session. */
export interface CellOptions extends Pick<
  RunRequest,
  'executionId' | 'requiredSecrets' | 'hide' | 'inputs' | 'files' | 'collect' | 'collectLimits' | 'signal'
> {
  /** Functions that the cell may call, as in a run. */
  readonly tools?: ToolsInput
  /** The number of calls that the cell may make, in total and at a time. */
  readonly toolLimits?: ToolLimits
  /** The standard input of the cell, as in a run. Default: empty. */
  readonly stdin?: Uint8Array | string | AsyncIterable<Uint8Array | string>
  /** Gives the secrets also where other activities could read them (the workspace's `trust` is `shared`). Default false. */
  readonly shareSecrets?: boolean
  /**
   * Environment variables of this cell only. They and the values of `hide` are redacted in its output and in that of later cells,
   * whose variables can hold them: each value, even if a later cell gives the name another value. A session hides at most 32 KiB
   * of names and values; a cell with more is refused.
   */
  readonly secrets?: Readonly<Record<string, string>>
  /** Seconds that the cell may take, as `limits.executionTimeoutSec` of a run. */
  readonly timeoutSec?: number
  /** Bytes of output that it may send, as `limits.maxOutputBytes` of a run. */
  readonly maxOutputBytes?: number
  /**
   * The state after an exception: `keep`, the default, leaves it as the cell left it, as Jupyter does; `rollback` restores
   * the state before the cell. A timeout, a crash, a cancellation and a limit always roll back. Where sessions have no checkpoints,
   * these can lose the session instead, and `rollback` is refused (`checkpoint_unavailable`).
   */
  readonly onError?: 'keep' | 'rollback'
  readonly onIntermediate?: ScriptExecutorOptions['onIntermediate']
  readonly onLog?: ScriptExecutorOptions['onLog']
  readonly onEvent?: ScriptExecutorOptions['onEvent']
}

/** Options of a session in a workspace. */
export interface WorkspaceSessionOptions extends Pick<
  CellOptions,
  'tools' | 'toolLimits' | 'timeoutSec' | 'maxOutputBytes' | 'onError'
> {
  /**
   * `auto`, the default: a copy of the session's process waits while each cell runs, so that a rollback has a state to return to. `off`: no
   * copy, which saves its time and memory; a cell that must be rolled back ends the session.
   */
  readonly checkpoints?: 'auto' | 'off'
  /** An abort while the session opens rejects with `aborted`; a later abort closes the session, as `close()` does. */
  readonly signal?: AbortSignal
}

/** Options of `Sandglass.session`: those of a session, and of the workspace that is opened and closed with it. */
export interface SessionOptions extends WorkspaceSessionOptions, Omit<WorkspaceOptions, 'signal'> {}

/** The result of a cell: that of a run, the state of the session after it, and its number, from 1. */
export type CellResult = ExecutionResult & CellEnd & { readonly number: number }

/**
 * Cells of Python that run one after the other in the same process, so that variables stay. Made by `Sandglass.session` or
 * `Workspace.session`; leaving its scope closes it.
 */
export interface Session extends AsyncDisposable {
  readonly id: string
  /** Descriptions of the state of its origin that a branch lacks, such as threads. Empty for a session that is no branch. */
  readonly missing: readonly string[]
  /**
   * Runs one cell. The result describes whatever the cell does; a result with `state: 'lost'` is the last one of the session.
   * @throws SandglassError `sandbox_busy` during another cell or operation, `session_closed`, `session_lost`, and those of `Workspace.run`.
   */
  run(cell: string, options?: CellOptions): Promise<CellResult>
  /**
   * Runs one cell, and yields its events; the last one is the result. Leaving the loop cancels the cell, which rolls it back, or
   * without a checkpoint ends the session.
   * @throws as `run` does
   */
  stream(cell: string, options?: CellOptions): AsyncIterable<CellEvent>
  /** Raises KeyboardInterrupt in the cell that runs or is about to begin, if there is one. The state stays. @throws SandglassError `session_closed`, `session_lost` */
  interrupt(): Promise<void>
  /**
   * Keeps the current state of the process until `release()` or the end of the session; with `files`, also the files of a workspace
   * that was opened with `persist`. At most 32 checkpoints at a time.
   * @throws SandglassError `checkpoint_unavailable`, `sandbox_busy`, `session_closed`, `session_lost`, and those of `Workspace.checkpoint`;
   * TypeError for an option that does not exist
   */
  checkpoint(name?: string, options?: { readonly files?: boolean }): Promise<SessionCheckpoint>
  /**
   * Goes back to the state of a checkpoint of this session, by its object, id or name; of several with the same name, the newest. The checkpoint
   * stays; everything that ran in the session ends.
   * @throws SandglassError `checkpoint_unavailable`, `invalid_request` for what is neither, and for `files` of a checkpoint without
   * them, `sandbox_busy`, `session_closed`, `session_lost`, and those of `Workspace.restore`; TypeError for an option that does not exist
   */
  restore(checkpoint: SessionCheckpoint | string, options?: { readonly files?: boolean }): Promise<RestoredState>
  /**
   * Releases a checkpoint of this session, as `restore` finds it, and frees its memory and process. Files that it stored stay.
   * @throws SandglassError `checkpoint_unavailable` for one that does not exist, `invalid_request` for what is neither, `sandbox_busy`,
   * `session_closed`, `session_lost`
   */
  release(checkpoint: SessionCheckpoint | string): Promise<void>
  /**
   * Makes 1 to 16 sessions that begin with the current state and run concurrently in the same workspace. Files and shared memory are shared;
   * threads, programs, pipes, sockets and transactions stay with this session, and `missing` of each branch names them.
   * @throws SandglassError `checkpoint_unavailable`, `invalid_request`, `sandbox_busy`, `session_closed`, `session_lost`
   */
  branch(count: number): Promise<Session[]>
  /** The variables that its cells have bound, at most 400. @throws SandglassError `sandbox_busy`, `session_closed`, `session_lost` */
  variables(): Promise<SessionVariable[]>
  /**
   * The completions of the word before `cursor`, at most 200.
   * @param cursor index into `code`. Default: its end.
   * @throws SandglassError `invalid_request` for a cursor outside of the code, `sandbox_busy`, `session_closed`, `session_lost`
   */
  complete(code: string, cursor?: number): Promise<string[]>
  /** Ends the session and everything that it started; with `Sandglass.session`, its workspace too. Idempotent; never rejects. */
  close(): Promise<void>
}

/** A saved state of a session. */
export interface SessionCheckpoint {
  readonly id: string
  /** Null if it has none. */
  readonly name: string | null
  readonly grade: 'whole' | 'partial' | 'none'
  /** Descriptions of the state that it does not hold. */
  readonly lacks: readonly string[]
  /** The checkpoint of the workspace's files; null without `files`. */
  readonly files: string | null
}

/** The result of `Session.restore`. */
export interface RestoredState {
  /** Names of the processes that it ended. */
  readonly ended: readonly string[]
  /** Descriptions of the state that was not restored. */
  readonly missing: readonly string[]
  /** Says what a rollback of the next cell can restore. */
  readonly checkpoint: { readonly grade: 'whole' | 'partial' | 'none'; readonly lacks: readonly string[] }
}

/** The events of a cell: those of a run, with the result of the cell as the last one. */
export type CellEvent =
  | Exclude<RunEvent, { readonly type: 'result' }>
  | { readonly type: 'result'; readonly executionId: string; readonly result: CellResult }

/** @throws TypeError for an option that does not exist, SandglassError `invalid_request` for a value that cannot be. */
export function checkSessionOptions(options: WorkspaceSessionOptions): void {
  refuseUnknown('session', options, SESSION_OPTIONS)
  checkChoices(options)
}

/** The two parts of the options of `Sandglass.session`. @throws as {@link checkSessionOptions} does. */
export function partsOfSessionOptions(options: SessionOptions): {
  readonly session: WorkspaceSessionOptions
  readonly workspace: WorkspaceOptions
} {
  const isOfSession = (name: string): boolean =>
    name !== 'signal' && (SESSION_OPTIONS as readonly string[]).includes(name)
  const parts = (wanted: boolean): object =>
    Object.fromEntries(Object.entries(options).filter(([name]) => isOfSession(name) === wanted))
  return { session: parts(true), workspace: parts(false) }
}

/** @throws TypeError for an option that does not exist, SandglassError `invalid_request` for a value that cannot be. */
export function checkCellOptions(cell: unknown, options: CellOptions): void {
  if (typeof cell !== 'string')
    throw new SandglassError('invalid_request', `cell: ${formatValue(cell)} is not a string`)
  refuseUnknown('run', options, CELL_OPTIONS)
  checkChoices(options)
}

function checkChoices({ onError = 'keep', ...options }: WorkspaceSessionOptions): void {
  if (!ON_ERROR.includes(onError)) throw unknownValueError('onError', 'value', onError, ON_ERROR)
  const { checkpoints = 'auto' } = options
  if (!CHECKPOINTS.includes(checkpoints)) throw unknownValueError('checkpoints', 'value', checkpoints, CHECKPOINTS)
}

const ON_ERROR: readonly string[] = ['keep', 'rollback']
const CHECKPOINTS: readonly string[] = ['auto', 'off']
const SESSION_OPTIONS: readonly (keyof WorkspaceSessionOptions)[] = [
  'tools',
  'toolLimits',
  'timeoutSec',
  'maxOutputBytes',
  'onError',
  'checkpoints',
  'signal',
]
const OWN_OPTIONS = ['executionId', 'timeoutSec', 'maxOutputBytes', 'onError'] as const
/** The options that a cell and a run share. */
export const SHARED_OPTIONS: readonly Exclude<keyof CellOptions, (typeof OWN_OPTIONS)[number]>[] = [
  'tools',
  'toolLimits',
  'requiredSecrets',
  'secrets',
  'hide',
  'shareSecrets',
  'inputs',
  'files',
  'stdin',
  'collect',
  'collectLimits',
  'signal',
  'onIntermediate',
  'onLog',
  'onEvent',
]
const CELL_OPTIONS: readonly (keyof CellOptions)[] = [...SHARED_OPTIONS, ...OWN_OPTIONS]
