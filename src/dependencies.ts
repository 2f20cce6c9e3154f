import { SandglassError } from './errors/index.ts'
import {
  assertMaxRequirements,
  assertPython,
  type Declarer,
  type EnvironmentOptions,
  Environments,
  explainMissingModule,
  type InstallProgress,
  isSameTarget,
  parseRequirements,
  type PreparedEnvironment,
  type PythonTarget,
  readScriptMetadata,
  requirementsOfImports,
  type Requirement,
  scriptPackagesText,
  targetOf,
  warnOfPip,
} from './environments/index.ts'
import type { ExecutionResult, RunEnvironment, Violation } from './executor/index.ts'
import type { Sandbox } from './sandbox/index.ts'
import { dependenciesOf, type ToolsInput } from './tools/index.ts'

/** The packages that a run asks for. */
export interface DependencyRequest {
  /** They replace those of `createSandglass`. */
  readonly dependencies?: readonly string[] | undefined
  /** Packages that a model named. They are added to those of the host, and trusted as little as those that a script names. */
  readonly untrusted?: readonly string[] | undefined
  readonly tools?: ToolsInput | undefined
  /** The script. `environments.fromScript` says whether the packages that it names count. */
  readonly script?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: InstallProgress) => void) | undefined
}

/** A requirement that cannot be installed, and the reason. */
export interface FailedDependency {
  readonly requirement: string
  /** One of the codes `dependency_…`. */
  readonly code: string
  readonly message: string
}

/** Options of `createSandglass` about packages. */
export interface PackageOptions {
  readonly dependencies?: readonly string[] | undefined
  readonly environments?: EnvironmentOptions | undefined
  /** A directory that the caller fills. */
  readonly packages?: string | undefined
}

const METADATA = '# /// script'

/** Finds the packages that each run of one Sandglass needs, and prepares environments with them. */
export class Dependencies {
  readonly environments: Environments
  readonly #engineId: string
  readonly #own: readonly Requirement[]
  readonly #hasDirectory: boolean
  #target: PythonTarget | undefined
  /** The environment of the first sandbox, until a run reports its installation. */
  #untold: PreparedEnvironment | undefined

  /**
   * @param engineId identifies the engine and its options: the Python of its sandboxes is remembered under it.
   * @throws SandglassError `dependency_invalid`, `invalid_request`.
   */
  constructor(engineId: string, { dependencies = [], environments, packages }: PackageOptions) {
    this.environments = new Environments(environments)
    this.#engineId = engineId
    this.#own = parseRequirements(dependencies)
    this.#hasDirectory = packages !== undefined
    if (this.#hasDirectory && this.#own.length > 0) throw bothGivenError()
  }

  /** The requirements of runs that have none of their own. */
  get own(): readonly Requirement[] {
    return this.#own
  }

  /** The party that can declare a package that a model's script lacks. */
  get declarer(): Declarer {
    return this.#hasDirectory || this.environments.options.fromScript === 'off' ? 'nobody' : 'script'
  }

  /** The party that can declare a package that a script of the program lacks. */
  get checkDeclarer(): Declarer {
    return this.#hasDirectory ? 'nobody' : 'program'
  }

  /** Tells a model which packages its scripts may name; empty if none. */
  get scriptPackages(): string {
    return this.#hasDirectory ? '' : scriptPackagesText(this.environments.options)
  }

  /** The Python for which packages are chosen: that of the last sandbox, or the remembered one until a sandbox has started. */
  async knownTarget(): Promise<PythonTarget | undefined> {
    return (this.#target ??= await this.environments.recallTarget(this.#engineId))
  }

  /** Records the Python of a sandbox. Returns false if packages were chosen for another one. */
  async learnTarget(sandbox: Sandbox): Promise<boolean> {
    const found = targetOf(sandbox)
    const before = this.#target
    this.#target = found
    if (found === undefined || (before !== undefined && isSameTarget(before, found))) return true
    await this.environments.rememberTarget(this.#engineId, found)
    return before === undefined
  }

  /**
   * The environment of a run; undefined without any packages.
   * @throws SandglassError with a code that begins with `dependency_` or `index_`, or another one of `Environments.prepare`.
   */
  async prepare(request: DependencyRequest): Promise<PreparedEnvironment | undefined> {
    const { requirements, fromScript, host } = await this.#requirementsOf(request)
    if (requirements.length === 0) return undefined
    const target = await this.knownTarget()
    if (target === undefined) {
      throw new SandglassError(
        'dependency_no_wheel',
        'dependencies: this engine does not report which Python its sandboxes have; pass a directory of packages (option packages)',
      )
    }
    const { signal, onProgress } = request
    return this.#withFirstInstallation(
      await this.environments.prepare({ requirements, target, fromScript, host, signal, onProgress }),
    )
  }

  /**
   * Installs all requirements that can be installed, and reports the others.
   * @throws SandglassError as {@link prepare} does, when uv or the index fails or packages contradict each other.
   */
  async preparePartly(
    request: DependencyRequest,
  ): Promise<{ readonly prepared: PreparedEnvironment | undefined; readonly failed: readonly FailedDependency[] }> {
    try {
      return { prepared: await this.prepare(request), failed: [] }
    } catch (error) {
      const target = await this.knownTarget()
      if (!(error instanceof SandglassError && error.code.startsWith('dependency_')) || target === undefined)
        throw error
      const requirements = parseRequirements(request.untrusted ?? request.dependencies ?? [])
      const { fromScript, host } = await this.#requirementsOf(request)
      const failing = await this.environments.findFailing({
        requirements,
        target,
        fromScript,
        host,
        signal: request.signal,
      })
      if (failing.size === 0) throw error
      const left = requirements.map(({ text }) => text).filter((text) => !failing.has(text))
      const others = request.untrusted === undefined ? { dependencies: left } : { untrusted: left }
      const failed = [...failing].map(([requirement, { code, message }]) => ({ requirement, code, message }))
      return { prepared: await this.prepare({ ...request, ...others }), failed }
    }
  }

  /** Records the installation for the first sandbox. The first run with the same packages reports its time. */
  noteFirst(prepared: PreparedEnvironment | undefined): void {
    this.#untold = prepared
  }

  #withFirstInstallation(prepared: PreparedEnvironment): PreparedEnvironment {
    const first = this.#untold
    if (first?.environment.key !== prepared.environment.key) return prepared
    this.#untold = undefined
    return { ...prepared, cached: first.cached, ms: first.ms + prepared.ms }
  }

  async #requirementsOf({ dependencies, untrusted = [], tools, script }: DependencyRequest): Promise<{
    readonly requirements: readonly Requirement[]
    readonly fromScript: boolean
    readonly host: readonly Requirement[]
  }> {
    if (this.#hasDirectory) {
      if (dependencies !== undefined || untrusted.length > 0) throw bothGivenError()
      return { requirements: [], fromScript: false, host: [] }
    }
    const named = dependencies === undefined ? this.#own : parseRequirements(dependencies)
    const ofTools = tools === undefined ? [] : parseRequirements(dependenciesOf(tools), 'dependencies of the tools')
    const host = [...named, ...ofTools]
    const fromHost = new Set(host.map(({ text }) => text))
    const asked = parseRequirements(untrusted, 'untrustedDependencies')
    const ofScript = script === undefined ? [] : await this.#requestedBy(script, [...host, ...asked])
    const requested = merge([...asked, ...ofScript])
    const beyondHost = requested.filter(({ text }) => !fromHost.has(text))
    const requirements = merge([...host, ...beyondHost])
    assertMaxRequirements(requirements, 'dependencies with those of tools and of the script')
    return { requirements, fromScript: beyondHost.length > 0, host }
  }

  /**
   * The packages that the script names and the host does not.
   * @throws SandglassError `dependency_not_allowed`; `dependency_conflict` if it requires another Python.
   */
  async #requestedBy(script: string, host: readonly Requirement[]): Promise<readonly Requirement[]> {
    const { fromScript } = this.environments.options
    const named = new Set(host.map(({ name }) => name))
    const metadata = await readScriptMetadata(script)
    const python = metadata?.requiresPython === undefined ? undefined : (await this.knownTarget())?.python
    if (metadata?.requiresPython !== undefined && python !== undefined) assertPython(metadata.requiresPython, python)
    const declared = parseRequirements(metadata?.dependencies ?? [], 'dependencies of the script (# /// script)')
    if (fromScript !== 'off') {
      return fromScript === 'imports' ? merge([...declared, ...requirementsOfImports(script, named)]) : declared
    }
    const refused = declared.filter(({ name }) => !named.has(name))
    if (refused.length === 0) return []
    throw new SandglassError(
      'dependency_not_allowed',
      `the script declares ${refused.map(({ text }) => text).join(', ')} (# /// script), and nothing that a script names is ` +
        "installed: name them in dependencies yourself, or set environments: { fromScript: 'declared' }",
    )
  }
}

/** The environment as results report it. */
export function runEnvironmentOf(prepared: PreparedEnvironment | undefined): RunEnvironment | null {
  if (prepared === undefined) return null
  const { environment, cached, ms } = prepared
  return { key: environment.key, packages: environment.packages, cached, ms: Math.round(ms * 10) / 10 }
}

/** Describes a refusal of packages that a model's script names as a violation of the script; undefined for any other error. */
export function dependencyViolationOf(error: unknown, script: string): Violation | undefined {
  if (!(error instanceof SandglassError && error.code.startsWith('dependency_'))) return undefined
  const before = script.slice(0, Math.max(0, script.indexOf(METADATA)))
  return {
    code: error.code,
    line: before.split('\n').length,
    column: 0,
    message: error.message,
    hint: 'Use the standard library and the packages that are installed or may be named.',
  }
}

/** Adds the environment to a result, and a hint: the package of a missing module, or what to do instead of calling pip. */
export function withEnvironment<T>(
  result: ExecutionResult<T>,
  script: string,
  prepared: PreparedEnvironment | undefined,
  declarer: Declarer = 'program',
): ExecutionResult<T> {
  const environment = runEnvironmentOf(prepared)
  const hint = result.error === null ? undefined : explainMissingModule(result.error, script, declarer)
  if (hint !== undefined) return { ...result, environment, error: `${result.error}\n${hint}` }
  const message = warnOfPip(script, declarer)
  if (message === undefined) return { ...result, environment }
  return { ...result, environment, warnings: [...result.warnings, { code: 'pip_install', message, traceback: null }] }
}

function merge(requirements: readonly Requirement[]): readonly Requirement[] {
  return [...new Map(requirements.map((one) => [one.text, one])).values()]
}

function bothGivenError(): SandglassError {
  return new SandglassError(
    'invalid_request',
    'dependencies: cannot be combined with packages, the directory that you fill yourself; pass one of the two',
  )
}
