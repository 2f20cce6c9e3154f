import { resolve } from 'node:path'
import { checkAnswer, type Checkers, checkersOf, checkResultOf, type CheckResult, rejectionOf } from './checkers.ts'
import { enginesFor, firstThatOpens, type PassedOver, warnOfLanguageOnly } from './engine-choice.ts'
import {
  ExecutionMode,
  type ExecutionResult,
  type RunEvent,
  type RunRequest,
  type SandboxRunRequest,
  ScriptExecutor,
} from './executor/index.ts'
import {
  type AsToolOptions,
  checkAsToolOptions,
  checkCheckOptions,
  checkOptions,
  type CheckOptions,
  checkRunOptions,
  checkSolveOptions,
  REQUEST_OPTIONS,
  type RunOptions,
  type SandglassOptions,
  type SolveOptions,
} from './options.ts'
import { callerOf } from './llm/index.ts'
import {
  type Job,
  makeJob,
  type ScriptHost,
  solve,
  type SolveEvent,
  streamSolve,
  type ToolExecutionResult,
} from './orchestrator/index.ts'
import { type CheckoutOptions, type Lease, type PoolStats, SandboxPool } from './pool/index.ts'
import {
  assertEnforced,
  assertPackagesFit,
  assertRequirements,
  type InstalledPackage,
  installedPackages,
  ping,
  type ResourceLimits,
  resolveLimits,
  type Sandbox,
  sandboxLimits,
  type SandboxEngine,
  type SandboxReport,
  type SandboxSpec,
} from './sandbox/index.ts'
import { definedOf } from './support/index.ts'
import { bridgedTools, prepareTools, type RunPythonTool, runPythonTool } from './tools/index.ts'
import { applySchema } from './typed-result.ts'

/** Runs Python that a language model wrote. Made by {@link createSandglass}. */
export interface Sandglass extends AsyncDisposable {
  /** The engine in use. */
  readonly engine: string
  /** The engines that `auto` tried before it, and why it did not take them. */
  readonly passedOver: readonly PassedOver[]
  /**
   * Runs one script. Whatever the script does is a value.
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
  /**
   * Lets a model solve a task by writing Python against tools. Whatever happens is a value.
   * @throws TypeError for an option that is wrong.
   */
  solve<T = unknown>(task: string, options: SolveOptions<T>): Promise<ToolExecutionResult<T>>
  /** The same as events while it goes on; the last one is the result. Leaving the loop cancels it. */
  solveStream<T = unknown>(task: string, options: SolveOptions<T>): AsyncIterable<SolveEvent<T>>
  /** The protection in force on this machine, from probes. */
  report(): Promise<SandboxReport>
  /** Hits, misses, waits and refills of the pool, over all limits. */
  stats(): PoolStats
  /** Ends everything: running scripts are given `graceMs`, then nothing is left. Idempotent. */
  close(options?: { graceMs?: number }): Promise<void>
}

/** The name of the one kind of sandbox that a Sandglass has, in records. */
const DEFAULT_SANDBOX = 'default'
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
  const runner = new ScriptRunner(engine, options)
  const close = async (given?: { graceMs?: number }): Promise<void> => {
    await runner.pool.close(given)
    if (ownsEngine) await engine.close()
  }
  try {
    const first = await runner.startFirst()
    if (first.info.level === 'language-only') warnOfLanguageOnly(engine.name, passedOver)
  } catch (error) {
    await close()
    throw error
  }
  return {
    engine: engine.name,
    passedOver,
    run: (script, run) => runner.run(script, run),
    stream: (script, run) => runner.stream(script, run),
    check: (script, given) => runner.check(script, given),
    asTool: (given) => toolOf(runner, given),
    solve: async (task, given) => solve(jobOf(runner, task, given)),
    solveStream: (task, given) => streamSolve(jobOf(runner, task, given)),
    report: async () => withPackages(await engine.report(), runner.packages),
    stats: () => runner.pool.stats(),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A script on its way: what runs it, and the lease that must be given back. */
interface StartedRun {
  readonly executor: ScriptExecutor
  readonly request: SandboxRunRequest
  readonly lease: Lease
}

/** Checks scripts and runs them in leased sandboxes. */
class ScriptRunner {
  readonly options: SandglassOptions
  readonly pool: SandboxPool
  readonly checkers: Checkers
  readonly #engine: SandboxEngine
  /** The packages of the option `packages`. */
  packages: readonly InstalledPackage[] = []
  readonly #defaults: string
  readonly #specs: Set<string>

  constructor(engine: SandboxEngine, options: SandglassOptions) {
    const defaults = specOf(options, undefined)
    this.options = options
    this.#engine = engine
    this.#defaults = nameOf(defaults)
    this.#specs = new Set([this.#defaults])
    this.pool = new SandboxPool({
      engine,
      specs: { [this.#defaults]: defaults },
      ...definedOf(options, ['poolSize', 'maxOverflow', 'maxUses', 'checkoutTimeoutMs']),
      isHealthy: (sandbox) => ping(sandbox.channel, PING_TIMEOUT_MS),
    })
    this.checkers = checkersOf(this.pool, this.#defaults)
  }

  /** Starts the first sandbox, which stays in the pool. A missing engine fails here and not at the first run. */
  async startFirst(): Promise<Sandbox> {
    const { require = [], limits = {}, packages } = this.options
    if (require.length > 0) assertRequirements(await this.#engine.report(), require)
    const first = await this.pool.checkout(this.#defaults, definedOf(this.options, ['signal']))
    await first.release()
    assertEnforced(first.sandbox.info, limits)
    if (packages !== undefined) {
      this.packages = await installedPackages(packages)
      assertPackagesFit(resolve(packages), this.packages, first.sandbox.info)
    }
    return first.sandbox
  }

  async run<T>(script: string, run: RunOptions<T> = {}): Promise<ExecutionResult<T>> {
    const started = await this.#start(script, run)
    if ('status' in started) return started
    const { executor, request, lease } = started
    let result: ExecutionResult
    try {
      result = await executor.run(request)
    } finally {
      // Not awaited: the executor has ended a sandbox that must not serve again.
      void lease.release()
    }
    // Without the lease: the check of the result may have to wait for others.
    return applySchema(result, run.output)
  }

  async *stream<T>(script: string, run: RunOptions<T> = {}): AsyncGenerator<RunEvent<T>, void, void> {
    const started = await this.#start(script, run)
    if ('status' in started) {
      yield { type: 'result', executionId: started.executionId, result: started }
      return
    }
    const { executor, request, lease } = started
    let end: Extract<RunEvent, { type: 'result' }> | undefined
    try {
      for await (const event of executor.stream(request)) {
        if (event.type === 'result') end = event
        else yield event
      }
    } finally {
      await lease.release()
    }
    if (end !== undefined) yield { ...end, result: await applySchema(end.result, run.output) }
  }

  async check(script: string, given: CheckOptions = {}): Promise<CheckResult> {
    checkCheckOptions(given)
    return checkResultOf(this.checkers, script, given.policy ?? 'standard', given)
  }

  /** Leases a sandbox with these limits. */
  async checkout(limits: ResourceLimits | undefined, run: RunOptions): Promise<Lease> {
    const spec = specOf(this.options, limits)
    const name = nameOf(spec)
    if (!this.#specs.has(name)) this.pool.addSpec(name, spec, { occasional: true })
    this.#specs.add(name)
    const lease = await this.pool.checkout(name, checkoutOptions(run))
    try {
      assertEnforced(lease.sandbox.info, { ...this.options.limits, ...limits })
      return lease
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  /** Everything before the script runs. A script that the checker rejects has its result already, and no lease. */
  async #start<T>(script: string, run: RunOptions<T>): Promise<StartedRun | ExecutionResult<T>> {
    checkRunOptions(run)
    const executor = this.#executorFor(run)
    const request = requestOf(script, run)
    const rejection = await rejectionOf(this.checkers, script, run)
    if (rejection !== undefined) return rejection as ExecutionResult<T>
    const lease = await this.checkout(run.limits, run)
    return { executor, request: { ...request, sandbox: lease.sandbox }, lease }
  }

  #executorFor({ limits, mode = ExecutionMode.INTERACTIVE, ...run }: RunOptions): ScriptExecutor {
    return new ScriptExecutor({
      limits: limitsOfRun({ ...this.options.limits, ...limits }),
      mode,
      ...definedOf(run, ['onIntermediate', 'onLog', 'onEvent']),
    })
  }
}

function withPackages(report: SandboxReport, packages: readonly InstalledPackage[]): SandboxReport {
  if (packages.length === 0) return report
  return {
    ...report,
    probes: { ...report.probes, packages: packages.map(({ name, version }) => `${name} ${version}`) },
  }
}

function toolOf(runner: ScriptRunner, given: AsToolOptions = {}): RunPythonTool {
  checkAsToolOptions(given)
  const { name, instructions, maxStubChars, maxAnswerChars, ...run } = given
  const set = run.tools === undefined ? undefined : prepareTools(run.tools)
  return runPythonTool(
    set,
    (script, signal) =>
      runner.run(script, {
        ...run,
        policy: run.policy ?? 'standard',
        ...(set === undefined ? {} : { tools: set }),
        ...(signal === undefined ? {} : { signal }),
      }),
    { name, instructions, maxStubChars, maxAnswerChars, packages: runner.packages },
  )
}

function jobOf<T>(runner: ScriptRunner, task: string, given: SolveOptions<T>): Job<T> {
  checkSolveOptions(given)
  const { model, tools, mode = ExecutionMode.PLAN, limits, ...rest } = given
  const host: ScriptHost = {
    sandboxName: DEFAULT_SANDBOX,
    checkout: (signal) => runner.checkout(limits, { signal }),
    check: (script, { policy, ...check }) => checkAnswer(runner.checkers, script, policy, check),
  }
  const base = {
    mode,
    host,
    llmCall: callerOf(model),
    tools: tools === undefined ? undefined : prepareTools(tools),
    packages: runner.packages,
  }
  return makeJob<T>(task, base, { ...rest, limits: limitsOfRun({ ...runner.options.limits, ...limits }) })
}

function requestOf<T>(script: string, { tools, toolLimits, ...run }: RunOptions<T>): RunRequest {
  return {
    ...definedOf(run, REQUEST_OPTIONS),
    ...(tools === undefined ? {} : { tools: bridgedTools(prepareTools(tools), toolLimits) }),
    script,
  }
}

/** The limits that each run has for itself; the others are those of its sandbox. */
function limitsOfRun(given: ResourceLimits): ResourceLimits {
  return definedOf(resolveLimits(given), ['executionTimeoutSec', 'maxToolWaitSec', 'maxOutputBytes'])
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

function checkoutOptions({ leaseKey, checkoutTimeoutMs, ...run }: RunOptions): CheckoutOptions {
  return {
    ...(leaseKey === undefined ? {} : { key: leaseKey }),
    ...(checkoutTimeoutMs === undefined ? {} : { timeoutMs: checkoutTimeoutMs }),
    ...definedOf(run, ['sandboxId', 'signal']),
  }
}
