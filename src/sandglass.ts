import { resolve } from 'node:path'
import { checkersOf, checkResultOf, type CheckResult, rejectionOf } from './checkers.ts'
import { enginesFor, firstThatOpens, type PassedOver, warnOfLanguageOnly } from './engine-choice.ts'
import {
  ExecutionMode,
  type ExecutionResult,
  type RunEvent,
  type RunRequest,
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
  type Ground,
  type Job,
  makeJob,
  solve,
  type SolveEvent,
  streamed,
  type ToolExecutionResult,
} from './orchestrator/index.ts'
import { type Lease, type PoolStats, SandboxPool } from './pool/index.ts'
import {
  assertEnforced,
  assertRequirements,
  ping,
  type ResourceLimits,
  resolveLimits,
  sandboxLimits,
  type SandboxEngine,
  type SandboxReport,
  type SandboxSpec,
} from './sandbox/index.ts'
import { definedOf } from './support/index.ts'
import { bridgedTools, prepareTools, type RunPythonTool, runPythonTool } from './tools/index.ts'
import { typed } from './typed-result.ts'

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
  /**
   * Lets a model solve a task by writing Python against tools (mission: ToolOrchestrator). Whatever happens is a value.
   * @throws TypeError for an option that is wrong.
   */
  solve<T = unknown>(task: string, options: SolveOptions<T>): Promise<ToolExecutionResult<T>>
  /** The same as events while it goes on; the last one is the result. Leaving the loop cancels it. */
  solveStream<T = unknown>(task: string, options: SolveOptions<T>): AsyncIterable<SolveEvent<T>>
  /** What is in force on this machine, from probes. */
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
  const defaults = specOf(options, undefined)
  const pool = new SandboxPool({
    engine,
    specs: { [nameOf(defaults)]: defaults },
    ...definedOf(options, ['poolSize', 'maxOverflow', 'maxUses', 'checkoutTimeoutMs']),
    isHealthy: (sandbox) => ping(sandbox.channel, PING_TIMEOUT_MS),
  })
  const checkers = checkersOf(pool, nameOf(defaults))
  const close = async (given?: { graceMs?: number }): Promise<void> => {
    await pool.close(given)
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

  const jobOf = <T>(task: string, given: SolveOptions<T>): Job<T> => {
    checkSolveOptions(given)
    const { model, tools, mode = ExecutionMode.PLAN, limits, ...rest } = given
    const { executionTimeoutSec, maxOutputBytes } = resolveLimits({ ...options.limits, ...limits })
    const ground: Ground = {
      sandboxName: DEFAULT_SANDBOX,
      checkout: (signal) => checkout(specOf(options, limits), { signal, ...(limits === undefined ? {} : { limits }) }),
      check: (script, { policy, ...check }) => checkResultOf(checkers, script, policy, check),
    }
    const base = {
      mode,
      ground,
      llmCall: callerOf(model),
      tools: tools === undefined ? undefined : prepareTools(tools),
    }
    return makeJob<T>(task, base, { ...rest, limits: { executionTimeoutSec, maxOutputBytes } })
  }

  return {
    engine: engine.name,
    passedOver,
    run: runOne,
    stream,
    async check(script: string, given: CheckOptions = {}) {
      checkCheckOptions(given)
      return checkResultOf(checkers, script, given.policy ?? 'standard', given)
    },
    asTool(given: AsToolOptions = {}) {
      checkAsToolOptions(given)
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
    solve: async (task, given) => solve(jobOf(task, given)),
    solveStream: (task, given) => streamed(jobOf(task, given)),
    report: () => engine.report(),
    stats: () => pool.stats(),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function prepare<T>(
  options: SandglassOptions,
  script: string,
  run: RunOptions<T>,
): { executor: ScriptExecutor; request: RunRequest; spec: SandboxSpec } {
  checkRunOptions(run)
  const { mode, limits, tools, toolLimits } = run
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
