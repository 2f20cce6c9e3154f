import { agentTool } from './agent-tool.ts'
import type { CheckResult } from './checkers.ts'
import type { DependencyRequest } from './dependencies.ts'
import { enginesFor, openFirstEngine, type PassedOver, warnOfLanguageOnly } from './engine-choice.ts'
import type { PreparedEnvironment } from './environments/index.ts'
import { ExecutionMode, type ExecutionResult, type RunEvent } from './executor/index.ts'
import { callerOf } from './llm/index.ts'
import {
  type AsToolOptions,
  checkOptions,
  type CheckOptions,
  checkSolveOptions,
  type RunOptions,
  type SandglassOptions,
  type Session,
  type SessionOptions,
  type SolveOptions,
  type Workspace,
  type WorkspaceOptions,
} from './options/index.ts'
import {
  type Job,
  makeJob,
  solve,
  type SolveEvent,
  streamSolve,
  type ToolExecutionResult,
} from './orchestrator/index.ts'
import type { PoolStats } from './pool/index.ts'
import type { ApproveOptions, PendingCall } from './review/index.ts'
import type { ResourceLimits, SandboxEngine, SandboxReport } from './sandbox/index.ts'
import { packagesOf, type PreparedPackages, type PrepareOptions, ScriptRunner } from './script-runner.ts'
import { definedOf, type NamedPackage } from './support/index.ts'
import { type SessionHost, TaskHost, TaskSession, WorkspaceHost } from './task-host.ts'
import { prepareTools, type RunPythonTool } from './tools/index.ts'

/** Runs Python that a language model wrote. Made by {@link createSandglass}. */
export interface Sandglass extends AsyncDisposable {
  /** The engine in use. */
  readonly engine: string
  /** The engines that `auto` tried before it, and why it skipped them. */
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
   * @throws TypeError for an option that does not exist, and for tools that cannot become functions.
   */
  asTool(options?: AsToolOptions): RunPythonTool
  /**
   * Lets a model solve a task by writing Python against tools. Whatever happens is a value.
   * @throws TypeError or SandglassError (`invalid_request`, `workspace_closed`) for an invalid option.
   */
  solve<T = unknown>(task: string, options: SolveOptions<T>): Promise<ToolExecutionResult<T>>
  /** The same as events while the task runs; the last one is the result. Leaving the loop cancels it. */
  solveStream<T = unknown>(task: string, options: SolveOptions<T>): AsyncIterable<SolveEvent<T>>
  /**
   * Installs packages in advance, so that a run with these `dependencies` begins at once.
   * @throws SandglassError with a code that begins with `dependency_` or `index_`; `cache_dir_unusable`, `no_space`, `aborted`.
   */
  prepare(dependencies: readonly string[], options?: PrepareOptions): Promise<PreparedPackages>
  /**
   * A sandbox of its own that lasts until it is closed: scripts, programs, files and connections in one place. `close()` of
   * this Sandglass closes it, too.
   * @throws SandglassError `workspaces_unavailable`, `limit_not_enforceable`, `invalid_request`, `aborted`; the codes of
   * `prepare` for its packages; the engine's own for its sandbox.
   */
  workspace(options?: WorkspaceOptions): Promise<Workspace>
  /**
   * Opens a session: cells of Python that run one after the other in the same process, in a workspace of their own, which closes with
   * the session.
   * @throws SandglassError as `workspace` does, `activity_unavailable` where the engine has no sessions, and `checkpoint_unavailable`
   * for `onError: 'rollback'` where its sessions have no checkpoints.
   */
  session(options?: SessionOptions): Promise<Session>
  /** The calls of tools that wait until {@link approve} or {@link deny} is called, the oldest first. */
  pending(): readonly PendingCall[]
  /**
   * Lets a waiting call execute, with other arguments if `args` is given. The first decision counts.
   * @throws SandglassError `approval_unknown`, `approval_decided`; `approval_invalid` for `args` that the tool does not accept: the
   * call still waits.
   */
  approve(id: string, options?: ApproveOptions): Promise<void>
  /**
   * Refuses a waiting call: the script gets a ToolError `denied` with the reason, at most 2,000 characters.
   * @throws SandglassError `approval_unknown`, `approval_decided`.
   */
  deny(id: string, reason?: string, options?: Pick<ApproveOptions, 'by'>): Promise<void>
  /** Probes the protection that is in force on this machine. */
  report(): Promise<SandboxReport>
  /** Hits, misses, waits and refills of the pool, over all limits. */
  stats(): PoolStats
  /**
   * Ends everything: running scripts have `graceMs` to finish, then they are killed. Those whose calls wait for approval are cancelled at
   * once. Idempotent.
   */
  close(options?: { graceMs?: number }): Promise<void>
}

/**
 * Finds an engine and starts its first sandbox.
 * @throws SandglassError `engine_unavailable` or the engine's own code when there is none, `requirement_unmet`,
 * `limit_not_enforceable`, `invalid_request`, `limits_do_not_fit`, `aborted`; TypeError for an option that does not
 * exist.
 */
export async function createSandglass(options: SandglassOptions = {}): Promise<Sandglass> {
  const { sandglass } = await openSandglass(options)
  return sandglass
}

/** Does the same, and also returns the runner, for other rooms of the library. */
export async function openSandglass(options: SandglassOptions): Promise<OpenSandglass> {
  checkOptions(options)
  return openFirstEngine(enginesFor(options), (engine, passedOver) => openOn(engine, passedOver, options))
}

interface OpenSandglass {
  readonly sandglass: Sandglass
  readonly runner: ScriptRunner
}

async function openOn(
  engine: SandboxEngine,
  passedOver: readonly PassedOver[],
  options: SandglassOptions,
): Promise<OpenSandglass> {
  const ownsEngine = typeof options.engine !== 'object'
  const runner = new ScriptRunner(engine, options)
  const close = async (given?: { graceMs?: number }): Promise<void> => {
    await runner.close(given)
    if (ownsEngine) await engine.close()
  }
  try {
    const first = await runner.startFirst()
    if (first.info.level === 'language-only') warnOfLanguageOnly(engine.name, passedOver)
  } catch (error) {
    await close()
    throw error
  }
  const sandglass: Sandglass = {
    engine: engine.name,
    passedOver,
    run: (script, run) => runner.run(script, run),
    stream: (script, run) => runner.stream(script, run),
    check: (script, given) => runner.check(script, given),
    asTool: (given) => agentTool(runner, given),
    solve: async (task, given) => {
      const planned = planTask(runner, task, given)
      using _call = planned.use()
      try {
        return await solve(await planned.job())
      } finally {
        await planned.close()
      }
    },
    solveStream: (task, given) => streamTask(planTask(runner, task, given)),
    prepare: (dependencies, given) => runner.prepare(dependencies, given),
    session: (given) => runner.sessions.open(given),
    workspace: (given) => runner.workspaces.open(given),
    pending: () => runner.approvals.pending(),
    approve: (id, given) => runner.approvals.approve(id, given),
    deny: (id, reason, given) => runner.approvals.deny(id, reason, given),
    report: async () => withPackages(await engine.report(), runner.packages),
    stats: () => runner.sandboxes.pool.stats(),
    close,
    [Symbol.asyncDispose]: close,
  }
  return { sandglass, runner }
}

function withPackages(report: SandboxReport, packages: readonly NamedPackage[]): SandboxReport {
  if (packages.length === 0) return report
  return {
    ...report,
    probes: { ...report.probes, packages: packages.map(({ name, version }) => `${name} ${version}`) },
  }
}

/** A task whose options were checked. */
interface PlannedTask<T> {
  /** Keeps its workspace open while the model thinks, until the result is disposed of. */
  use(): Disposable | undefined
  /** Installs its packages, and makes the job. */
  job(): Promise<Job<T>>
  /** Ends the session of the task, and the workspace that was opened for it. Never rejects. */
  close(): Promise<void>
}

/** @throws TypeError or SandglassError `invalid_request` for a wrong option, before anything is installed. */
function planTask<T>(runner: ScriptRunner, task: string, given: SolveOptions<T>): PlannedTask<T> {
  checkSolveOptions(given)
  const {
    model,
    tools,
    mode = ExecutionMode.PLAN,
    limits,
    dependencies,
    workspace,
    shareSecrets,
    files,
    session = false,
    onError = 'keep',
    ...rest
  } = given
  const keepsFiles = workspace !== undefined || session
  const ownFiles = keepsFiles ? {} : { files }
  const options = { ...rest, ...ownFiles, limits: limitsOfTask(runner, limits, workspace) }
  const base = { mode, llmCall: callerOf(model), tools: tools === undefined ? undefined : prepareTools(tools) }
  const jobWith = (
    environment: PreparedEnvironment | undefined,
    traceId: string | null | undefined,
    own?: SessionHost,
  ): Job<T> => {
    const host =
      own ??
      (workspace === undefined
        ? new TaskHost(runner, { dependencies, tools, limits }, environment)
        : new WorkspaceHost(runner, {
            workspace,
            files,
            ...definedOf({ limits, shareSecrets, secrets: rest.secrets }, ['limits', 'shareSecrets', 'secrets']),
          }))
    const packages = environment === undefined ? runner.directoryPackages : packagesOf(environment)
    const { scriptPackages } = runner.dependencies
    return makeJob<T>(
      task,
      {
        ...base,
        host,
        packages,
        areDeclared: environment !== undefined,
        ...(keepsFiles ? { workspaceFiles: files } : { scriptPackages }),
      },
      { ...options, ...(typeof traceId === 'string' ? { traceId } : {}) },
    )
  }
  // The task belongs to the trace of this call, even if it begins later.
  const { traceId } = jobWith(undefined, rest.traceId)
  if (session) {
    const session = new TaskSession(runner, { ...given, limits })
    return {
      use: () => (workspace === undefined ? undefined : runner.workspaces.use(workspace)),
      job: async () => {
        const { host, environment } = await session.open(onError)
        return jobWith(environment, traceId, host)
      },
      close: () => session.close(),
    }
  }
  if (workspace !== undefined) {
    const environment = runner.workspaces.environmentOf(workspace)
    return {
      use: () => runner.workspaces.use(workspace),
      job: async () => {
        await runner.workspaces.checkFiles(files)
        return jobWith(environment, traceId)
      },
      close: async () => {},
    }
  }
  const wanted: DependencyRequest = { dependencies, tools, signal: rest.signal }
  return {
    use: () => undefined,
    job: async () => jobWith(await runner.environmentFor(wanted), traceId),
    close: async () => {},
  }
}

/** The limits of a task. A workspace has its limits already; a script in it may only request lower ones. */
function limitsOfTask(
  runner: ScriptRunner,
  limits: ResourceLimits | undefined,
  workspace: Workspace | undefined,
): ResourceLimits {
  const lesser = workspace === undefined ? {} : definedOf(limits ?? {}, ['memoryBytes', 'cpus', 'pids', 'diskBytes'])
  return { ...runner.limitsOf(limits), ...lesser }
}

async function* streamTask<T>(planned: PlannedTask<T>): AsyncGenerator<SolveEvent<T>, void, void> {
  using _call = planned.use()
  try {
    yield* streamSolve(await planned.job())
  } finally {
    await planned.close()
  }
}
