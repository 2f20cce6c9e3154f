import { type EngineName, type EngineOptions, type EngineTable, ENGINES } from './engines/index.ts'
import type { EnvironmentOptions } from './environments/index.ts'
import { SandglassError } from './errors/index.ts'
import {
  ExecutionMode,
  type ExecutionResult,
  type FilesInput,
  isStdinStream,
  type Policy,
  type RunEvent,
  type RunRequest,
  type ScriptExecutorOptions,
} from './executor/index.ts'
import { checkWorkspaceId } from './persistence/index.ts'
import { REQUIREMENTS, type Requirement, type ResourceLimits, type SandboxEngine } from './sandbox/index.ts'
import type { Store } from './stores/index.ts'
import { formatValue, didYouMean, refuseUnknown } from './support/index.ts'
import type { RunPythonOptions, ToolLimits, ToolsInput } from './tools/index.ts'
import type { ModelInput } from './llm/index.ts'
import { TASK_NAMES, type TaskOptions } from './orchestrator/index.ts'
import type { StandardSchema } from './typed-result.ts'
import type { WorkspaceActivities } from './workspace/index.ts'

/** The options of `createSandglass`; all have defaults. */
export interface SandglassOptions extends EngineOptions {
  /**
   * Default `auto`: the first of `local` (Linux, bubblewrap), `docker` (containers) and `pyodide` (anywhere; without
   * bubblewrap isolated by the language alone) that starts here and meets `require`.
   */
  readonly engine?: 'auto' | EngineName | SandboxEngine
  /**
   * Defaults for every run; a run may have its own. A given limit that the machine cannot enforce is refused. Each result
   * lists the limits in force.
   */
  readonly limits?: ResourceLimits
  /** Warm sandboxes kept per set of limits. Default 2. */
  readonly poolSize?: number
  /** Sandboxes made on demand above that. Default 2. */
  readonly maxOverflow?: number
  /** Scripts after which a sandbox is replaced. Default 50; 1 gives every script a sandbox of its own. */
  readonly maxUses?: number
  /**
   * The memory in bytes that idle sandboxes may take together. Above it, sets of limits or packages that were used least
   * recently give theirs up. Default 1 GiB.
   */
  readonly maxIdleBytes?: number
  /** The time that a run waits for a sandbox, in milliseconds. Default 30,000. */
  readonly checkoutTimeoutMs?: number
  /**
   * Packages that scripts can import, as `pip` names them (`pandas>=2`): wheels from the package index, installed once and
   * kept in a cache. Nothing of a package is executed outside of a sandbox. In place of `packages`.
   */
  readonly dependencies?: readonly string[]
  /** The cache of packages, its index, and what scripts may name themselves. */
  readonly environments?: EnvironmentOptions
  /** A directory filled by `pip install --target`, or a virtual environment's site-packages: importable, read-only. */
  readonly packages?: string
  /** A directory of Python files whose functions become globals of every script. */
  readonly toolsDir?: string
  /** Modules imported once per sandbox, before any script. */
  readonly preload?: readonly string[]
  /** Items that must be in force; a missing one is an error before any script runs. */
  readonly require?: readonly Requirement[]
  /** Cancels the start of the first sandbox; later it has no effect. */
  readonly signal?: AbortSignal
}

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
   * Checks the script before anything of it runs; one with mistakes is `rejected` and costs no sandbox of the pool.
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

/** Options of `Sandglass.workspace`. */
export interface WorkspaceOptions {
  /** Files that are there from the start, by path. */
  readonly files?: FilesInput
  /** Packages that its scripts and programs can import, in place of those of `createSandglass`. */
  readonly dependencies?: readonly string[]
  /** Packages that a model named, added to the others, as in the options of a run. */
  readonly untrustedDependencies?: readonly string[]
  /** Limits of everything in it together, in place of those of `createSandglass`. */
  readonly limits?: ResourceLimits
  /**
   * The place of its files. `memory`, the default: what is written counts as memory. `directory`, on a disk of the host, is refused with
   * `limit_not_enforceable`, because no engine can bound the size of a directory (docs/limitations/workspaces.md).
   */
  readonly disk?: 'memory' | 'directory'
  /**
   * Closes it when nobody has used it for this many seconds, from 0.1 to 604,800 (a week); default: never. Used is what is called and has
   * not settled, and each byte that a started program or a connection sends or takes; that a silent program runs is no use.
   */
  readonly idleTimeoutSec?: number
  /** The name of the workspace in its spans (`exec_id`). It need not be unique. Default: its id. */
  readonly executionId?: string
  /**
   * Keeps its files in `store` under this id, of 1 to 128 letters, digits, `.`, `_` and `-`. What the store has is there when it opens, before
   * `files`. It is synchronised when a script, a program or an operation on files ends, every 30 s while one runs, and when it is closed. One
   * owner at a time has it.
   */
  readonly persist?: string
  /** The store of `persist`. */
  readonly store?: Store
  /** With `persist`: how many seconds to wait for an owner to let go, from 0 to 604,800. Default 0. */
  readonly waitSec?: number
  /** With `persist`: called for a synchronisation that failed and that no call waits for. The next one tries again. */
  readonly onSyncError?: (error: unknown) => void
  /** Closes it, also while it is being made. */
  readonly signal?: AbortSignal
}

/** Options of a script in a workspace: those of a run, without what chooses a sandbox. */
export interface WorkspaceRunOptions<T = unknown> extends Omit<
  RunOptions<T>,
  'workspace' | 'dependencies' | 'untrustedDependencies' | 'leaseKey' | 'sandboxId' | 'checkoutTimeoutMs' | 'files'
> {
  /** Files that are put before it, of any number and size. */
  readonly files?: FilesInput
}

/** A sandbox of one owner that lasts until it is closed. Made by `Sandglass.workspace`; leaving its scope closes it. */
export interface Workspace extends WorkspaceActivities {
  /**
   * Runs one script. Its files stay; everything else of it ends. Whatever the script does is a value.
   * @throws SandglassError as `Sandglass.run` does, and `secrets_not_separate`, `workspace_closed`, `workspace_lost`.
   */
  run<T = unknown>(script: string, options?: WorkspaceRunOptions<T>): Promise<ExecutionResult<T>>
  /** The same as events while the script runs; the last one is the result. Leaving the loop cancels the run. */
  stream<T = unknown>(script: string, options?: WorkspaceRunOptions<T>): AsyncIterable<RunEvent<T>>
}

/** Options of `Sandglass.check`. */
export interface CheckOptions {
  /** Default `standard`. */
  readonly policy?: Exclude<Policy, 'off'>
  /** Default `interactive`. With `plan` a script that gives no result has a mistake. */
  readonly mode?: ExecutionMode
  /** Functions that the script will have. */
  readonly tools?: ToolsInput
  /** Inputs that the script will have; only their names count. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** Files that the script will have; only their paths count. */
  readonly files?: Readonly<Record<string, unknown>>
  /** Globs of the files that will be collected. */
  readonly collect?: readonly string[]
  /** Packages of the run that the check is for. */
  readonly dependencies?: readonly string[]
  /** Modules that the policy `strict` admits in addition to its own. */
  readonly allowModules?: readonly string[]
  /** Cancels the check. */
  readonly signal?: AbortSignal
}

/** Options of `Sandglass.asTool`: the description of the tool, and the options of its runs. */
export interface AsToolOptions
  extends RunPythonOptions, Omit<RunOptions, 'executionId' | 'signal' | 'sandboxId' | 'files' | 'stdin'> {
  /** The standard input of each script, at most 16 MiB; no stream, which could be read once. Default: empty. */
  readonly stdin?: Uint8Array | string
  /**
   * Files that every script finds, by path; no streams. In a `workspace`, they are put there before the first script, and
   * stay as scripts leave them.
   */
  readonly files?: FilesInput
}

/** Options of `Sandglass.solve`. */
export interface SolveOptions<T = unknown> extends Omit<TaskOptions<T>, 'files'> {
  /**
   * Files that every script finds, by path; the prompt lists them; no streams. In a `workspace`, they are put there before
   * the first script, and stay as scripts leave them.
   */
  readonly files?: FilesInput | undefined
  /** Runs all scripts in this workspace, where their files stay. */
  readonly workspace?: Workspace | undefined
  /** In a workspace: gives the secrets also where other activities could read them (its `trust` is `shared`). Default false. */
  readonly shareSecrets?: boolean | undefined
  /** Writes the scripts: any async function, a language model of the AI SDK, a chat model of LangChain. */
  readonly model: ModelInput
  /** The functions that scripts can call. */
  readonly tools?: ToolsInput | undefined
  /** Packages that scripts can import, in place of those of `createSandglass`. */
  readonly dependencies?: readonly string[] | undefined
  /** Default `plan`: one script for the whole task. `interactive`: step by step. */
  readonly mode?: ExecutionMode | undefined
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
 * Checks the options of `createSandglass` that no lower room checks.
 * @throws TypeError for an option that does not exist; SandglassError `invalid_request`, naming the option.
 */
export function checkOptions(options: SandglassOptions, engines: EngineTable = ENGINES): void {
  refuseUnknown('createSandglass', options, [...SANDGLASS_OPTIONS, ...Object.keys(engines)])
  for (const item of options.require ?? []) {
    if (!REQUIREMENTS.includes(item)) throw notKnown('require', 'item', item, REQUIREMENTS)
  }
  for (const name of options.preload ?? []) {
    if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(name)) {
      throw new SandglassError('invalid_request', `preload: ${JSON.stringify(name)} is not a module name`)
    }
  }
}

/**
 * The same for `run` and `stream`.
 * @throws TypeError for an option that does not exist; SandglassError `invalid_request`, naming the option.
 */
export function checkRunOptions<T>(options: RunOptions<T>): void {
  refuseUnknown('run', options, RUN_OPTIONS)
  const { policy = 'off' } = options
  if (!POLICIES.includes(policy)) throw notKnown('policy', 'policy', policy, POLICIES)
  if (options.workspace === undefined) return
  for (const name of POOL_OPTIONS) {
    if (options[name] === undefined) continue
    throw packagesOfWorkspace(name)
  }
}

function packagesOfWorkspace(name: string): SandglassError {
  return new SandglassError(
    'invalid_request',
    `${name}: a run in a workspace uses the sandbox and the packages of the workspace`,
  )
}

/**
 * The same for `workspace`.
 * @throws TypeError for an option that does not exist, SandglassError `invalid_request` for a time that cannot be and an
 * id that is no text, `limit_not_enforceable` for a disk without a bound.
 */
export function checkWorkspaceOptions(options: WorkspaceOptions): void {
  refuseUnknown('workspace', options, WORKSPACE_OPTIONS)
  checkDisk(options.disk)
  checkPersistence(options)
  const { idleTimeoutSec: sec, executionId } = options
  if (executionId !== undefined && typeof executionId !== 'string')
    throw new SandglassError('invalid_request', `executionId: ${formatValue(executionId)} is not a string`)
  if (sec === undefined || (typeof sec === 'number' && sec >= MIN_IDLE_SEC && sec <= MAX_IDLE_SEC)) return
  throw new SandglassError(
    'invalid_request',
    `idleTimeoutSec: ${formatValue(sec)} is not a number of seconds from ${MIN_IDLE_SEC} to ${MAX_IDLE_SEC}`,
  )
}

function checkDisk(disk: unknown): void {
  if (disk === undefined || disk === 'memory') return
  if (disk !== 'directory') throw notKnown('disk', 'place', disk, ['memory', 'directory'])
  throw new SandglassError(
    'limit_not_enforceable',
    "disk: 'directory': no engine can bound the size of a directory: that takes quotas of projects or images that only root mounts. Leave it " +
      'out: files are in memory, up to limits.diskBytes; addInput() of the engine local shows a large file without a copy in memory',
  )
}

function checkPersistence({ persist, store, waitSec, onSyncError }: WorkspaceOptions): void {
  const refuse = (problem: string): never => {
    throw new SandglassError('invalid_request', problem)
  }
  if (persist === undefined) {
    const given = Object.entries({ store, waitSec, onSyncError }).find(([, value]) => value !== undefined)
    if (given !== undefined) refuse(`${given[0]}: it needs persist, the id of the workspace`)
    return
  }
  checkWorkspaceId(persist)
  if (typeof store?.write !== 'function' || typeof store.put !== 'function')
    refuse('persist: it needs a store, such as storeInDirectory(path) of sandglass/artifacts')
  if (waitSec !== undefined && !(typeof waitSec === 'number' && waitSec >= 0 && waitSec <= MAX_IDLE_SEC))
    refuse(`waitSec: ${formatValue(waitSec)} is not a number of seconds from 0 to ${MAX_IDLE_SEC}`)
  if (onSyncError !== undefined && typeof onSyncError !== 'function')
    refuse(`onSyncError: ${formatValue(onSyncError)} is not a function`)
}

/**
 * The same for `check`.
 * @throws TypeError for an option that does not exist.
 */
export function checkCheckOptions(options: CheckOptions): void {
  refuseUnknown('check', options, CHECK_OPTIONS)
}

/**
 * The same for `asTool`.
 * @throws TypeError for an option that does not exist, SandglassError `invalid_request` for a stream as `stdin`.
 */
export function checkAsToolOptions(options: AsToolOptions): void {
  refuseUnknown('asTool', options, AS_TOOL_OPTIONS)
  if (!isStdinStream(options.stdin)) return
  throw new SandglassError(
    'invalid_request',
    'stdin: a stream can be read once, but each script gets it; give bytes or text',
  )
}

/**
 * The same for `solve`.
 * @throws TypeError for an option that does not exist, or without a model.
 */
export function checkSolveOptions<T>(options: SolveOptions<T>): void {
  if (typeof options !== 'object' || options === null)
    throw new TypeError('solve: it needs options, at least { model }')
  const own = ['model', 'tools', 'mode', 'dependencies', 'workspace', 'shareSecrets']
  refuseUnknown('solve', options, [...TASK_NAMES, ...own])
  if (options.workspace !== undefined && options.dependencies !== undefined) throw packagesOfWorkspace('dependencies')
  const { mode } = options
  if (mode !== undefined && !MODES.includes(mode)) throw notKnown('mode', 'mode', mode, MODES)
}

const MODES: readonly string[] = Object.values(ExecutionMode)

/** The options of `createSandglass` without those of the engines. */
const SANDGLASS_OPTIONS: readonly Exclude<keyof SandglassOptions, EngineName>[] = [
  'engine',
  'limits',
  'poolSize',
  'maxOverflow',
  'maxUses',
  'maxIdleBytes',
  'checkoutTimeoutMs',
  'dependencies',
  'environments',
  'packages',
  'toolsDir',
  'preload',
  'require',
  'signal',
]
const CHECK_OPTIONS: readonly (keyof CheckOptions)[] = [
  'policy',
  'mode',
  'tools',
  'inputs',
  'files',
  'collect',
  'dependencies',
  'allowModules',
  'signal',
]
const RUN_OPTIONS: readonly (keyof RunOptions)[] = [
  ...REQUEST_OPTIONS,
  'stdin',
  'tools',
  'toolLimits',
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
const WORKSPACE_OPTIONS: readonly (keyof WorkspaceOptions)[] = [
  'files',
  'dependencies',
  'untrustedDependencies',
  'limits',
  'disk',
  'idleTimeoutSec',
  'executionId',
  'persist',
  'store',
  'waitSec',
  'onSyncError',
  'signal',
]
const MIN_IDLE_SEC = 0.1
const MAX_IDLE_SEC = 7 * 86_400
const AS_TOOL_OPTIONS: readonly (keyof AsToolOptions)[] = [
  ...RUN_OPTIONS.filter((name) => name !== 'executionId' && name !== 'signal' && name !== 'sandboxId'),
  'name',
  'instructions',
  'maxStubChars',
  'maxAnswerChars',
  'maxAnswerFileBytes',
  'onFiles',
] as (keyof AsToolOptions)[]
const POLICIES: readonly string[] = ['off', 'standard', 'strict'] satisfies Policy[]

function notKnown(option: string, what: string, given: unknown, known: readonly string[]): SandglassError {
  return new SandglassError(
    'invalid_request',
    `${option}: no ${what} ${JSON.stringify(given)}.${didYouMean(String(given), known)} Known: ${known.join(', ')}`,
  )
}
