import { checkAnswer } from './checkers.ts'
import { dependencyViolation } from './dependencies.ts'
import { explainMissingModule, type PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult, Violation } from './executor/index.ts'
import type { ScriptHost } from './orchestrator/index.ts'
import type { Lease } from './pool/index.ts'
import type { ResourceLimits } from './sandbox/index.ts'
import { modulesOf, type ScriptRunner } from './script-runner.ts'
import type { ToolsInput } from './tools/index.ts'

/** The options that all scripts of a task share. */
interface TaskNeeds {
  readonly dependencies: readonly string[] | undefined
  readonly tools: ToolsInput | undefined
  readonly limits: ResourceLimits | undefined
}

/** Checks and runs the scripts of a task with the packages of one environment. */
export class TaskHost implements ScriptHost {
  /** The name of the one kind of sandbox that a Sandglass has, in records. */
  readonly sandboxName = 'default'
  readonly #runner: ScriptRunner
  readonly #needs: TaskNeeds
  readonly #environment: PreparedEnvironment | undefined
  /** The hosts for scripts that name packages themselves, by the key of the environment; this one among them. */
  readonly #hosts: Map<string, TaskHost>

  constructor(
    runner: ScriptRunner,
    needs: TaskNeeds,
    environment: PreparedEnvironment | undefined,
    hosts: Map<string, TaskHost> = new Map(),
  ) {
    this.#runner = runner
    this.#needs = needs
    this.#environment = environment
    this.#hosts = hosts.set(keyOf(environment), this)
  }

  checkout(signal: AbortSignal): Promise<Lease> {
    return this.#runner.sandboxes.checkout(this.#needs.limits, this.#environment, { signal })
  }

  check(script: string, { policy, ...check }: Parameters<ScriptHost['check']>[1]): ReturnType<ScriptHost['check']> {
    const { checkers, dependencies } = this.#runner
    const about = { environment: modulesOf(this.#environment), declarer: dependencies.declarer }
    return checkAnswer(checkers, script, policy, { ...check, ...about })
  }

  async forScript(script: string, signal: AbortSignal): Promise<ScriptHost | Violation> {
    const { dependencies, tools } = this.#needs
    try {
      const environment = await this.#runner.environmentFor({ dependencies, tools, script, signal })
      const known = this.#hosts.get(keyOf(environment))
      return known ?? new TaskHost(this.#runner, this.#needs, environment, this.#hosts)
    } catch (error) {
      const violation = dependencyViolation(error, script)
      if (violation === undefined) throw error
      return violation
    }
  }

  noteRun(script: string, result: Pick<ExecutionResult, 'errorKind'>): void {
    this.#runner.sandboxes.noteImports(script, result, this.#needs.limits, this.#environment)
  }

  explain(error: string, script: string): string | undefined {
    return explainMissingModule(error, script, this.#runner.dependencies.declarer)
  }
}

function keyOf(environment: PreparedEnvironment | undefined): string {
  return environment?.environment.key ?? ''
}
