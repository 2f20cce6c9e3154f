import { SandglassError } from '../errors/index.ts'
import type {
  ExecutionMode,
  ExecutionResult,
  FilesInput,
  Policy,
  RunEvent,
  RunRequest,
  ScriptExecutorOptions,
} from '../executor/index.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import type { ToolLimits, ToolsInput } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import type { WorkspaceActivities } from '../workspace/index.ts'
import type { Session, WorkspaceSessionOptions } from './session.ts'
import { unknownValueError } from './unknown-value.ts'

/** The options of a run. */
export interface RunOptions<T = unknown> extends Omit<RunRequest, 'script' | 'tools' | 'stdin'> {
  /**
   * The standard input of the script and of its programs, at most 16 MiB; text as UTF-8. A stream is read to its end, for at most
   * `executionTimeoutSec`, before the script begins. Default: empty.
   */
  readonly stdin?: Uint8Array | string | AsyncIterable<Uint8Array | string>
  /**
   * Functions that the script may call: of the host (`defineTool`, tools of the AI SDK, of LangChain or of an MCP
   * server), Python tools (`definePythonTool`), or a registry.
   */
  readonly tools?: ToolsInput
  /** The number of calls that the script may make, in total and at a time. */
  readonly toolLimits?: ToolLimits
  /**
   * The transport of tool calls. `websocket`: a connection to an endpoint in the sandbox, which must be a workspace that runs several
   * activities at once, or have a network address. It needs the package `ws`. Default `stdio`: the channel of the sandbox.
   */
  readonly toolTransport?: 'stdio' | 'websocket'
  /**
   * Checks the script before any part of it runs; a script with mistakes is `rejected` and takes no sandbox from the pool.
   * Default `off`.
   */
  readonly policy?: Policy
  /** Modules that the policy `strict` admits in addition to its own. */
  readonly allowModules?: readonly string[]
  /** Default `interactive`: ending without a result is fine. `plan` needs a result. */
  readonly mode?: ExecutionMode
  /** Limits of this run, in place of those of `createSandglass`. */
  readonly limits?: ResourceLimits
  /** Packages of this run, in place of those of `createSandglass`; installed and cached as they are. */
  readonly dependencies?: readonly string[]
  /**
   * Packages that a model named, added to the others: only what `environments.allow` admits is installed, and
   * `environments.excludeNewer` has the default of scripts.
   */
  readonly untrustedDependencies?: readonly string[]
  /** Checks the result; a mismatch makes the run `failed`. Any Standard Schema (zod 4 and others). */
  readonly output?: StandardSchema<T>
  /** The owner who may get the same sandbox again. Default: this Sandglass. */
  readonly leaseKey?: string
  /** Asks for this sandbox while it lives; otherwise another one of the same lease key serves. */
  readonly sandboxId?: string
  /** The time that this run waits for a sandbox, in milliseconds. Default: the option of `createSandglass`. */
  readonly checkoutTimeoutMs?: number
  /** Runs it in this workspace, where its files stay, instead of a sandbox of the pool. */
  readonly workspace?: Workspace
  /** In a workspace: gives the secrets also where other activities could read them (its `trust` is `shared`). Default false. */
  readonly shareSecrets?: boolean
  readonly onIntermediate?: ScriptExecutorOptions['onIntermediate']
  readonly onLog?: ScriptExecutorOptions['onLog']
  readonly onEvent?: ScriptExecutorOptions['onEvent']
}

/** Options of a script in a workspace: those of a run, without what chooses a sandbox. */
export interface WorkspaceRunOptions<T = unknown> extends Omit<
  RunOptions<T>,
  'workspace' | 'dependencies' | 'untrustedDependencies' | 'leaseKey' | 'sandboxId' | 'checkoutTimeoutMs' | 'files'
> {
  /** Files to put into the workspace before the script runs, of any number and size. */
  readonly files?: FilesInput
}

/** A sandbox of one owner that lasts until it is closed. Made by `Sandglass.workspace`; leaving its scope closes it. */
export interface Workspace extends WorkspaceActivities {
  /**
   * Runs one script. Its files stay; its processes end. Whatever the script does is a value.
   * @throws SandglassError as `Sandglass.run` does, and `secrets_not_separate`, `workspace_closed`, `workspace_lost`.
   */
  run<T = unknown>(script: string, options?: WorkspaceRunOptions<T>): Promise<ExecutionResult<T>>
  /** The same as events while the script runs; the last one is the result. Leaving the loop cancels the run. */
  stream<T = unknown>(script: string, options?: WorkspaceRunOptions<T>): AsyncIterable<RunEvent<T>>
  /**
   * Opens a session: cells that run one after the other in the same process. The scripts and programs of the workspace continue to run.
   * @throws SandglassError `activity_unavailable` where activities run one at a time, `sandbox_busy`, `workspace_closed`,
   * `workspace_lost`, `aborted`.
   */
  session(options?: WorkspaceSessionOptions): Promise<Session>
}

/** The options of a run that pass to the executor as they are. */
export const REQUEST_OPTIONS = [
  'executionId',
  'requiredSecrets',
  'secrets',
  'hide',
  'inputs',
  'files',
  'collect',
  'collectLimits',
  'preamble',
  'postamble',
  'signal',
] as const

/**
 * Checks the options of `run` and `stream` that no lower room checks.
 * @throws TypeError for an option that does not exist; SandglassError `invalid_request`, naming the option.
 */
export function checkRunOptions<T>(options: RunOptions<T>): void {
  refuseUnknown('run', options, RUN_OPTIONS)
  const { policy = 'off' } = options
  if (!POLICIES.includes(policy)) throw unknownValueError('policy', 'policy', policy, POLICIES)
  const { toolTransport = 'stdio' } = options
  if (!TRANSPORTS.includes(toolTransport))
    throw unknownValueError('toolTransport', 'transport', toolTransport, TRANSPORTS)
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal))
    throw new SandglassError('invalid_request', `signal: ${formatValue(options.signal)} is not an AbortSignal`)
  if (options.workspace === undefined) return
  for (const name of POOL_OPTIONS) {
    if (options[name] === undefined) continue
    throw packagesOfWorkspaceError(name)
  }
}

/** The error of an option that chooses a sandbox or packages, for a run in a workspace, which has its own. */
export function packagesOfWorkspaceError(name: string): SandglassError {
  return new SandglassError(
    'invalid_request',
    `${name}: a run in a workspace uses the sandbox and the packages of the workspace; leave this option out`,
  )
}

/** All options of a run. */
export const RUN_OPTIONS: readonly (keyof RunOptions)[] = [
  ...REQUEST_OPTIONS,
  'stdin',
  'tools',
  'toolLimits',
  'toolTransport',
  'policy',
  'allowModules',
  'dependencies',
  'untrustedDependencies',
  'mode',
  'limits',
  'output',
  'leaseKey',
  'sandboxId',
  'checkoutTimeoutMs',
  'workspace',
  'shareSecrets',
  'onIntermediate',
  'onLog',
  'onEvent',
]

/** Options that choose a sandbox of the pool. */
const POOL_OPTIONS = ['dependencies', 'untrustedDependencies', 'leaseKey', 'sandboxId', 'checkoutTimeoutMs'] as const

const TRANSPORTS: readonly string[] = ['stdio', 'websocket'] satisfies RunOptions['toolTransport'][]
const POLICIES: readonly string[] = ['off', 'standard', 'strict'] satisfies Policy[]
