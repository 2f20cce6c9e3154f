import type { CheckResult } from './checkers.ts'
import type { DependencyRequest } from './dependencies.ts'
import { enginesFor, firstThatOpens, type PassedOver, warnOfLanguageOnly } from './engine-choice.ts'
import type { PreparedEnvironment } from './environments/index.ts'
import { checkFiles, ExecutionMode, type ExecutionResult, type RunEvent } from './executor/index.ts'
import { callerOf } from './llm/index.ts'
import {
  type AsToolOptions,
  checkAsToolOptions,
  checkOptions,
  type CheckOptions,
  checkSolveOptions,
  type RunOptions,
  type SandglassOptions,
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
import { ReviewedRuns } from './reviewed-runs.ts'
import type { ResourceLimits, SandboxEngine, SandboxReport } from './sandbox/index.ts'
import { limitsOfRun } from './run-spec.ts'
import { packagesOf, type PreparedPackages, type PrepareOptions, ScriptRunner } from './script-runner.ts'
import { definedOf, filesText, type NamedPackage } from './support/index.ts'
import { TaskHost, WorkspaceHost } from './task-host.ts'
import { dependenciesOf, prepareTools, type RunPythonTool, runPythonTool, withToolApproval } from './tools/index.ts'

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
   * @throws TypeError for an option that does not exist, and for tools that cannot become functions.
   */
  asTool(options?: AsToolOptions): RunPythonTool
  /**
   * Lets a model solve a task by writing Python against tools. Whatever happens is a value.
   * @throws TypeError or SandglassError (`invalid_request`, `workspace_closed`) for an option that is wrong.
   */
  solve<T = unknown>(task: string, options: SolveOptions<T>): Promise<ToolExecutionResult<T>>
  /** The same as events while it continues; the last one is the result. Leaving the loop cancels it. */
  solveStream<T = unknown>(task: string, options: SolveOptions<T>): AsyncIterable<SolveEvent<T>>
  /**
   * Installs packages ahead, so that a run with these `dependencies` begins at once.
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
  /** The calls of tools that wait until {@link approve} or {@link deny} is called, the oldest first. */
  pending(): readonly PendingCall[]
  /**
   * Lets a call that waits execute, with other arguments if `args` is given. The first decision counts.
   * @throws SandglassError `approval_unknown`, `approval_decided`; `approval_invalid` for `args` that the tool does not accept: the
   * call still waits.
   */
  approve(id: string, options?: ApproveOptions): Promise<void>
  /**
   * Refuses a call that waits: the script gets a ToolError `denied` with the reason, at most 2,000 characters.
   * @throws SandglassError `approval_unknown`, `approval_decided`.
   */
  deny(id: string, reason?: string, options?: Pick<ApproveOptions, 'by'>): Promise<void>
  /** The protection in force on this machine, from probes. */
  report(): Promise<SandboxReport>
  /** Hits, misses, waits and refills of the pool, over all limits. */
  stats(): PoolStats
  /**
   * Ends everything: running scripts are given `graceMs`, then nothing is left. Those whose calls wait for approval are cancelled at
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

/** The same, with the runner behind it, for other rooms of the library. */
export async function openSandglass(options: SandglassOptions): Promise<OpenSandglass> {
  checkOptions(options)
  return firstThatOpens(enginesFor(options), (engine, passedOver) => openOn(engine, passedOver, options))
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
    asTool: (given) => toolOf(runner, given),
    solve: async (task, given) => {
      const planned = planTask(runner, task, given)
      using _call = planned.use()
      return await solve(await planned.job())
    },
    solveStream: (task, given) => streamTask(planTask(runner, task, given)),
    prepare: (dependencies, given) => runner.prepare(dependencies, given),
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

function toolOf(runner: ScriptRunner, given: AsToolOptions = {}): RunPythonTool {
  checkAsToolOptions(given)
  const { name, instructions, maxStubChars, maxAnswerChars, maxAnswerFileBytes, onFiles, files, review, ...rest } =
    given
  const run = withApproval(rest)
  const runs = new ReviewedRuns(runner, review)
  const set = run.tools === undefined ? undefined : prepareTools(run.tools)
  if (run.workspace === undefined) checkFiles(files, { rereadable: true })
  // Files are put into a workspace only once, because scripts may change them.
  const putOnce = onceDone(async () => {
    if (files !== undefined) await run.workspace?.put(files)
  })
  // Their versions are known when they are installed: at the first call.
  const unversioned = (text: string): NamedPackage => ({ name: text, version: '' })
  const ofTools = run.tools === undefined ? [] : dependenciesOf(run.tools)
  const packages = [...(run.dependencies?.map(unversioned) ?? runner.packages), ...ofTools.map(unversioned)]
  return runPythonTool(
    set,
    async (script, signal) => {
      const options = {
        ...run,
        ...(files === undefined || run.workspace !== undefined ? {} : { files }),
        policy: run.policy ?? 'standard',
        ...(signal === undefined ? {} : { signal }),
      } as const
      await putOnce()
      return runs.run(script, options)
    },
    {
      name,
      instructions,
      maxStubChars,
      maxAnswerChars,
      maxAnswerFileBytes,
      onFiles,
      packages,
      scriptPackages: run.workspace === undefined ? runner.dependencies.scriptPackages : '',
      files: filesText(Object.keys(files ?? {}), run.collect ?? []),
      keepsFiles: run.workspace !== undefined,
    },
  )
}

/** The options of the runs of a tool, with `toolApproval` in their tools. */
function withApproval({ toolApproval, ...run }: Pick<AsToolOptions, 'toolApproval'> & RunOptions): RunOptions {
  if (toolApproval === undefined) return run
  if (run.tools === undefined) throw new TypeError('toolApproval: there are no tools; give tools, too')
  return { ...run, tools: withToolApproval(run.tools, toolApproval) }
}

/** Does something once; a failure does not count. */
function onceDone(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return async () => {
    done ??= act()
    try {
      await done
    } catch (error) {
      done = undefined
      throw error
    }
  }
}

/** A task whose options were checked, and how to begin it when its packages are there. */
interface PlannedTask<T> {
  /** Keeps its workspace open while the model thinks, until the result is disposed of. */
  use(): Disposable | undefined
  /** Installs its packages. */
  job(): Promise<Job<T>>
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
    ...rest
  } = given
  const ownFiles = workspace === undefined ? { files } : {}
  const options = { ...rest, ...ownFiles, limits: limitsOfTask(runner, limits, workspace) }
  const base = { mode, llmCall: callerOf(model), tools: tools === undefined ? undefined : prepareTools(tools) }
  const jobWith = (environment: PreparedEnvironment | undefined, traceId: string | null | undefined): Job<T> => {
    const host =
      workspace === undefined
        ? new TaskHost(runner, { dependencies, tools, limits }, environment)
        : new WorkspaceHost(runner, {
            workspace,
            files,
            ...definedOf({ limits, shareSecrets, secrets: rest.secrets }, ['limits', 'shareSecrets', 'secrets']),
          })
    const packages = environment === undefined ? runner.directoryPackages : packagesOf(environment)
    const { scriptPackages } = runner.dependencies
    return makeJob<T>(
      task,
      {
        ...base,
        host,
        packages,
        areDeclared: environment !== undefined,
        ...(workspace === undefined ? { scriptPackages } : { workspaceFiles: files }),
      },
      { ...options, ...(typeof traceId === 'string' ? { traceId } : {}) },
    )
  }
  // It belongs to the trace of this call, also if it begins later.
  const { traceId } = jobWith(undefined, rest.traceId)
  if (workspace !== undefined) {
    const environment = runner.workspaces.environmentOf(workspace)
    return {
      use: () => runner.workspaces.use(workspace),
      job: async () => {
        await runner.workspaces.checkFiles(files)
        return jobWith(environment, traceId)
      },
    }
  }
  const wanted: DependencyRequest = { dependencies, tools, signal: rest.signal }
  return { use: () => undefined, job: async () => jobWith(await runner.environmentFor(wanted), traceId) }
}

/** A workspace has its limits already; a script in it may only ask for less. */
function limitsOfTask(
  runner: ScriptRunner,
  limits: ResourceLimits = {},
  workspace: Workspace | undefined,
): ResourceLimits {
  const lesser = workspace === undefined ? {} : definedOf(limits, ['memoryBytes', 'cpus', 'pids', 'diskBytes'])
  return { ...limitsOfRun({ ...runner.options.limits, ...limits }), ...lesser }
}

async function* streamTask<T>(planned: PlannedTask<T>): AsyncGenerator<SolveEvent<T>, void, void> {
  using _call = planned.use()
  yield* streamSolve(await planned.job())
}
