import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Checkers, checkersOf, checkResultOf, type CheckResult, rejectionOf } from './checkers.ts'
import {
  Dependencies,
  type DependencyRequest,
  dependencyViolationOf,
  type FailedDependency,
  runEnvironmentOf,
  withEnvironment,
} from './dependencies.ts'
import type { Declarer, InstallProgress, PreparedEnvironment } from './environments/index.ts'
import { Finisher } from './finish-environment.ts'
import {
  type CellTurn,
  checkFiles,
  endpointAt,
  ExecutionMode,
  type ExecutionResult,
  findHostFiles,
  isStdinStream,
  readStdin,
  type RunEnvironment,
  type RunEvent,
  type RunRequest,
  ScriptExecutor,
  type ToolEndpoint,
  unreachable,
} from './executor/index.ts'
import {
  checkCheckOptions,
  type CheckOptions,
  checkRunOptions,
  REQUEST_OPTIONS,
  type RunOptions,
  type SandglassOptions,
  type Session,
  type Workspace,
  type WorkspaceSessionOptions,
} from './options/index.ts'
import { Approvals, type ApprovedRun } from './review/index.ts'
import { engineIdOf, limitsOfRun, specOf } from './run-spec.ts'
import {
  assertEnforced,
  assertPackagesFit,
  assertRequirements,
  assertShown,
  DEFAULT_LIMITS,
  type Requirement,
  type ResourceLimits,
  installedPackages,
  type Sandbox,
  type SandboxEngine,
} from './sandbox/index.ts'
import { Sessions } from './sessions.ts'
import { LeasedRun, settledRun, type StartedRun } from './started-run.ts'
import { definedOf, type NamedPackage } from './support/index.ts'
import { bridgedTools, prepareTools } from './tools/index.ts'
import { applySchema } from './typed-result.ts'
import { WarmSandboxes } from './warm-sandboxes.ts'
import { Workspaces } from './workspaces.ts'

/** Options of {@link Sandglass.prepare}. */
export interface PrepareOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InstallProgress) => void
  /** Installs the others if some cannot be installed, and lists these in `failed`. Default false: then it throws. */
  readonly partial?: boolean
  /**
   * True for packages that a model named. Besides those of `createSandglass`, only what `environments.allow` admits is
   * installed, and `environments.excludeNewer` has the default of scripts. Default false.
   */
  readonly untrusted?: boolean
}

/** Packages that {@link Sandglass.prepare} installed. */
export interface PreparedPackages extends RunEnvironment {
  /** With `partial`: the requirements that cannot be installed. */
  readonly failed: readonly FailedDependency[]
}

/** Checks scripts and runs them in leased sandboxes. */
export class ScriptRunner {
  readonly options: SandglassOptions
  readonly sandboxes: WarmSandboxes
  readonly checkers: Checkers
  readonly dependencies: Dependencies
  readonly workspaces: Workspaces
  readonly sessions: Sessions
  readonly approvals: Approvals
  readonly #engine: SandboxEngine
  /** The packages of runs that name none. */
  packages: readonly NamedPackage[] = []
  readonly #finisher: Finisher
  readonly #closed = new AbortController()
  /** The limits of runs that have none of their own. */
  readonly #ownLimits: ResourceLimits

  constructor(engine: SandboxEngine, options: SandglassOptions) {
    this.options = options
    this.dependencies = new Dependencies(engineIdOf(engine, options), options)
    this.approvals = new Approvals(options)
    this.#engine = engine
    this.#ownLimits = limitsOfRun({ ...options.limits })
    this.sandboxes = new WarmSandboxes(engine, options)
    this.#finisher = new Finisher(engine, this.#closed.signal, (path) => {
      if (engine.copiesPackages === true) this.sandboxes.pool.outdate(({ packages }) => packages === path)
    })
    this.checkers = checkersOf(this.sandboxes.pool, this.sandboxes.plain)
    this.workspaces = new Workspaces(engine, this)
    this.sessions = new Sessions(this.workspaces, this)
  }

  /** Starts the first sandbox, which stays in the pool, so that a missing engine fails here and not at the first run. */
  async startFirst(): Promise<Sandbox> {
    const { require = [], limits = {}, packages } = this.options
    if (require.length > 0) await this.#assertMet(require)
    const first = await this.#startFirstSandbox()
    assertEnforced(first.info, limits)
    if (packages !== undefined) {
      const installed = await installedPackages(packages)
      this.packages = installed
      assertPackagesFit(resolve(packages), installed, first)
    }
    return first
  }

  /** @throws SandglassError `requirement_unmet`; the engine's own error if it does not work. */
  async #assertMet(require: readonly Requirement[]): Promise<void> {
    let report = await this.#engine.report()
    assertRequirements(report, require)
    if (report.usable) return
    // A report that failed shows nothing. The error of the engine says why; if it works by now, it is asked again.
    await using _sandbox = await this.#engine.create(specOf(this.options, undefined, undefined))
    report = await this.#engine.report()
    assertRequirements(report, require)
    assertShown(report, require)
  }

  /** Starts a sandbox with the packages of this Sandglass. If its Python is not known yet, another sandbox is started first to learn it. */
  async #startFirstSandbox(): Promise<Sandbox> {
    const { dependencies } = this
    const signal = definedOf(this.options, ['signal'])
    const { poolSize = 2 } = this.options
    for (;;) {
      const isKnown = dependencies.own.length === 0 || (await dependencies.knownTarget()) !== undefined
      const environment = isKnown ? await dependencies.prepare(signal) : undefined
      const spec = specOf(this.options, undefined, environment)
      if (!isKnown || poolSize === 0) {
        // Not from the pool, which would keep such sandboxes warm.
        await using sandbox = await this.#engine.create(spec, signal)
        if ((await dependencies.learnTarget(sandbox)) && isKnown) return this.#noteFirst(environment, sandbox)
        continue
      }
      const first = await this.sandboxes.checkoutOwn(spec, signal)
      await first.release()
      if (await dependencies.learnTarget(first.sandbox)) return this.#noteFirst(environment, first.sandbox)
    }
  }

  #noteFirst(environment: PreparedEnvironment | undefined, sandbox: Sandbox): Sandbox {
    this.packages = packagesOf(environment)
    this.dependencies.noteFirst(environment)
    return sandbox
  }

  /** Ends everything: waiting approvals, sandboxes, workspaces and installations. */
  async close(options?: { readonly graceMs?: number }): Promise<void> {
    this.#closed.abort()
    this.approvals.cancelWaiting()
    await Promise.all([this.sandboxes.pool.close(options), this.workspaces.close()])
    await this.#finisher.ended
    this.dependencies.environments.close()
  }

  /** Starts to compile byte code for an environment, once. Runs do not wait for it. */
  #finish(prepared: PreparedEnvironment): Promise<void> {
    const { limits } = specOf(this.options, undefined, prepared)
    return this.#finisher.finish(prepared.environment, limits)
  }

  /** The packages of the directory that the caller fills. */
  get directoryPackages(): readonly NamedPackage[] {
    return this.options.packages === undefined ? [] : this.packages
  }

  /** The environment of a run. @throws SandglassError as `Dependencies.prepare` does. */
  async environmentFor(request: DependencyRequest): Promise<PreparedEnvironment | undefined> {
    const environment = await this.dependencies.prepare(request)
    if (environment !== undefined) void this.#finish(environment)
    if (environment?.cached === false) this.#releaseEnvironments()
    return environment
  }

  /** Releases environments that no sandbox uses, so that the cache can keep its limit. */
  #releaseEnvironments(): void {
    const isUsed = (path: string): boolean =>
      this.sandboxes.pool.hasUsers(({ packages }) => packages === path) || this.workspaces.hasUsers(path)
    this.dependencies.environments.releaseUnused(isUsed)
  }

  /** Installs packages for a run. @throws SandglassError as `Environments.prepare` does. */
  async prepare(dependencies: readonly string[], given: PrepareOptions = {}): Promise<PreparedPackages> {
    const { partial = false, untrusted = false, ...options } = given
    const request = { ...(untrusted ? { untrusted: dependencies } : { dependencies }), ...options }
    const { prepared, failed } = partial
      ? await this.dependencies.preparePartly(request)
      : { prepared: await this.dependencies.prepare(request), failed: [] }
    if (prepared !== undefined) await this.#finish(prepared)
    return { ...(runEnvironmentOf(prepared) ?? { key: '', packages: {}, cached: true, ms: 0 }), failed }
  }

  /** @param declarer who can declare a package that the script lacks. */
  async run<T>(script: string, run: RunOptions<T> = {}, declarer?: Declarer): Promise<ExecutionResult<T>> {
    const started = await this.#start(script, run, declarer)
    return started.run()
  }

  async *stream<T>(script: string, run: RunOptions<T> = {}): AsyncGenerator<RunEvent<T>, void, void> {
    const started = await this.#start(script, run)
    yield* started.stream()
  }

  /** Opens a session in a workspace. */
  openSession(workspace: Workspace, options?: WorkspaceSessionOptions): Promise<Session> {
    return this.sessions.openIn(workspace, options)
  }

  async runCell(cell: string, run: RunOptions, turn: CellTurn): Promise<ExecutionResult> {
    const started = await this.#start(cell, run, undefined, turn)
    return started.run()
  }

  async *streamCell(cell: string, run: RunOptions, turn: CellTurn): AsyncGenerator<RunEvent, void, void> {
    const started = await this.#start(cell, run, undefined, turn)
    yield* started.stream()
  }

  async check(script: string, given: CheckOptions = {}): Promise<CheckResult> {
    checkCheckOptions(given)
    const { dependencies, ...check } = given
    const wanted = { dependencies, ...definedOf(given, ['tools', 'signal']) }
    let environment: PreparedEnvironment | undefined
    try {
      environment = await this.environmentFor({ ...wanted, script })
    } catch (error) {
      const violation = dependencyViolationOf(error, script)
      if (violation === undefined) throw error
      await this.environmentFor(wanted) // throws if it is not the fault of the script
      return { ok: false, violations: [violation] }
    }
    return checkResultOf(this.checkers, script, given.policy ?? 'standard', {
      ...check,
      environment: modulesOf(environment),
      declarer: this.dependencies.checkDeclarer,
    })
  }

  /** Prepares a run. A script that the checker rejects gets its result here, without a lease. */
  async #start<T>(script: string, run: RunOptions<T>, declarer?: Declarer, turn?: CellTurn): Promise<StartedRun<T>> {
    checkRunOptions(run)
    const { dependencies, untrustedDependencies: untrusted, workspace, ...given } = run
    // Keeps the workspace open during the check.
    using _call = workspace === undefined ? undefined : this.workspaces.use(workspace)
    await this.#checkFiles(run)
    let imported: readonly string[] = []
    const executor = this.#executorFor(run, (modules) => (imported = modules))
    const wanted: DependencyRequest = { dependencies, untrusted, script, ...definedOf(run, ['tools', 'signal']) }
    const environment =
      workspace === undefined ? await this.environmentFor(wanted) : this.workspaces.environmentOf(workspace)
    const rejection = await rejectionOf(this.checkers, script, {
      ...given,
      environment: modulesOf(environment),
      declarer: declarer ?? this.dependencies.checkDeclarer,
      keepsFiles: workspace !== undefined,
    })
    if (rejection !== undefined) {
      return settledRun({ ...(rejection as ExecutionResult<T>), environment: runEnvironmentOf(environment) })
    }
    const request = requestOf(script, given, await this.#readInput(run))
    // Before the lease, because invalid tools must not take one.
    let parked: Pick<ApprovedRun, 'park'> = {}
    const tools = this.#toolsOf(given, () => parked.park?.() ?? (() => undefined))
    const usesWebSocket = run.toolTransport === 'websocket' && tools.tools !== undefined
    const finishIn =
      (present: PreparedEnvironment | undefined) =>
      (result: ExecutionResult): Promise<ExecutionResult<T>> => {
        const ran = withEnvironment(result, script, present, declarer)
        if (workspace === undefined) this.sandboxes.noteImports({ script, imported }, ran, run.limits, present)
        return applySchema(ran, run.output)
      }
    if (workspace !== undefined) {
      const { files, ...others } = request
      const toolEndpoint = usesWebSocket ? this.workspaces.toolEndpointOf(workspace) : undefined
      const lease = await this.workspaces.borrow(workspace, run, files, turn?.group)
      const { sandbox, executionId } = lease
      return new LeasedRun(
        executor,
        { ...others, ...tools, toolEndpoint, sandbox, executionId, cell: turn },
        lease,
        finishIn(environment),
      )
    }
    const { lease, present } = await this.leaseFor(wanted, environment, run)
    parked = lease
    const { sandbox } = lease
    try {
      const toolEndpoint = usesWebSocket ? endpointOf(sandbox) : undefined
      return new LeasedRun(executor, { ...request, ...tools, toolEndpoint, sandbox }, lease, finishIn(present))
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  /** The tools of a run. While their calls wait for approval, the lease is parked. */
  #toolsOf<T>(
    { tools, toolLimits, signal }: RunOptions<T>,
    park: () => () => void,
  ): Pick<RunRequest, 'tools' | 'signal'> {
    if (tools === undefined) return {}
    const own = new AbortController()
    const run = { park, cancel: () => own.abort() }
    const bridged = bridgedTools(prepareTools(tools), toolLimits, this.approvals.approverOf(run))
    if (!bridged.mayWait) return { tools: bridged }
    return { tools: bridged, signal: signal === undefined ? own.signal : AbortSignal.any([signal, own.signal]) }
  }

  /** Leases a sandbox with the packages of an environment. */
  async leaseFor(
    wanted: DependencyRequest,
    environment: PreparedEnvironment | undefined,
    run: RunOptions,
  ): Promise<{
    readonly lease: Awaited<ReturnType<WarmSandboxes['checkout']>>
    readonly present: PreparedEnvironment | undefined
  }> {
    const { started, present } = await this.startIn(wanted, environment, (packages) =>
      this.sandboxes.checkout(run.limits, packages, run),
    )
    return { lease: started, present }
  }

  /** Starts a sandbox. An environment whose directory was removed meanwhile is installed again, once. */
  async startIn<T>(
    wanted: DependencyRequest,
    environment: PreparedEnvironment | undefined,
    start: (environment: PreparedEnvironment | undefined) => Promise<T>,
  ): Promise<{ readonly started: T; readonly present: PreparedEnvironment | undefined }> {
    try {
      return { started: await start(environment), present: environment }
    } catch (error) {
      if (environment === undefined || existsSync(environment.environment.path)) throw error
      const present = await this.environmentFor(wanted)
      return { started: await start(present), present }
    }
  }

  /** Checks the files before a lease and an installation, because unreadable ones must cause neither. */
  async #checkFiles({ files, workspace, limits }: RunOptions): Promise<void> {
    if (workspace !== undefined) await this.workspaces.checkFiles(files)
    else if (files !== undefined)
      await findHostFiles(checkFiles(files), specOf(this.options, limits, undefined).limits.diskBytes)
  }

  /** The standard input of a run. A stream is read without a lease. */
  #readInput<T>({ stdin, limits, signal }: RunOptions<T>): Promise<RunRequest['stdin']> | RunRequest['stdin'] {
    if (!isStdinStream(stdin)) return stdin
    const { executionTimeoutSec: timeoutSec = DEFAULT_LIMITS.executionTimeoutSec } = this.limitsOf(limits)
    return readStdin(stdin, { timeoutSec, signal })
  }

  /** The limits that a run has for itself. @throws SandglassError `invalid_request`; TypeError for a limit that does not exist. */
  limitsOf(limits: ResourceLimits | undefined): ResourceLimits {
    return limits === undefined ? this.#ownLimits : limitsOfRun({ ...this.options.limits, ...limits })
  }

  #executorFor<T>(
    { limits, mode = ExecutionMode.INTERACTIVE, workspace, ...run }: RunOptions<T>,
    onImports: (modules: readonly string[]) => void,
  ): ScriptExecutor {
    // A workspace has its limits already; a run in it may only request lower ones.
    const lesser = workspace === undefined ? {} : definedOf(limits ?? {}, ['memoryBytes', 'cpus', 'pids', 'diskBytes'])
    return new ScriptExecutor({
      limits: { ...this.limitsOf(limits), ...lesser },
      mode,
      onImports,
      ...definedOf(run, ['onIntermediate', 'onLog', 'onEvent']),
    })
  }
}

/** The packages of an environment, as prompts name them. */
export function packagesOf(prepared: PreparedEnvironment | undefined): NamedPackage[] {
  const packages = Object.entries(prepared?.environment.packages ?? {})
  return packages.map(([name, version]) => ({ name, version }))
}

/** The packages that scripts can import, as `name==version`. */
export function pinnedOf(runner: ScriptRunner, environment: PreparedEnvironment | undefined): readonly string[] {
  const packages = environment === undefined ? runner.directoryPackages : packagesOf(environment)
  return packages.map(({ name, version }) => `${name}==${version}`)
}

/** Modules that the packages of an environment provide. */
export function modulesOf(prepared: PreparedEnvironment | undefined): readonly string[] {
  return prepared?.environment.modules ?? []
}

/** The endpoint for tool calls of a script in a sandbox of the pool. @throws SandglassError `websocket_unreachable` */
function endpointOf({ info }: Sandbox): ToolEndpoint {
  if (info.address !== undefined) return endpointAt(info.address)
  throw unreachable(
    `the sandboxes of the engine ${info.engine} have no network address. Run the script in a workspace (sg.workspace()), whose loopback the host reaches`,
  )
}

function requestOf<T>(script: string, run: RunOptions<T>, stdin: RunRequest['stdin']): RunRequest {
  return {
    ...definedOf(run, REQUEST_OPTIONS),
    ...(stdin === undefined ? {} : { stdin }),
    script,
  }
}
