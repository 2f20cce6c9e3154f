import { checkAnswer } from './checkers.ts'
import { type DependencyRequest, dependencyViolationOf } from './dependencies.ts'
import { SandglassError } from './errors/index.ts'
import { explainMissingModule, type PreparedEnvironment } from './environments/index.ts'
import type { ExecutionResult, SessionVariable, Violation } from './executor/index.ts'
import type { RunOptions, Session, Workspace, WorkspaceOptions } from './options/index.ts'
import type { Loan, ScriptHost } from './orchestrator/index.ts'
import type { ApprovedRun } from './review/index.ts'
import type { ResourceLimits } from './sandbox/index.ts'
import { specOf } from './run-spec.ts'
import { modulesOf, pinnedOf, type ScriptRunner } from './script-runner.ts'
import { definedOf } from './support/index.ts'
import { type Approver, dependenciesOf, describeLoss, type ToolsInput } from './tools/index.ts'

/** The options that all scripts of a task share. */
interface TaskNeeds {
  readonly dependencies: readonly string[] | undefined
  readonly tools: ToolsInput | undefined
  readonly limits: ResourceLimits | undefined
}

/** A task in a workspace: the needs of its scripts, and the files that are put there before the first script. */
interface WorkspaceNeeds extends Pick<RunOptions, 'secrets' | 'shareSecrets' | 'limits'> {
  readonly workspace: Workspace
  readonly files: WorkspaceOptions['files'] | undefined
}

/** Checks and runs the scripts of a task with the packages of one environment. */
export class TaskHost implements ScriptHost {
  /** The name of the sandbox in records. */
  readonly sandboxName = 'default'
  readonly #runner: ScriptRunner
  readonly #needs: TaskNeeds
  readonly #script: string | undefined
  readonly diskBytes: number
  #environment: PreparedEnvironment | undefined
  /** The hosts for scripts that name packages themselves, including this one, by the key of the environment. */
  readonly #hosts: Map<string, TaskHost>

  /** @param script the script whose packages are in the environment, in addition to those of the task. */
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
      const violation = dependencyViolationOf(error, script)
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
  readonly sandboxName: string = 'workspace'
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

  /** @param group the group of the session of a cell. */
  async checkout(signal: AbortSignal, group?: object): Promise<Loan> {
    const { workspace, files: _, ...run } = this.#needs
    const loan = await this.#runner.workspaces.borrow(workspace, { ...run, signal }, this.#files, group)
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

/** Runs the scripts of a task as cells of one session in a workspace. A lost session is replaced by an empty one. */
export class SessionHost extends WorkspaceHost {
  override readonly sandboxName = 'session'
  readonly #runner: ScriptRunner
  readonly #workspace: Workspace
  readonly #onError: 'keep' | 'rollback'
  #session: Session | undefined
  /** The loss of a session, until the model is told. */
  #loss: string | undefined

  /** @throws SandglassError `workspace_closed`, `invalid_request` */
  constructor(runner: ScriptRunner, needs: WorkspaceNeeds, onError: 'keep' | 'rollback') {
    super(runner, needs)
    this.#runner = runner
    this.#workspace = needs.workspace
    this.#onError = onError
  }

  override async checkout(signal: AbortSignal): Promise<Loan> {
    const { turn, leave } = await this.#takeTurn(signal)
    try {
      const loan = await super.checkout(signal, turn.group)
      const release = (): Promise<void> => {
        leave()
        return loan.release()
      }
      return { sandbox: loan.sandbox, ...definedOf(loan, ['executionId']), cell: turn, release }
    } catch (error) {
      leave(true)
      throw error
    }
  }

  async variables(): Promise<readonly SessionVariable[]> {
    try {
      return (await this.#session?.variables()) ?? []
    } catch (error) {
      await this.#giveUp(error)
      return []
    }
  }

  takeLoss(): string | undefined {
    const loss = this.#loss
    this.#loss = undefined
    return loss
  }

  /** Tells the checker the names of the variables of earlier cells. */
  override async check(script: string, given: Parameters<ScriptHost['check']>[1]): ReturnType<ScriptHost['check']> {
    const variables = await this.variables()
    const known = Object.fromEntries(variables.map(({ name }) => [name, null]))
    return super.check(script, { ...given, inputs: { ...known, ...given.inputs } })
  }

  /** Ends the session. Never rejects. */
  async close(): Promise<void> {
    await this.#session?.close()
  }

  async #takeTurn(signal: AbortSignal): Promise<ReturnType<ScriptRunner['sessions']['turnOf']>> {
    const turnOf = (session: Session): ReturnType<ScriptRunner['sessions']['turnOf']> =>
      this.#runner.sessions.turnOf(session, this.#onError)
    const open = (): Promise<Session> => this.#workspace.session({ signal })
    try {
      return turnOf((this.#session ??= await open()))
    } catch (error) {
      await this.#giveUp(error)
      return turnOf((this.#session = await open()))
    }
  }

  /** Gives up the session if this error says that it is lost. @throws any other error */
  async #giveUp(error: unknown): Promise<void> {
    if (!isLost(error)) throw error
    const lost = this.#session
    this.#session = undefined
    if (lost !== undefined) this.#loss = describeLoss(await this.#runner.sessions.lossOf(lost), 'empty session')
  }
}

/** The session of a task: in the workspace that it was given, or in one of its own. */
export class TaskSession {
  readonly #runner: ScriptRunner
  readonly #given: SessionNeeds
  #own: Workspace | undefined
  #host: SessionHost | undefined

  constructor(runner: ScriptRunner, given: SessionNeeds) {
    this.#runner = runner
    this.#given = given
  }

  /** @throws SandglassError as `Workspaces.open` does. */
  async open(
    onError: 'keep' | 'rollback',
  ): Promise<{ readonly host: SessionHost; readonly environment: PreparedEnvironment | undefined }> {
    const { workspace: given, tools, files, limits, dependencies, signal } = this.#given
    const { workspaces } = this.#runner
    await workspaces.checkFiles(files)
    const ofTools = tools === undefined ? [] : dependenciesOf(tools)
    const wanted =
      dependencies === undefined && ofTools.length === 0 ? undefined : [...(dependencies ?? []), ...ofTools]
    const ofSandbox = definedOf({ limits, signal, dependencies: wanted }, ['limits', 'signal', 'dependencies'])
    const workspace = given ?? (this.#own = await workspaces.open(ofSandbox))
    const needs = definedOf(this.#given, ['limits', 'shareSecrets', 'secrets'])
    const host = (this.#host = new SessionHost(this.#runner, { workspace, files, ...needs }, onError))
    return { host, environment: workspaces.environmentOf(workspace) }
  }

  /** Never rejects. */
  async close(): Promise<void> {
    await this.#host?.close()
    await this.#own?.close()
  }
}

/** The options of a task that its session needs. */
interface SessionNeeds {
  readonly workspace?: Workspace | undefined
  readonly shareSecrets?: boolean | undefined
  readonly secrets?: RunOptions['secrets'] | undefined
  readonly tools?: ToolsInput | undefined
  readonly files?: WorkspaceOptions['files'] | undefined
  readonly limits?: ResourceLimits | undefined
  readonly dependencies?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

function isLost(error: unknown): boolean {
  return error instanceof SandglassError && error.code === 'session_lost'
}

function keyOf(environment: PreparedEnvironment | undefined): string {
  return environment?.environment.key ?? ''
}
