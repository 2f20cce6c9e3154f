import { resolve } from 'node:path'
import { type Checkers, checkersOf, checkResultOf, type CheckResult, rejectionOf } from './checkers.ts'
import {
  Dependencies,
  type DependencyRequest,
  dependencyViolation,
  type FailedDependency,
  runEnvironment,
  withEnvironment,
} from './dependencies.ts'
import type { Declarer, InstallProgress, PreparedEnvironment } from './environments/index.ts'
import { Finisher } from './finish-environment.ts'
import {
  ExecutionMode,
  type ExecutionResult,
  type RunEnvironment,
  type RunEvent,
  type RunRequest,
  type SandboxRunRequest,
  ScriptExecutor,
} from './executor/index.ts'
import {
  checkCheckOptions,
  type CheckOptions,
  checkRunOptions,
  REQUEST_OPTIONS,
  type RunOptions,
  type SandglassOptions,
} from './options.ts'
import { type Lease, SandboxPool } from './pool/index.ts'
import { Preloads } from './preloads.ts'
import { checkoutOptions, engineIdOf, limitsOfRun, nameOf, specOf } from './run-spec.ts'
import {
  assertEnforced,
  assertPackagesFit,
  assertRequirements,
  installedPackages,
  ping,
  type ResourceLimits,
  type Sandbox,
  type SandboxEngine,
  type SandboxSpec,
} from './sandbox/index.ts'
import { definedOf, type NamedPackage } from './support/index.ts'
import { bridgedTools, prepareTools } from './tools/index.ts'
import { applySchema } from './typed-result.ts'
import { Workspaces } from './workspaces.ts'

/** Options of {@link Sandglass.prepare}. */
export interface PrepareOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InstallProgress) => void
  /** Installs the others if some cannot be installed, and lists these in `failed`. Default false: then it throws. */
  readonly partial?: boolean
}

/** Packages that {@link Sandglass.prepare} installed. */
export interface PreparedPackages extends RunEnvironment {
  /** With `partial`: the requirements that cannot be installed. */
  readonly failed: readonly FailedDependency[]
}

const PING_TIMEOUT_MS = 2000

/** A script on its way: what runs it, and the lease that must be given back. */
interface StartedRun {
  readonly environment: PreparedEnvironment | undefined
  readonly executor: ScriptExecutor
  readonly request: SandboxRunRequest
  readonly lease: Pick<Lease, 'release'>
}

/** Checks scripts and runs them in leased sandboxes. */
export class ScriptRunner {
  readonly options: SandglassOptions
  readonly pool: SandboxPool
  readonly checkers: Checkers
  readonly dependencies: Dependencies
  readonly workspaces: Workspaces
  readonly #engine: SandboxEngine
  /** The packages that runs find which name none. */
  packages: readonly NamedPackage[] = []
  readonly #plain: string
  readonly #finisher: Finisher
  readonly #closed = new AbortController()
  readonly #preloads = new Preloads()
  /** Modules that sandboxes of an environment load ahead, by its directory. */
  readonly #ahead = new Map<string, readonly string[]>()
  readonly #specs: Set<string>

  constructor(engine: SandboxEngine, options: SandglassOptions) {
    const plain = specOf(options, undefined, undefined)
    this.options = options
    this.dependencies = new Dependencies(engineIdOf(engine, options), options)
    this.#engine = engine
    this.#finisher = new Finisher(engine, this.#closed.signal)
    this.#plain = nameOf(plain)
    this.#specs = new Set([this.#plain])
    this.pool = new SandboxPool({
      engine,
      specs: { [this.#plain]: plain },
      ...definedOf(options, ['poolSize', 'maxOverflow', 'maxUses', 'maxIdleBytes', 'checkoutTimeoutMs']),
      isHealthy: (sandbox) => ping(sandbox.channel, PING_TIMEOUT_MS),
    })
    this.checkers = checkersOf(this.pool, this.#plain)
    this.workspaces = new Workspaces(engine, this)
  }

  /** Starts the first sandbox, which stays in the pool. A missing engine fails here and not at the first run. */
  async startFirst(): Promise<Sandbox> {
    const { require = [], limits = {}, packages } = this.options
    if (require.length > 0) assertRequirements(await this.#engine.report(), require)
    const first = await this.#firstSandbox()
    assertEnforced(first.info, limits)
    if (packages !== undefined) {
      const installed = await installedPackages(packages)
      this.packages = installed
      assertPackagesFit(resolve(packages), installed, first.info)
    }
    return first
  }

  /** A sandbox with the packages of this Sandglass. Only the first time on a machine, its Python must be found out before. */
  async #firstSandbox(): Promise<Sandbox> {
    const { dependencies } = this
    const signal = definedOf(this.options, ['signal'])
    const { poolSize = 2 } = this.options
    for (;;) {
      const isKnown = dependencies.own.length === 0 || (await dependencies.knownTarget()) !== undefined
      const environment = isKnown ? await dependencies.prepare(signal) : undefined
      const spec = specOf(this.options, undefined, environment)
      if (!isKnown || poolSize === 0) {
        // Not the pool: it would keep this kind warm.
        await using sandbox = await this.#engine.create(spec, signal)
        if ((await dependencies.learnTarget(sandbox)) && isKnown) return this.#note(environment, sandbox)
        continue
      }
      const first = await this.pool.checkout(this.#nameFor(spec, {}), signal)
      await first.release()
      if (await dependencies.learnTarget(first.sandbox)) return this.#note(environment, first.sandbox)
    }
  }

  #note(environment: PreparedEnvironment | undefined, sandbox: Sandbox): Sandbox {
    this.packages = packagesOf(environment)
    this.dependencies.noteFirst(environment)
    return sandbox
  }

  /** Ends what goes on beside the runs. */
  async close(options?: { readonly graceMs?: number }): Promise<void> {
    this.#closed.abort()
    await Promise.all([this.pool.close(options), this.workspaces.close()])
    await this.#finisher.ended
    this.dependencies.environments.close()
  }

  /** Has byte code made for an environment, once. Runs need not wait for it. */
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

  /** Gives back environments of which there are no sandboxes: a cache could not keep its limit otherwise. */
  #releaseEnvironments(): void {
    const isUsed = (path: string): boolean =>
      this.pool.uses(({ packages }) => packages === path) || this.workspaces.uses(path)
    this.dependencies.environments.releaseUnused(isUsed)
  }

  /** Installs packages for a run. @throws SandglassError as `Environments.prepare` does. */
  async prepare(dependencies: readonly string[], given: PrepareOptions = {}): Promise<PreparedPackages> {
    const { partial = false, ...options } = given
    const request = { dependencies, ...options }
    const { prepared, failed } = partial
      ? await this.dependencies.preparePartly(request)
      : { prepared: await this.dependencies.prepare(request), failed: [] }
    if (prepared !== undefined) await this.#finish(prepared)
    return { ...(runEnvironment(prepared) ?? { key: '', packages: {}, cached: true, ms: 0 }), failed }
  }

  /** @param declarer who can declare a package that the script lacks. */
  async run<T>(script: string, run: RunOptions<T> = {}, declarer?: Declarer): Promise<ExecutionResult<T>> {
    const started = await this.#start(script, run, declarer)
    if ('status' in started) return started
    const { executor, request, lease } = started
    let result: ExecutionResult
    try {
      result = await executor.run(request)
    } finally {
      // Not awaited: the executor has ended a sandbox that must not serve again.
      void lease.release()
    }
    if (result.errorKind === null && run.workspace === undefined) this.#noteImports(script, run, started.environment)
    // Without the lease: the check of the result may have to wait for others.
    return applySchema(withEnvironment(result, script, started.environment, declarer), run.output)
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
    if (end === undefined) return
    const result = withEnvironment(end.result, script, started.environment)
    yield { ...end, result: await applySchema(result, run.output) }
  }

  async check(script: string, given: CheckOptions = {}): Promise<CheckResult> {
    checkCheckOptions(given)
    const { dependencies, ...check } = given
    const wanted = { dependencies, ...definedOf(given, ['tools', 'signal']) }
    let environment: PreparedEnvironment | undefined
    try {
      environment = await this.dependencies.prepare({ ...wanted, script })
    } catch (error) {
      const violation = dependencyViolation(error, script)
      if (violation === undefined) throw error
      await this.dependencies.prepare(wanted) // throws if it is not the fault of the script
      return { ok: false, violations: [violation] }
    }
    return checkResultOf(this.checkers, script, given.policy ?? 'standard', {
      ...check,
      environment: modulesOf(environment),
      declarer: this.dependencies.checkDeclarer,
    })
  }

  /** Leases a sandbox with these limits and packages. */
  async checkout(
    limits: ResourceLimits | undefined,
    environment: PreparedEnvironment | undefined,
    run: RunOptions,
  ): Promise<Lease> {
    const spec = this.#specFor(limits, environment)
    const lease = await this.pool.checkout(this.#nameFor(spec, { occasional: true }), checkoutOptions(run))
    try {
      assertEnforced(lease.sandbox.info, { ...this.options.limits, ...limits })
      return lease
    } catch (error) {
      await lease.release()
      throw error
    }
  }

  #specFor(limits: ResourceLimits | undefined, environment: PreparedEnvironment | undefined): SandboxSpec {
    const spec = specOf(this.options, limits, environment)
    const ahead = this.#ahead.get(environment?.environment.path ?? '')
    return ahead === undefined ? spec : { ...spec, preload: [...(spec.preload ?? []), ...ahead] }
  }

  /** Has what scripts import loaded ahead in further sandboxes; runs change over when the first of them is ready. */
  #noteImports(script: string, { limits }: RunOptions, prepared: PreparedEnvironment | undefined): void {
    const { poolSize = 2 } = this.options
    if (prepared === undefined || poolSize === 0) return
    const { path } = prepared.environment
    const modules = this.#preloads.note(prepared.environment, script)
    if (modules === undefined || modules.length === 0 || modules.join() === this.#ahead.get(path)?.join()) return
    const before = this.#nameFor(this.#specFor(limits, prepared), { occasional: true })
    const plain = specOf(this.options, limits, prepared)
    const name = this.#nameFor({ ...plain, preload: [...(plain.preload ?? []), ...modules] }, { occasional: true })
    const changeOver = (): void => {
      this.#ahead.set(path, modules)
      this.pool.shed(before)
    }
    // Without such sandboxes, runs stay with those that they have.
    this.pool.prewarm(name).then(changeOver, () => {})
  }

  /** The name of a spec in the pool. */
  #nameFor(spec: SandboxSpec, options: { readonly occasional?: boolean }): string {
    const name = nameOf(spec)
    if (!this.#specs.has(name)) this.pool.addSpec(name, spec, options)
    this.#specs.add(name)
    return name
  }

  /** Everything before the script runs. A script that the checker rejects has its result already, and no lease. */
  async #start<T>(
    script: string,
    run: RunOptions<T>,
    declarer: Declarer = this.dependencies.checkDeclarer,
  ): Promise<StartedRun | ExecutionResult<T>> {
    checkRunOptions(run)
    const { dependencies, workspace, ...given } = run
    const executor = this.#executorFor(run)
    const request = requestOf(script, given)
    const wanted: DependencyRequest = { dependencies, script, ...definedOf(run, ['tools', 'signal']) }
    const environment =
      workspace === undefined ? await this.environmentFor(wanted) : this.workspaces.environmentOf(workspace)
    const about = { environment: modulesOf(environment), declarer }
    const rejection = await rejectionOf(this.checkers, script, { ...given, ...about })
    if (rejection !== undefined) {
      return { ...(rejection as ExecutionResult<T>), environment: runEnvironment(environment) }
    }
    if (workspace !== undefined) {
      const { files, ...others } = request
      const lease = await this.workspaces.borrow(workspace, run, files)
      const { sandbox, executionId } = lease
      return { environment, executor, request: { ...others, sandbox, executionId }, lease }
    }
    const lease = await this.checkout(run.limits, environment, run)
    return { environment, executor, request: { ...request, sandbox: lease.sandbox }, lease }
  }

  #executorFor<T>({ limits = {}, mode = ExecutionMode.INTERACTIVE, workspace, ...run }: RunOptions<T>): ScriptExecutor {
    // A workspace has its limits already; a run in it may only ask for less.
    const lesser = workspace === undefined ? {} : definedOf(limits, ['memoryBytes', 'cpus', 'pids', 'diskBytes'])
    return new ScriptExecutor({
      limits: { ...limitsOfRun({ ...this.options.limits, ...limits }), ...lesser },
      mode,
      ...definedOf(run, ['onIntermediate', 'onLog', 'onEvent']),
    })
  }
}

/** The packages of an environment, as prompts name them. */
export function packagesOf(prepared: PreparedEnvironment | undefined): NamedPackage[] {
  const packages = Object.entries(prepared?.environment.packages ?? {})
  return packages.map(([name, version]) => ({ name, version }))
}

/** Modules that the packages of an environment bring. */
export function modulesOf(prepared: PreparedEnvironment | undefined): readonly string[] {
  return prepared?.environment.modules ?? []
}

function requestOf<T>(script: string, { tools, toolLimits, ...run }: RunOptions<T>): RunRequest {
  return {
    ...definedOf(run, REQUEST_OPTIONS),
    ...(tools === undefined ? {} : { tools: bridgedTools(prepareTools(tools), toolLimits) }),
    script,
  }
}
