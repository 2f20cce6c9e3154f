import { type Checkers, checkersOf, checkResultOf } from '../checkers.ts'
import { ExecutionMode } from '../executor/index.ts'
import { callerOf, type ModelInput } from '../llm/index.ts'
import type { SandboxPool } from '../pool/index.ts'
import { definedOf, refuseUnknown } from '../support/index.ts'
import { prepareTools, ToolRegistry, type ToolSet, type ToolsInput } from '../tools/index.ts'
import type { Ground, Job } from './job.ts'
import { makeJob } from './make-job.ts'
import { DEFAULTS_NAMES, type SolveDefaults, TASK_NAMES, type TaskOptions } from './options.ts'
import type { ToolExecutionResult } from './result.ts'
import { solve } from './solve.ts'
import type { SolveEvent } from './solve-event.ts'
import { streamed } from './streamed.ts'

/** What a {@link ToolOrchestrator} is made of (requirement OR-01). */
export interface ToolOrchestratorOptions extends SolveDefaults {
  /** The functions that scripts can call: a registry, of which each sandbox gets its own tools, or tools for all. */
  readonly registry?: ToolRegistry | ToolsInput | undefined
  /** Lends the sandboxes. Not closed by the orchestrator. */
  readonly pool: SandboxPool
  /** Writes the scripts. */
  readonly llmCall: ModelInput
  /** Who may get the same sandbox again. Default: the pool. */
  readonly leaseKey?: string | undefined
  /** How long a run waits for a sandbox, in milliseconds, in place of the pool's own time. */
  readonly checkoutTimeoutMs?: number | undefined
}

/**
 * Lets a model solve tasks by writing Python against tools (mission: ToolOrchestrator; requirements OR-01 to OR-12).
 * Whatever happens to a task is a value of type {@link ToolExecutionResult}; only wrong options are thrown.
 */
export class ToolOrchestrator {
  readonly #options: ToolOrchestratorOptions
  readonly #checkers = new Map<string, Checkers>()

  /** @throws TypeError naming the option that is wrong. */
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
   * PLAN mode (OR-02): one script for the whole task; a failure is told to the model, at most `maxRetries` times.
   * @param sandboxName names the spec of the pool and the tools of the registry.
   * @throws TypeError for an option that is wrong.
   */
  async execute<T = unknown>(
    task: string,
    sandboxName: string = DEFAULT_SANDBOX,
    options: TaskOptions<T> = {},
  ): Promise<ToolExecutionResult<T>> {
    return solve(this.#job(task, ExecutionMode.PLAN, sandboxName, options))
  }

  /**
   * INTERACTIVE mode (OR-03): step by step in one sandbox, until a script gives the result.
   * @param options or the greatest number of steps alone, as the mission's document has it.
   * @throws TypeError for an option that is wrong.
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
   * The same as events while it goes on; leaving the loop cancels the task. It begins with the first event that is asked for.
   * @throws TypeError for an option that is wrong.
   */
  stream<T = unknown>(
    task: string,
    { mode = ExecutionMode.PLAN, sandboxName = DEFAULT_SANDBOX, ...options }: StreamOptions<T> = {},
  ): AsyncIterable<SolveEvent<T>> {
    return streamed(this.#job(task, mode, sandboxName, options))
  }

  #job<T>(task: string, mode: ExecutionMode, sandboxName: string, options: TaskOptions<T>): Job<T> {
    refuseUnknown('options', options, TASK_NAMES)
    const { llmCall } = this.#options
    const tools = this.#toolsOf(sandboxName)
    const merged = { ...definedOf(this.#options, DEFAULTS_NAMES), ...definedOf(options, TASK_NAMES) }
    const base = { mode, ground: this.#ground(sandboxName), llmCall: callerOf(llmCall), tools }
    return makeJob<T>(task, base, merged)
  }

  #toolsOf(sandboxName: string): ToolSet | undefined {
    const { registry } = this.#options
    if (registry === undefined) return undefined
    const set = prepareTools(registry instanceof ToolRegistry ? registry.forSandbox(sandboxName) : registry)
    return set.tools.size + set.pythonTools.size === 0 ? undefined : set
  }

  #ground(sandboxName: string): Ground {
    const { pool, leaseKey, checkoutTimeoutMs } = this.#options
    const waiting = checkoutTimeoutMs === undefined ? {} : { timeoutMs: checkoutTimeoutMs }
    return {
      sandboxName,
      checkout: (signal) =>
        pool.checkout(sandboxName, { signal, ...waiting, ...(leaseKey === undefined ? {} : { key: leaseKey }) }),
      check: (script, { policy, ...given }) => {
        const checkers = this.#checkers.get(sandboxName) ?? checkersOf(pool, sandboxName)
        this.#checkers.set(sandboxName, checkers)
        return checkResultOf(checkers, script, policy, { ...given, checkoutTimeoutMs })
      },
    }
  }
}

/** How {@link ToolOrchestrator.stream} works a task off. */
export interface StreamOptions<T = unknown> extends TaskOptions<T> {
  /** Default `plan`. */
  readonly mode?: ExecutionMode | undefined
  /** Default `default`. */
  readonly sandboxName?: string | undefined
}

const DEFAULT_SANDBOX = 'default'
