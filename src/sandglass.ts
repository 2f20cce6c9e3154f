import { resolve } from 'node:path'
import { checked, checkersOf, rejectionOf } from './checkers.ts'
import { dockerEngine, type DockerEngineOptions } from './engines/docker/index.ts'
import { localEngine, type LocalEngineOptions } from './engines/local/index.ts'
import { pyodideEngine, type PyodideEngineOptions } from './engines/pyodide/index.ts'
import { firstThatOpens, type PassedOver, warnOfLanguageOnly } from './engine-choice.ts'
import { SandglassError } from './errors/index.ts'
import {
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
import { definedOf, didYouMean } from './support/index.ts'
import {
  bridgedTools,
  prepareTools,
  type RunPythonOptions,
  type RunPythonTool,
  runPythonTool,
  type ToolLimits,
  type ToolsInput,
} from './tools/index.ts'
import { type StandardSchema, typed } from './typed-result.ts'

/** How scripts are run. Everything has a default. */
export interface SandglassOptions {
  /**
   * Default `auto`: the first of `local` (Linux, bubblewrap), `docker` (containers) and `pyodide` (anywhere, held by the
   * language alone) that can be started here and has what is required.
   */
  readonly engine?: 'auto' | 'local' | 'docker' | 'pyodide' | SandboxEngine
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
  /** Options of the Pyodide engine. */
  readonly pyodide?: PyodideEngineOptions
  /** Gives up while the first sandbox starts; later it has no effect. */
  readonly signal?: AbortSignal
}

/** A run's own options, beside its script. */
export interface RunOptions<T = unknown> extends Omit<RunRequest, 'script' | 'tools'> {
  /**
   * Functions that the script may call: of the host (`defineTool`, tools of the AI SDK, of LangChain or of an MCP
   * server), Python tools (`definePythonTool`), or a registry.
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

/** Runs Python that a language model wrote. Made by {@link createSandglass}. */
export interface Sandglass extends AsyncDisposable {
  /** The engine in use. */
  readonly engine: string
  /** Those that `auto` tried before it, and why they were not taken. */
  readonly passedOver: readonly PassedOver[]
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
  return firstThatOpens(enginesFor(options), (engine, passedOver) => openOn(engine, passedOver, options))
}

async function openOn(
  engine: SandboxEngine,
  passedOver: readonly PassedOver[],
  options: SandglassOptions,
): Promise<Sandglass> {
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
    if (first.sandbox.info.level === 'language-only') warnOfLanguageOnly(engine.name, passedOver)
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
    passedOver,
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

/** Makers of the engines to try, in order. */
function enginesFor({ engine = 'auto', ...options }: SandglassOptions): (() => SandboxEngine)[] {
  if (typeof engine === 'object') return [() => engine]
  const makers = {
    local: () => localEngine(options.local),
    docker: () => dockerEngine(options.docker),
    pyodide: () => pyodideEngine(options.pyodide),
  }
  if (engine === 'auto') return Object.values(makers)
  if (Object.hasOwn(makers, engine)) return [makers[engine]]
  const known = ['auto', ...Object.keys(makers)]
  throw new SandglassError('engine_unknown', `no engine ${JSON.stringify(engine)}; known are ${known.join(', ')}`)
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
  'pyodide',
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
