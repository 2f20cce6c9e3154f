import { type Checkers, checkAnswer, checkersOf } from '../checkers.ts'
import { ExecutionMode } from '../executor/index.ts'
import { callerOf, type ModelInput } from '../llm/index.ts'
import type { SandboxPool } from '../pool/index.ts'
import { definedOf, refuseUnknown } from '../support/index.ts'
import { prepareTools, ToolRegistry, type ToolSet, type ToolsInput } from '../tools/index.ts'
import type { Job, ScriptHost } from './job.ts'
import { makeJob } from './make-job.ts'
import { DEFAULTS_NAMES, type SolveDefaults, TASK_NAMES, type TaskOptions } from './options.ts'
import type { ToolExecutionResult } from './result.ts'
import { solve } from './solve.ts'
import { type SolveEvent, streamSolve } from './stream.ts'

/** Options of {@link ToolOrchestrator}. */
export interface ToolOrchestratorOptions extends SolveDefaults {
  /** The tools of scripts: a registry with tools for each sandbox, or tools for all. */
  readonly registry?: ToolRegistry | ToolsInput | undefined
  /** Lends the sandboxes. Not closed by the orchestrator. */
  readonly pool: SandboxPool
  /** Writes the scripts. */
  readonly llmCall: ModelInput
  /** The lease key: only tasks with the same key share a sandbox. Default: that of the pool. */
  readonly leaseKey?: string | undefined
  /** The maximum wait for a sandbox, in milliseconds. Default: that of the pool. */
  readonly checkoutTimeoutMs?: number | undefined
}

/**
 * Lets a model solve tasks by writing Python that calls tools.
 * Every outcome of a task is a value of type {@link ToolExecutionResult}; only invalid options throw.
 */
export class ToolOrchestrator {
  readonly #options: ToolOrchestratorOptions
  readonly #checkers = new Map<string, Checkers>()

  /** @throws TypeError naming the invalid option. */
  constructor(options: ToolOrchestratorOptions) {
    refuseUnknown('ToolOrchestrator', options, [
      ...DEFAULTS_NAMES,
      'registry',
      'pool',
      'llmCall',
      'leaseKey',
      'checkoutTimeoutMs',
    ])
    if (typeof options.pool?.checkout !== 'function')
      throw new TypeError('ToolOrchestrator: pool must be a SandboxPool')
    callerOf(options.llmCall)
    this.#options = options
  }

  /**
   * PLAN mode: one script for the whole task. The model gets feedback on a failure, at most `maxRetries` times.
   * @param sandboxName names the spec of the pool and the tools of the registry.
   * @throws TypeError for an invalid option.
   */
  async execute<T = unknown>(
    task: string,
    sandboxName: string = DEFAULT_SANDBOX,
    options: TaskOptions<T> = {},
  ): Promise<ToolExecutionResult<T>> {
    return solve(this.#job(task, ExecutionMode.PLAN, sandboxName, options))
  }

  /**
   * INTERACTIVE mode: step by step in one sandbox, until a script returns the result.
   * @param options the options of the task, or only its maximum number of steps.
   * @throws TypeError for an invalid option.
   */
  async executeInteractive<T = unknown>(
    task: string,
    sandboxName: string = DEFAULT_SANDBOX,
    options: number | TaskOptions<T> = {},
  ): Promise<ToolExecutionResult<T>> {
    const given = typeof options === 'number' ? { maxSteps: options } : options
    return solve(this.#job(task, ExecutionMode.INTERACTIVE, sandboxName, given))
  }

  /**
   * Solves a task and yields its events. The task starts when the first event is requested; leaving the loop cancels it.
   * @throws TypeError for an invalid option.
   */
  stream<T = unknown>(
    task: string,
    { mode = ExecutionMode.PLAN, sandboxName = DEFAULT_SANDBOX, ...options }: StreamOptions<T> = {},
  ): AsyncIterable<SolveEvent<T>> {
    return streamSolve(this.#job(task, mode, sandboxName, options))
  }

  #job<T>(task: string, mode: ExecutionMode, sandboxName: string, options: TaskOptions<T>): Job<T> {
    refuseUnknown('options', options, TASK_NAMES)
    const { llmCall } = this.#options
    const tools = this.#toolsOf(sandboxName)
    const merged = { ...definedOf(this.#options, DEFAULTS_NAMES), ...definedOf(options, TASK_NAMES) }
    const base = { mode, host: this.#hostFor(sandboxName), llmCall: callerOf(llmCall), tools }
    return makeJob<T>(task, base, merged)
  }

  #toolsOf(sandboxName: string): ToolSet | undefined {
    const { registry } = this.#options
    if (registry === undefined) return undefined
    const set = prepareTools(registry instanceof ToolRegistry ? registry.forSandbox(sandboxName) : registry)
    return set.tools.size + set.pythonTools.size === 0 ? undefined : set
  }

  #hostFor(sandboxName: string): ScriptHost {
    const { pool, leaseKey, checkoutTimeoutMs } = this.#options
    const waiting = checkoutTimeoutMs === undefined ? {} : { timeoutMs: checkoutTimeoutMs }
    return {
      sandboxName,
      checkout: (signal) =>
        pool.checkout(sandboxName, { signal, ...waiting, ...(leaseKey === undefined ? {} : { key: leaseKey }) }),
      check: (script, { policy, ...given }) => {
        const checkers = this.#checkers.get(sandboxName) ?? checkersOf(pool, sandboxName)
        this.#checkers.set(sandboxName, checkers)
        return checkAnswer(checkers, script, policy, { ...given, checkoutTimeoutMs })
      },
    }
  }
}

/** Options of {@link ToolOrchestrator.stream}. */
export interface StreamOptions<T = unknown> extends TaskOptions<T> {
  /** Default `plan`. */
  readonly mode?: ExecutionMode | undefined
  /** Default `default`. */
  readonly sandboxName?: string | undefined
}

const DEFAULT_SANDBOX = 'default'
