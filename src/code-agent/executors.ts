import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { messageOf, SandglassError } from '../errors/index.ts'
import type { EngineOptions } from '../engines/index.ts'
import type { FailedDependency } from '../dependencies.ts'
import { assertFew, type EnvironmentOptions, parseRequirements } from '../environments/index.ts'
import type { ExecutionResult, RunEvent } from '../executor/index.ts'
import type { RunOptions } from '../options.ts'
import { createSandglass, type Sandglass } from '../sandglass.ts'
import type { PreparedPackages } from '../script-runner.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import { refuseUnknown } from '../support/index.ts'
import { prepareTools, type ToolsInput } from '../tools/index.ts'
import type { CodeToolExecutor, ToolBridge } from './code-tool-executor.ts'
import { failedText, textOf } from './failure-text.ts'
import { LineLog } from './line-log.ts'
import { WorkspaceCopy } from './workspace-copy.ts'

/** Options of every executor. */
export interface PythonExecutorOptions {
  /** Packages that every script can import, as `pip` names them. They are trusted. */
  readonly availableDependencies?: readonly string[]
  /**
   * A directory of the host. Scripts get a copy of it, and new and changed files are copied back after each script. Names that
   * begin with a dot are copied in neither direction, and files that a script deletes stay on the host. Default: none; the files of a
   * script end with it.
   */
  readonly workspaceDir?: string
  /**
   * The directory of the packages, which a later executor may use again. Default: a temporary one, removed at the executor's end.
   * Sandboxes must be able to read it.
   */
  readonly runtimeDir?: string
  /** The source of packages, and those that a model may name (`allow`, default `known`). */
  readonly environments?: Omit<EnvironmentOptions, 'cacheDir' | 'fromScript'>
  /** Limits of each script. */
  readonly limits?: ResourceLimits
  /** Environment variables of each script, redacted in all output. */
  readonly secrets?: Readonly<Record<string, string>>
}

/** Options of {@link LocalPythonExecutor}. */
export interface LocalPythonExecutorOptions extends PythonExecutorOptions {
  readonly local?: EngineOptions['local']
}

/** Options of {@link DockerPythonExecutor}. */
export interface DockerPythonExecutorOptions extends PythonExecutorOptions {
  /** Default `python:3.12`. */
  readonly image?: string
  /** Options of the engine, without the image. */
  readonly docker?: Omit<NonNullable<EngineOptions['docker']>, 'image'>
  /** Logs what scripts print, line by line, while they run. Default true. */
  readonly streamContainerOutput?: boolean
  /** Takes the lines of the log. Default: `console.error`. */
  readonly log?: (line: string) => void
}

const WORKSPACE = '/workspace'
const COMMON = ['availableDependencies', 'workspaceDir', 'runtimeDir', 'environments', 'limits', 'secrets'] as const

/** The engine of an executor, and the log of its scripts. */
interface Kind {
  readonly engine: 'local' | 'docker'
  readonly local?: EngineOptions['local']
  readonly docker?: EngineOptions['docker']
  readonly log?: LineLog | undefined
}

/** Runs scripts one after the other, each in a clean sandbox, with packages that accumulate. */
class PythonExecutor implements CodeToolExecutor {
  readonly availableDependencies: readonly string[]
  readonly #options: PythonExecutorOptions
  readonly #kind: Kind
  /** The installed requirements that models named. */
  #libraries: readonly string[] = []
  #opened: Promise<{ readonly sandglass: Sandglass; readonly ownDirectory: string | undefined }> | undefined
  #last: Promise<unknown> = Promise.resolve()
  #isDisposed = false

  constructor(options: PythonExecutorOptions, kind: Kind) {
    this.availableDependencies = [...(options.availableDependencies ?? [])]
    this.#options = options
    this.#kind = kind
  }

  workspaceFullPath(): string {
    return WORKSPACE
  }

  async execute(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    toolInitCallback?: (bridge: ToolBridge) => void,
  ): Promise<string> {
    const run = this.#last.then(() => this.#execute(tools, code, libraries, toolInitCallback))
    this.#last = run.catch(() => {})
    return run
  }

  async #execute(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    toolInitCallback: ((bridge: ToolBridge) => void) | undefined,
  ): Promise<string> {
    const { sandglass } = await this.#open()
    const names = [...prepareTools(tools).tools.keys()]
    let packages: readonly string[]
    try {
      packages = await this.#install(sandglass, libraries)
    } catch (error) {
      const text = installFailure(error)
      if (text === undefined) throw error
      return text
    }
    const onEvent = (event: RunEvent): void => {
      if (event.type === 'started') toolInitCallback?.({ transport: 'stdio', tools: names })
      if (event.type === 'stdout' || event.type === 'stderr') this.#kind.log?.add(event.type, event.text)
    }
    const { limits, secrets } = this.#options
    const options: RunOptions = { tools, onEvent, ...(limits && { limits }), ...(secrets && { secrets }) }
    try {
      return await this.#run(sandglass, code, options, packages)
    } finally {
      this.#kind.log?.end()
    }
  }

  async #run(sandglass: Sandglass, code: string, options: RunOptions, packages: readonly string[]): Promise<string> {
    const dependencies = packages.length === 0 ? {} : { dependencies: packages }
    const { workspaceDir, limits } = this.#options
    if (workspaceDir === undefined) return textOf(await sandglass.run(code, { ...options, ...dependencies }))
    const ws = await sandglass.workspace({ ...dependencies, ...(limits && { limits }) })
    let result: ExecutionResult
    try {
      const copy = new WorkspaceCopy(resolve(workspaceDir))
      await copy.bring(ws)
      result = await ws.run(code, options)
      try {
        await copy.takeBack(ws)
      } catch (error) {
        return `Error: the files of the script were not copied back: ${messageOf(error)}\n${textOf(result)}`
      }
    } finally {
      await ws.close()
    }
    return textOf(result)
  }

  /**
   * Installs the packages that are missing. Those that can be installed stay, even if others fail.
   * @returns every package of the script with its exact version.
   * @throws FailedPackages, and SandglassError as `Sandglass.prepare` does.
   */
  async #install(sandglass: Sandglass, libraries: readonly string[]): Promise<readonly string[]> {
    const { valid, invalid } = sortOut(libraries)
    let wanted: readonly string[] = [...new Set([...this.#libraries, ...valid])]
    const { packages, failed } = await this.#prepare(sandglass, wanted).catch((error: unknown) => {
      // An earlier script named another version: this script begins a new set.
      const isConflict = error instanceof SandglassError && error.code === 'dependency_conflict'
      if (!isConflict || valid.length === wanted.length) throw error
      wanted = valid
      return this.#prepare(sandglass, valid)
    })
    const missing = new Set(failed.map(({ requirement }) => requirement))
    this.#libraries = wanted.filter((text) => !missing.has(text))
    const all = [...invalid, ...failed]
    if (all.length > 0) throw new FailedPackages(failedText(all, this.#libraries))
    // With exact versions, the run uses the set that was admitted.
    return Object.entries(packages).map(([name, version]) => `${name}==${version}`)
  }

  async #prepare(
    sandglass: Sandglass,
    wanted: readonly string[],
  ): Promise<Pick<PreparedPackages, 'packages' | 'failed'>> {
    if (wanted.length === 0) return { packages: {}, failed: [] }
    this.#kind.log?.note(`packages: ${wanted.join(', ')}`)
    return sandglass.prepare(wanted, { untrusted: true, partial: true })
  }

  #open(): Promise<{ readonly sandglass: Sandglass; readonly ownDirectory: string | undefined }> {
    if (this.#isDisposed) throw new SandglassError('pool_closed', 'this executor was disposed of: make a new one')
    this.#opened ??= this.#make().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #make(): Promise<{ readonly sandglass: Sandglass; readonly ownDirectory: string | undefined }> {
    const { runtimeDir, environments, limits } = this.#options
    const { engine, local, docker, log } = this.#kind
    const ownDirectory = runtimeDir === undefined ? await mkdtemp(join(tmpdir(), 'sandglass-executor-')) : undefined
    try {
      // Sandboxes with another uid must be able to read the packages.
      if (ownDirectory !== undefined) await chmod(ownDirectory, 0o755)
      log?.note(`starting (image ${docker?.image})`)
      const sandglass = await createSandglass({
        engine,
        ...(local && { local }),
        ...(docker && { docker }),
        ...(limits && { limits }),
        dependencies: this.availableDependencies,
        environments: { ...environments, cacheDir: resolve(runtimeDir ?? ownDirectory ?? '') },
        poolSize: 1,
      })
      return { sandglass, ownDirectory }
    } catch (error) {
      if (ownDirectory !== undefined) await rm(ownDirectory, { recursive: true, force: true })
      throw error
    }
  }

  /** Waits for the script that runs, ends every sandbox and removes the packages, unless `runtimeDir` was given. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return
    this.#isDisposed = true
    await this.#last
    const opened = await this.#opened?.catch(() => undefined)
    await opened?.sandglass.close()
    if (opened?.ownDirectory !== undefined) await rm(opened.ownDirectory, { recursive: true, force: true })
  }
}

/** Runs scripts in bubblewrap, on the Python of this machine. */
export class LocalPythonExecutor extends PythonExecutor {
  /** @throws TypeError for an option that does not exist. */
  constructor(options: LocalPythonExecutorOptions = {}) {
    refuseUnknown('LocalPythonExecutor', options, [...COMMON, 'local'])
    super(options, { engine: 'local', ...(options.local && { local: options.local }) })
  }
}

/** Runs scripts in containers that are removed afterwards. */
export class DockerPythonExecutor extends PythonExecutor {
  /** @throws TypeError for an option that does not exist. */
  constructor(options: DockerPythonExecutorOptions = {}) {
    refuseUnknown('DockerPythonExecutor', options, [...COMMON, 'image', 'docker', 'streamContainerOutput', 'log'])
    const { image = 'python:3.12', docker, streamContainerOutput = true, log = console.error } = options
    const lines = new LineLog('DockerPythonExecutor', 'script', log, streamContainerOutput)
    super(options, { engine: 'docker', docker: { ...docker, image }, log: lines })
  }
}

/** Reports packages that cannot be installed. The message is for the model. */
class FailedPackages extends Error {
  override readonly name = 'FailedPackages'
}

/** The text for the model about packages; undefined for a failure of the machinery. */
function installFailure(error: unknown): string | undefined {
  if (error instanceof FailedPackages) return error.message
  const isOfPackages = error instanceof SandglassError && /^(dependency|index)_/.test(error.code)
  return isOfPackages
    ? `Error: the script was not run, because its packages could not be installed: ${error.message}`
    : undefined
}

/**
 * Separates the requirements, in their common form, from texts that are none.
 * @throws SandglassError `dependency_invalid` for too many.
 */
function sortOut(libraries: readonly string[]): {
  readonly valid: readonly string[]
  readonly invalid: readonly FailedDependency[]
} {
  assertFew(libraries, 'packages')
  const valid: string[] = []
  const invalid: FailedDependency[] = []
  for (const requirement of libraries) {
    try {
      valid.push(...parseRequirements([requirement], 'packages').map(({ text }) => text))
    } catch (error) {
      if (!(error instanceof SandglassError)) throw error
      invalid.push({ requirement, code: error.code, message: error.message })
    }
  }
  return { valid, invalid }
}
