import { checkAnswer } from './checkers.ts'
import { type DependencyRequest, dependencyViolation } from './dependencies.ts'
import { explainMissingModule, type PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult, Violation } from './executor/index.ts'
import type { RunOptions, Workspace, WorkspaceOptions } from './options/index.ts'
import type { Loan, ScriptHost } from './orchestrator/index.ts'
import type { ApprovedRun } from './review/index.ts'
import type { ResourceLimits } from './sandbox/index.ts'
import { specOf } from './run-spec.ts'
import { modulesOf, pinnedOf, type ScriptRunner } from './script-runner.ts'
import type { Approver, ToolsInput } from './tools/index.ts'

/** The options that all scripts of a task share. */
interface TaskNeeds {
  readonly dependencies: readonly string[] | undefined
  readonly tools: ToolsInput | undefined
  readonly limits: ResourceLimits | undefined
}

/** A task in a workspace: what its scripts ask of it, and the files that are put there before the first one. */
interface WorkspaceNeeds extends Pick<RunOptions, 'secrets' | 'shareSecrets' | 'limits'> {
  readonly workspace: Workspace
  readonly files: WorkspaceOptions['files'] | undefined
}

/** Checks and runs the scripts of a task with the packages of one environment. */
export class TaskHost implements ScriptHost {
  /** The name of the one kind of sandbox that a Sandglass has, in records. */
  readonly sandboxName = 'default'
  readonly #runner: ScriptRunner
  readonly #needs: TaskNeeds
  readonly #script: string | undefined
  readonly diskBytes: number
  #environment: PreparedEnvironment | undefined
  /** The hosts for scripts that name packages themselves, by the key of the environment; this one among them. */
  readonly #hosts: Map<string, TaskHost>

  /** @param script the one whose packages are in the environment, beside those of the task. */
  constructor(
    runner: ScriptRunner,
    needs: TaskNeeds,
    environment: PreparedEnvironment | undefined,
    hosts: Map<string, TaskHost> = new Map(),
    script?: string,
  ) {
    this.#runner = runner
    this.#needs = needs
    this.diskBytes = specOf(runner.options, needs.limits, undefined).limits.diskBytes
    this.#environment = environment
    this.#script = script
    this.#hosts = hosts.set(keyOf(environment), this)
  }

  async checkout(signal: AbortSignal): Promise<Loan> {
    const { dependencies, tools, limits } = this.#needs
    const wanted: DependencyRequest = { dependencies, tools, script: this.#script, signal }
    const run = { signal, ...(limits === undefined ? {} : { limits }) }
    const { lease, present } = await this.#runner.leaseFor(wanted, this.#environment, run)
    this.#environment = present
    return lease
  }

  approverOf(run: ApprovedRun): Approver {
    return this.#runner.approvals.approverOf(run)
  }

  check(script: string, { policy, ...check }: Parameters<ScriptHost['check']>[1]): ReturnType<ScriptHost['check']> {
    const { checkers, dependencies } = this.#runner
    const about = { environment: modulesOf(this.#environment), declarer: dependencies.declarer }
    return checkAnswer(checkers, script, policy, { ...check, ...about })
  }

  get dependencies(): readonly string[] {
    return pinnedOf(this.#runner, this.#environment)
  }

  async forScript(script: string, signal: AbortSignal): Promise<ScriptHost | Violation> {
    const { dependencies, tools } = this.#needs
    try {
      const environment = await this.#runner.environmentFor({ dependencies, tools, script, signal })
      const known = this.#hosts.get(keyOf(environment))
      return known ?? new TaskHost(this.#runner, this.#needs, environment, this.#hosts, script)
    } catch (error) {
      const violation = dependencyViolation(error, script)
      if (violation === undefined) throw error
      return violation
    }
  }

  noteRun(
    run: { readonly script: string; readonly imported: readonly string[] },
    result: Pick<ExecutionResult, 'errorKind'>,
  ): void {
    this.#runner.sandboxes.noteImports(run, result, this.#needs.limits, this.#environment)
  }

  explain(error: string, script: string): string | undefined {
    return explainMissingModule(error, script, this.#runner.dependencies.declarer)
  }
}

/** Runs the scripts of a task in a workspace, with the packages of the workspace. */
export class WorkspaceHost implements ScriptHost {
  readonly sandboxName = 'workspace'
  readonly keepsFiles = true
  readonly #runner: ScriptRunner
  readonly #needs: WorkspaceNeeds
  readonly #environment: PreparedEnvironment | undefined
  #files: WorkspaceOptions['files'] | undefined

  /** @throws SandglassError `workspace_closed`, `invalid_request` */
  constructor(runner: ScriptRunner, needs: WorkspaceNeeds) {
    this.#runner = runner
    this.#needs = needs
    this.#files = needs.files
    this.#environment = runner.workspaces.environmentOf(needs.workspace)
  }

  get dependencies(): readonly string[] {
    return pinnedOf(this.#runner, this.#environment)
  }

  async checkout(signal: AbortSignal): Promise<Loan> {
    const { workspace, files: _, ...run } = this.#needs
    const loan = await this.#runner.workspaces.borrow(workspace, { ...run, signal }, this.#files)
    this.#files = undefined
    return loan
  }

  approverOf(run: ApprovedRun): Approver {
    return this.#runner.approvals.approverOf(run)
  }

  check(script: string, { policy, ...check }: Parameters<ScriptHost['check']>[1]): ReturnType<ScriptHost['check']> {
    return checkAnswer(this.#runner.checkers, script, policy, { ...check, environment: modulesOf(this.#environment) })
  }
}

function keyOf(environment: PreparedEnvironment | undefined): string {
  return environment?.environment.key ?? ''
}
