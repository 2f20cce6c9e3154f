import { resolve } from 'node:path'
import { type Checkers, checkersOf } from './checkers.ts'
import { dockerEngine, type DockerEngineOptions } from './engines/docker/index.ts'
import { localEngine, type LocalEngineOptions } from './engines/local/index.ts'
import { SandglassError } from './errors/index.ts'
import {
  type CheckedScript,
  ExecutionMode,
  type ExecutionResult,
  type Policy,
  type RunEvent,
  type RunRequest,
  ScriptExecutor,
  type ScriptExecutorOptions,
  type Violation,
} from './executor/index.ts'
import { type Lease, type PoolStats, SandboxPool } from './pool/index.ts'
import {
  assertEnforced,
  assertRequirements,
  ping,
  REQUIREMENTS,
  type Requirement,
  type ResourceLimits,
  resolveLimits,
  sandboxLimits,
  type SandboxEngine,
  type SandboxReport,
  type SandboxSpec,
} from './sandbox/index.ts'
import { didYouMean } from './support/index.ts'
import {
  bridgedTools,
  prepareTools,
  type RunPythonOptions,
  type RunPythonTool,
  runPythonTool,
  type ToolLimits,
  type ToolsInput,
} from './tools/index.ts'

/** How scripts are run. Everything has a default. */
export interface SandglassOptions {
  /** Default `auto`, which takes `local` in this version; `docker` runs scripts in containers. */
  readonly engine?: 'auto' | 'local' | 'docker' | SandboxEngine
  /**
   * Defaults for every run; a run may bring its own. A limit of the sandbox that is given here or there and that the
   * machine cannot enforce is refused; of those that are not given, each result tells which are in force.
   */
  readonly limits?: ResourceLimits
  /** Warm sandboxes kept per set of limits. Default 2. */
  readonly poolSize?: number
  /** Sandboxes made on demand above that. Default 2. */
  readonly maxOverflow?: number
  /** Scripts after which a sandbox is replaced. Default 50; 1 gives every script a sandbox of its own. */
  readonly maxUses?: number
  /** How long a run waits for a sandbox, in milliseconds. Default 30,000. */
  readonly checkoutTimeoutMs?: number
  /** A directory filled by `pip install --target`, or a virtual environment's site-packages: importable, read-only. */
  readonly packages?: string
  /** A directory of Python files whose functions become globals of every script. */
  readonly toolsDir?: string
  /** Modules imported once per sandbox, before any script. */
  readonly preload?: readonly string[]
  /** What must be in force; a missing item is an error before anything runs. */
  readonly require?: readonly Requirement[]
  /** Options of the local engine. */
  readonly local?: LocalEngineOptions
  /** Options of the Docker engine. */
  readonly docker?: DockerEngineOptions
  /** Gives up while the first sandbox starts; later it has no effect. */
  readonly signal?: AbortSignal
}

/** A run's own options, beside its script. */
export interface RunOptions<T = unknown> extends Omit<RunRequest, 'script' | 'tools'> {
  /**
   * Functions of the host that the script may call: of `defineTool`, tools of the AI SDK, of LangChain or of an MCP
   * server, or a registry.
   */
  readonly tools?: ToolsInput
  /** How many calls the script may make, and how many at a time. */
  readonly toolLimits?: ToolLimits
  /**
   * Checks the script before anything of it runs; one with mistakes is `rejected` and costs no sandbox of the pool.
   * Default `off`.
   */
  readonly policy?: Policy
  /** Modules that the policy `strict` admits beside its own. */
  readonly allowModules?: readonly string[]
  /** Default `interactive`: ending without a result is fine. `plan` needs a result. */
  readonly mode?: ExecutionMode
  readonly limits?: ResourceLimits
  /** Checks the result; a mismatch makes the run `failed`. Any Standard Schema (zod 4 and others). */
  readonly output?: StandardSchema<T>
  /** Who may get the same sandbox again. Default: this Sandglass. */
  readonly leaseKey?: string
  /** Ask for this very sandbox while it lives; another one of the same lease key serves otherwise. */
  readonly sandboxId?: string
  /** How long this run waits for a sandbox, in milliseconds, in place of the option of `createSandglass`. */
  readonly checkoutTimeoutMs?: number
  readonly onIntermediate?: ScriptExecutorOptions['onIntermediate']
  readonly onLog?: ScriptExecutorOptions['onLog']
  readonly onEvent?: ScriptExecutorOptions['onEvent']
}

/** What {@link Sandglass.check} may be told. */
export interface CheckOptions {
  /** Default `standard`. */
  readonly policy?: Exclude<Policy, 'off'>
  readonly mode?: ExecutionMode
  readonly tools?: ToolsInput
  /** Inputs that the script will have; only their names count. */
  readonly inputs?: Readonly<Record<string, unknown>>
  readonly allowModules?: readonly string[]
  readonly signal?: AbortSignal
}

/** What is wrong with a script; nothing of it was executed. */
export interface CheckResult {
  readonly ok: boolean
  readonly violations: readonly Violation[]
}

/** What {@link Sandglass.asTool} may be told: how the tool is described, and how its scripts are run. */
export interface AsToolOptions extends RunPythonOptions, Omit<RunOptions, 'executionId' | 'signal' | 'sandboxId'> {}

/** The part of the Standard Schema specification (standardschema.dev, version 1) that is used here. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
  }
}

type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

/** Runs Python that a language model wrote. Made by {@link createSandglass}. */
export interface Sandglass extends AsyncDisposable {
  /** The engine in use. */
  readonly engine: string
  /**
   * Runs one script. What the script did is a value, whatever it was.
   * @throws SandglassError when the machinery fails or the request is wrong.
   */
  run<T = unknown>(script: string, options?: RunOptions<T>): Promise<ExecutionResult<T>>
  /** The same as events while the script runs; the last one is the result. Leaving the loop cancels the run. */
  stream<T = unknown>(script: string, options?: RunOptions<T>): AsyncIterable<RunEvent<T>>
  /**
   * Looks for mistakes in a script without executing any of it.
   * @throws SandglassError when the machinery fails or the request is wrong.
   */
  check(script: string, options?: CheckOptions): Promise<CheckResult>
  /**
   * One tool that lets an agent run Python with these tools as functions, for the AI SDK or, under `mcp`, for an MCP
   * server. Scripts are checked (policy `standard`) unless another policy is asked for.
   * @throws TypeError for an option that does not exist, and for tools that no function can stand for.
   */
  asTool(options?: AsToolOptions): RunPythonTool
  /** What is in force on this machine, from probes. */
  report(): Promise<SandboxReport>
  /** Hits, misses, waits and refills of the pool, over all limits. */
  stats(): PoolStats
  /** Ends everything: running scripts are given `graceMs`, then nothing is left. Idempotent. */
  close(options?: { graceMs?: number }): Promise<void>
}

const PING_TIMEOUT_MS = 2000

/**
 * Finds an engine and starts its first sandbox.
 * @throws SandglassError `engine_unavailable` or the engine's own code when there is none, `requirement_unmet`,
 * `limit_not_enforceable`, `invalid_request`, `limits_do_not_fit`, `aborted`; TypeError for an option that does not
 * exist.
 */
export async function createSandglass(options: SandglassOptions = {}): Promise<Sandglass> {
  checkOptions(options)
  const engine = chooseEngine(options)
  const ownsEngine = typeof options.engine !== 'object'
  const defaults = specOf(options, undefined)
  const pool = new SandboxPool({
    engine,
    specs: { [nameOf(defaults)]: defaults },
    ...definedOf(options, ['poolSize', 'maxOverflow', 'maxUses', 'checkoutTimeoutMs']),
    isHealthy: (sandbox) => ping(sandbox.channel, PING_TIMEOUT_MS),
  })
  const checkers = checkersOf(engine, defaults)
  const close = async (given?: { graceMs?: number }): Promise<void> => {
    await Promise.all([pool.close(given), checkers.close()])
    if (ownsEngine) await engine.close()
  }
  try {
    if (options.require !== undefined && options.require.length > 0) {
      assertRequirements(await engine.report(), options.require)
    }
    // A missing engine is told now, not at the first run; the sandbox stays in the pool.
    const first = await pool.checkout(nameOf(defaults), definedOf(options, ['signal']))
    await first.release()
    assertEnforced(first.sandbox.info, options.limits ?? {})
  } catch (error) {
    await close()
    throw error
  }

  const known = new Set([nameOf(defaults)])
  const checkout = async (spec: SandboxSpec, run: RunOptions): Promise<Lease> => {
    const name = nameOf(spec)
    if (!known.has(name)) pool.addSpec(name, spec, { occasional: true })
    known.add(name)
    const lease = await pool.checkout(name, { ...renamed(run), ...definedOf(run, ['sandboxId', 'signal']) })
    try {
      assertEnforced(lease.sandbox.info, { ...options.limits, ...run.limits })
      return lease
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  async function* stream<T>(script: string, run: RunOptions<T> = {}): AsyncGenerator<RunEvent<T>, void, void> {
    const { executor, request, spec } = prepare(options, script, run)
    const rejection = await rejectionOf(checkers, script, run)
    if (rejection !== undefined) {
      yield { type: 'result', executionId: rejection.executionId, result: rejection as ExecutionResult<T> }
      return
    }
    const lease = await checkout(spec, run)
    try {
      for await (const event of executor.stream({ ...request, sandbox: lease.sandbox })) {
        if (event.type !== 'result') yield event
        else yield { ...event, result: await typed(event.result, run.output) }
      }
    } finally {
      await lease.release()
    }
  }

  async function runOne<T>(script: string, run: RunOptions<T> = {}): Promise<ExecutionResult<T>> {
    const { executor, request, spec } = prepare(options, script, run)
    const rejection = await rejectionOf(checkers, script, run)
    if (rejection !== undefined) return rejection as ExecutionResult<T>
    const lease = await checkout(spec, run)
    try {
      return await typed(await executor.run({ ...request, sandbox: lease.sandbox }), run.output)
    } finally {
      void lease.release() // the executor ended a sandbox that must not serve again
    }
  }

  return {
    engine: engine.name,
    run: runOne,
    stream,
    async check(script: string, given: CheckOptions = {}) {
      refuseUnknown('check', given, CHECK_OPTIONS)
      const { violations, run: check } = await checked(checkers, script, given.policy ?? 'standard', given)
      if (violations === undefined) {
        const isAborted = check.status === 'cancelled'
        throw new SandglassError(
          isAborted ? 'aborted' : 'sandbox_setup_failed',
          `the check ended early: ${check.error}`,
        )
      }
      return { ok: violations.length === 0, violations }
    },
    asTool(given: AsToolOptions = {}) {
      refuseUnknown('asTool', given, AS_TOOL_OPTIONS)
      const { name, instructions, maxStubChars, maxAnswerChars, ...run } = given
      const set = run.tools === undefined ? undefined : prepareTools(run.tools)
      return runPythonTool(
        set,
        (script, signal) =>
          runOne(script, {
            ...run,
            policy: run.policy ?? 'standard',
            ...(set === undefined ? {} : { tools: set }),
            ...(signal === undefined ? {} : { signal }),
          }),
        { name, instructions, maxStubChars, maxAnswerChars },
      )
    },
    report: () => engine.report(),
    stats: () => pool.stats(),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function chooseEngine(options: SandglassOptions): SandboxEngine {
  const { engine = 'auto', local = {}, docker = {} } = options
  if (typeof engine === 'object') return engine
  if (engine === 'auto' || engine === 'local') return localEngine(local)
  if (engine === 'docker') return dockerEngine(docker)
  if (engine === 'pyodide') {
    throw new SandglassError('feature_unavailable', 'the engine pyodide is not in this version; use local or docker')
  }
  throw new SandglassError('engine_unknown', `no engine ${JSON.stringify(engine)}; known are auto, local and docker`)
}

const OPTIONS: readonly (keyof SandglassOptions)[] = [
  'engine',
  'limits',
  'poolSize',
  'maxOverflow',
  'maxUses',
  'checkoutTimeoutMs',
  'packages',
  'toolsDir',
  'preload',
  'require',
  'local',
  'docker',
  'signal',
]
/** What goes on to the executor as it is. */
const REQUEST_OPTIONS = ['executionId', 'requiredSecrets', 'secrets', 'inputs', 'files', 'collect', 'signal'] as const
const CHECK_OPTIONS: readonly (keyof CheckOptions)[] = ['policy', 'mode', 'tools', 'inputs', 'allowModules', 'signal']
const POLICIES: readonly string[] = ['off', 'standard', 'strict'] satisfies Policy[]
const RUN_OPTIONS: readonly (keyof RunOptions)[] = [
  ...REQUEST_OPTIONS,
  'tools',
  'toolLimits',
  'policy',
  'allowModules',
  'mode',
  'limits',
  'output',
  'leaseKey',
  'sandboxId',
  'checkoutTimeoutMs',
  'onIntermediate',
  'onLog',
  'onEvent',
]

const AS_TOOL_OPTIONS: readonly (keyof AsToolOptions)[] = [
  ...RUN_OPTIONS.filter((name) => name !== 'executionId' && name !== 'signal' && name !== 'sandboxId'),
  'name',
  'instructions',
  'maxStubChars',
  'maxAnswerChars',
] as (keyof AsToolOptions)[]

function checkOptions(options: SandglassOptions): void {
  refuseUnknown('createSandglass', options, OPTIONS)
  for (const item of options.require ?? []) {
    if (!REQUIREMENTS.includes(item)) {
      throw new SandglassError(
        'invalid_request',
        `require: no item ${JSON.stringify(item)}.${didYouMean(String(item), REQUIREMENTS)} Known are ${REQUIREMENTS.join(', ')}`,
      )
    }
  }
  for (const name of options.preload ?? []) {
    if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(name)) {
      throw new SandglassError('invalid_request', `preload: ${JSON.stringify(name)} is no module name`)
    }
  }
}

function refuseUnknown(where: string, given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name))
      throw new TypeError(`${where}: no option ${JSON.stringify(name)}.${didYouMean(name, known)}`)
  }
}

function prepare<T>(
  options: SandglassOptions,
  script: string,
  run: RunOptions<T>,
): { executor: ScriptExecutor; request: RunRequest; spec: SandboxSpec } {
  refuseUnknown('run', run, RUN_OPTIONS)
  const { mode, limits, tools, toolLimits, policy = 'off' } = run
  if (!POLICIES.includes(policy)) {
    throw new SandglassError(
      'invalid_request',
      `policy: no policy ${JSON.stringify(policy)}.${didYouMean(String(policy), POLICIES)} Known are ${POLICIES.join(', ')}`,
    )
  }
  const merged = resolveLimits({ ...options.limits, ...limits })
  const executor = new ScriptExecutor({
    limits: { executionTimeoutSec: merged.executionTimeoutSec, maxOutputBytes: merged.maxOutputBytes },
    mode: mode ?? ExecutionMode.INTERACTIVE,
    ...definedOf(run, ['onIntermediate', 'onLog', 'onEvent']),
  })
  const request = {
    ...definedOf(run, REQUEST_OPTIONS),
    ...(tools === undefined ? {} : { tools: bridgedTools(prepareTools(tools), toolLimits) }),
    script,
  }
  return { executor, request, spec: specOf(options, limits) }
}

/** The result of a run whose script has mistakes, or undefined when it may run. */
async function rejectionOf(checkers: Checkers, script: string, run: RunOptions): Promise<ExecutionResult | undefined> {
  const { policy = 'off' } = run
  if (policy === 'off') return undefined
  const { violations, run: check } = await checked(checkers, script, policy, run)
  if (violations === undefined) return check
  const [first] = violations
  if (first === undefined) return undefined
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  return {
    ...check,
    status: 'rejected',
    success: false,
    errorKind: 'validation',
    hasResult: false,
    finalData: null,
    error: `the script was rejected before it ran: line ${first.line}: ${first.message}${more}`,
    traceback: null,
    warnings: [],
    outputBytes: 0,
    ending: { cause: 'not-started', exitCode: null, signal: null, by: 'host' },
    violations,
  }
}

function checked(
  checkers: Checkers,
  script: string,
  policy: Exclude<Policy, 'off'>,
  run: Omit<CheckOptions, 'policy'> & Pick<RunOptions, 'executionId' | 'checkoutTimeoutMs' | 'files'>,
): Promise<CheckedScript> {
  const { inputs = {}, tools, allowModules = [], files = {} } = run
  const set = tools === undefined ? undefined : prepareTools(tools)
  return checkers.check(
    {
      script,
      policy,
      names: Object.keys(inputs),
      tools: set === undefined ? [] : [...set.tools.values()].map((tool) => tool.checked),
      // Modules among its own files are there for the script, and not for the checker to look at.
      allowModules: [...allowModules, ...(policy === 'standard' ? modulesAmong(Object.keys(files)) : [])],
      ...definedOf(run, ['mode', 'executionId', 'signal']),
    },
    run.checkoutTimeoutMs,
  )
}

/** Top-level modules and packages that paths below the workspace make. */
function modulesAmong(paths: readonly string[]): string[] {
  return paths.flatMap((path) => /^([^/]+)(?:\/|\.py$)/.exec(path)?.[1] ?? [])
}

function specOf(options: SandglassOptions, limits: ResourceLimits | undefined): SandboxSpec {
  return {
    limits: sandboxLimits(resolveLimits({ ...options.limits, ...limits })),
    ...(options.packages === undefined ? {} : { packages: resolve(options.packages) }),
    ...(options.toolsDir === undefined ? {} : { toolsDir: resolve(options.toolsDir) }),
    ...(options.preload === undefined ? {} : { preload: options.preload }),
  }
}

/** Equal limits share a pool; everything else in a spec is the same for one Sandglass. */
function nameOf(spec: SandboxSpec): string {
  const { memoryBytes, cpus, pids, diskBytes } = spec.limits
  return `memory=${memoryBytes} cpus=${cpus} pids=${pids} disk=${diskBytes}`
}

function renamed({ leaseKey, checkoutTimeoutMs }: RunOptions): { key?: string; timeoutMs?: number } {
  return {
    ...(leaseKey === undefined ? {} : { key: leaseKey }),
    ...(checkoutTimeoutMs === undefined ? {} : { timeoutMs: checkoutTimeoutMs }),
  }
}

/** The named properties that are not undefined. */
function definedOf<T extends object, K extends keyof T>(
  given: T,
  names: readonly K[],
): { [P in K]?: Exclude<T[P], undefined> } {
  const entries = names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]])
  return Object.fromEntries(entries) as { [P in K]?: Exclude<T[P], undefined> }
}

async function typed<T>(result: ExecutionResult, schema: StandardSchema<T> | undefined): Promise<ExecutionResult<T>> {
  if (schema === undefined || !result.hasResult || !result.success) return result as ExecutionResult<T>
  const checked = await schema['~standard'].validate(result.finalData)
  if (checked.issues === undefined) return { ...result, finalData: checked.value }
  const issues = checked.issues.map(
    ({ path = [], message }) => `${['result', ...path.map(segmentName)].join('.')}: ${message}`,
  )
  return {
    ...result,
    status: 'failed',
    success: false,
    errorKind: 'error',
    finalData: null,
    error: `the result does not match \`output\`: ${issues.join('; ')}`,
  }
}

function segmentName(segment: unknown): string {
  return typeof segment === 'object' && segment !== null && 'key' in segment ? String(segment.key) : String(segment)
}
