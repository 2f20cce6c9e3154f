import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { messageOf, SandglassError } from '../errors/index.ts'
import type { EngineOptions } from '../engines/index.ts'
import type { FailedDependency } from '../dependencies.ts'
import {
  assertMaxRequirements,
  makeTemporaryCache,
  parseRequirements,
  readScriptMetadata,
} from '../environments/index.ts'
import type { RunEvent } from '../executor/index.ts'
import type { RunOptions } from '../options/index.ts'
import { checkAnswer, rejectionText } from '../checkers.ts'
import { type ApproveOptions, findingsOf, type PendingCall } from '../review/index.ts'
import { openSandglass, type Sandglass } from '../sandglass.ts'
import { pinnedOf, type ScriptRunner } from '../script-runner.ts'
import { Redactor } from '../redaction/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { prepareTools, type ToolsInput } from '../tools/index.ts'
import type { CodeToolExecutor, ExecuteOptions, Inspected, ToolBridge } from './code-tool-executor.ts'
import {
  COMMON_OPTIONS,
  type DockerPythonExecutorOptions,
  type LocalPythonExecutorOptions,
  type PythonExecutorOptions,
} from './executor-options.ts'
import { failedText, textOf } from './failure-text.ts'
import { LineLog } from './line-log.ts'
import { WorkspaceCopy } from './workspace-copy.ts'

const WORKSPACE = '/workspace'
const DEFAULT_IMAGE = 'python:3.12'
/** The maximum length of a script, in UTF-16 units. */
const MAX_CODE = 4 * 1024 * 1024
/** The maximum number of packages that accumulate; a script that exceeds it begins a new set. */
const MAX_LIBRARIES = 100

interface Opened {
  readonly sandglass: Sandglass
  readonly runner: ScriptRunner
  readonly ownDirectory: string | undefined
}

/** The engine of an executor, and the log of its scripts. */
interface Kind {
  readonly engine: 'local' | 'docker'
  readonly options: Pick<EngineOptions, 'local' | 'docker'>
  /** Options to use if the image of `options` is missing. */
  readonly fallback?: Pick<EngineOptions, 'docker'>
  readonly log?: LineLog | undefined
}

/** Runs scripts one after the other, each in a clean sandbox, with packages that accumulate. */
class PythonExecutor implements CodeToolExecutor {
  readonly availableDependencies: readonly string[]
  readonly #options: PythonExecutorOptions
  readonly #kind: Kind
  /** The installed requirements that models named. */
  #libraries: readonly string[] = []
  #opened: Promise<Opened> | undefined
  #last: Promise<unknown> = Promise.resolve()
  #disposed: Promise<void> | undefined

  constructor(options: PythonExecutorOptions, kind: Kind) {
    const { availableDependencies = [], transport = 'stdio' } = options
    if (transport !== 'stdio' && transport !== 'websocket')
      throw new TypeError(`transport: ${formatValue(transport)} is neither 'stdio' nor 'websocket'`)
    this.availableDependencies = [...availableDependencies]
    this.#options = options
    this.#kind = kind
  }

  workspaceFullPath(): string {
    return WORKSPACE
  }

  async inspect(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    { signal }: ExecuteOptions = {},
  ): Promise<Inspected> {
    const { runner } = await this.#open()
    const checked = await checkAnswer(runner.checkers, code, 'standard', {
      tools,
      keepsFiles: true,
      listTools: true,
      ...(signal && { signal }),
    })
    // Unknown modules are no mistake, because their packages are not installed yet.
    const mistakes = checked.violations.filter((violation) => violation.code !== 'unknown_module')
    if (mistakes.length > 0) return { problem: rejectionText(mistakes) }
    const named = await findDeclaredPackages(code)
    if ('problem' in named) return named
    const installed = pinnedOf(runner, await runner.environmentFor({ ...(signal && { signal }) }))
    const dependencies = [...new Set([...installed, ...this.#libraries, ...libraries, ...named.dependencies])]
    return findingsOf(checked, dependencies, prepareTools(tools))
  }

  async execute(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    toolInitCallback?: (bridge: ToolBridge) => void,
    { signal }: ExecuteOptions = {},
  ): Promise<string> {
    const run = this.#last.then(() => this.#execute(tools, code, libraries, toolInitCallback, signal))
    this.#last = run.catch(() => {})
    return run
  }

  async #execute(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    toolInitCallback: ((bridge: ToolBridge) => void) | undefined,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const { sandglass } = await this.#open()
    if (code.length > MAX_CODE)
      return `Error: the script was not run: it has ${code.length} characters, and at most ${MAX_CODE} are allowed`
    const names = [...prepareTools(tools).tools.keys()]
    const { limits, secrets, transport = 'stdio' } = this.#options
    const onEvent = (event: RunEvent): unknown => {
      if (event.type === 'started') toolInitCallback?.({ transport, tools: names })
      if (event.type === 'stdout' || event.type === 'stderr') this.#kind.log?.add(event.type, event.text)
      return this.#options.onEvent?.(event)
    }
    const options: RunOptions = {
      tools,
      toolTransport: transport,
      onEvent,
      ...(limits && { limits }),
      ...(secrets && { secrets }),
      ...(signal && { signal }),
    }
    try {
      const { dependencies: named = [] } = (await readScriptMetadata(code)) ?? {}
      const untrustedDependencies = await this.#install(sandglass, [...libraries, ...named], signal)
      return await this.#run(sandglass, code, options, untrustedDependencies)
    } catch (error) {
      const text = textOfFailure(error)
      if (text === undefined) throw error
      return text
    } finally {
      this.#kind.log?.end()
    }
  }

  async #run(
    sandglass: Sandglass,
    code: string,
    options: RunOptions,
    untrustedDependencies: readonly string[],
  ): Promise<string> {
    const { workspaceDir, limits, secrets = {}, transport } = this.#options
    // The host can reach the loopback interface of workspaces only.
    if (workspaceDir === undefined && transport !== 'websocket')
      return textOf(await sandglass.run(code, { ...options, untrustedDependencies }))
    const { signal } = options
    await using ws = await sandglass.workspace({
      untrustedDependencies,
      ...(limits && { limits }),
      ...(signal && { signal }),
    })
    if (workspaceDir === undefined) return textOf(await ws.run(code, options))
    const directory = resolve(workspaceDir)
    const copy = new WorkspaceCopy(directory)
    await copy.bring(ws)
    const result = await ws.run(code, options)
    try {
      await copy.takeBack(ws)
    } catch (error) {
      // The message may hold the path of the directory, and names that the script chose.
      const message = messageOf(error).replaceAll(`${directory}/`, '').replaceAll(directory, WORKSPACE)
      return `Error: not all files were copied back: ${new Redactor(secrets).text(message)}\n${textOf(result)}`
    }
    return textOf(result)
  }

  /**
   * Installs the missing packages. Packages that were installed stay, even if others fail.
   * @returns the requirements of the script and of earlier ones.
   * @throws FailedPackages, and SandglassError as `Sandglass.prepare` does.
   */
  async #install(
    sandglass: Sandglass,
    libraries: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> {
    const { valid, invalid } = separateInvalid(libraries)
    const all = [...new Set([...this.#libraries, ...valid])]
    let wanted: readonly string[] = all.length > MAX_LIBRARIES ? valid : all
    const failed = await this.#prepare(sandglass, wanted, signal).catch((error: unknown) => {
      // An earlier script named another version: this script begins a new set.
      const isConflict = error instanceof SandglassError && error.code === 'dependency_conflict'
      if (!isConflict || valid.length === wanted.length) throw error
      wanted = valid
      return this.#prepare(sandglass, valid, signal)
    })
    const missing = new Set(failed.map(({ requirement }) => requirement))
    this.#libraries = wanted.filter((text) => !missing.has(text))
    const problems = [...invalid, ...failed]
    if (problems.length > 0) throw new FailedPackages(failedText(problems, this.#libraries))
    return this.#libraries
  }

  async #prepare(
    sandglass: Sandglass,
    wanted: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<readonly FailedDependency[]> {
    if (wanted.length === 0) return []
    this.#kind.log?.note(`packages: ${wanted.join(', ')}`)
    const { failed } = await sandglass.prepare(wanted, { untrusted: true, partial: true, ...(signal && { signal }) })
    return failed
  }

  #open(): Promise<Opened> {
    if (this.#disposed !== undefined)
      throw new SandglassError('pool_closed', 'this executor was disposed of: create a new one')
    this.#opened ??= this.#make().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** The calls of tools that wait for approval, as `Sandglass.pending` has them. */
  async pending(): Promise<readonly PendingCall[]> {
    return (await this.#opened)?.sandglass.pending() ?? []
  }

  /** Approves a call, as `Sandglass.approve` does. */
  async approve(id: string, options?: ApproveOptions): Promise<void> {
    await (await this.#sandglassFor(id)).approve(id, options)
  }

  /** Denies a call, as `Sandglass.deny` does. */
  async deny(id: string, reason?: string, options?: Pick<ApproveOptions, 'by'>): Promise<void> {
    await (await this.#sandglassFor(id)).deny(id, reason, options)
  }

  /** The Sandglass that decides about a call. @throws SandglassError `approval_unknown` before the first script, when no call waits. */
  async #sandglassFor(id: string): Promise<Sandglass> {
    const opened = await this.#opened
    if (opened !== undefined) return opened.sandglass
    throw new SandglassError('approval_unknown', `no call waits for approval under the id ${formatValue(id)}`)
  }

  async #make(): Promise<Opened> {
    const { runtimeDir, environments, limits } = this.#options
    const { approveWrites, approvalTimeoutMs, onPending } = this.#options
    const { engine, options, fallback, log } = this.#kind
    const ownDirectory = runtimeDir === undefined ? await makeTemporaryCache() : undefined
    const open = (ofEngine: Kind['options']): ReturnType<typeof openSandglass> => {
      log?.note(
        `starting (${ofEngine.docker?.image === undefined ? 'default image' : `image ${ofEngine.docker.image}`})`,
      )
      return openSandglass({
        engine,
        ...ofEngine,
        ...(limits && { limits }),
        ...(approveWrites !== undefined && { approveWrites }),
        ...(approvalTimeoutMs !== undefined && { approvalTimeoutMs }),
        ...(onPending && { onPending }),
        dependencies: this.availableDependencies,
        environments: { ...environments, cacheDir: resolve(runtimeDir ?? ownDirectory ?? '') },
        poolSize: 1,
      })
    }
    try {
      const opened = await open(options).catch((error: unknown) => {
        const isMissing = error instanceof SandglassError && error.code === 'image_missing'
        if (!isMissing || fallback === undefined) throw error
        return open(fallback).catch(() => {
          throw error
        })
      })
      return { ...opened, ownDirectory }
    } catch (error) {
      if (ownDirectory !== undefined) await rm(ownDirectory, { recursive: true, force: true })
      throw error
    }
  }

  /**
   * Waits for the current script, or cancels it if one of its calls waits for approval. Then ends every sandbox, and removes the packages
   * unless `runtimeDir` was given.
   */
  [Symbol.asyncDispose](): Promise<void> {
    return (this.#disposed ??= this.#dispose())
  }

  async #dispose(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined)
    opened?.runner.approvals.cancelWaiting()
    await this.#last
    try {
      await opened?.sandglass.close()
    } finally {
      if (opened?.ownDirectory !== undefined) await rm(opened.ownDirectory, { recursive: true, force: true })
    }
  }
}

/** Runs scripts in bubblewrap, on the Python of this machine. */
export class LocalPythonExecutor extends PythonExecutor {
  /** @throws TypeError for an unknown option or transport. */
  constructor(options: LocalPythonExecutorOptions = {}) {
    refuseUnknown('LocalPythonExecutor', options, [...COMMON_OPTIONS, 'local'])
    super(options, { engine: 'local', options: options.local === undefined ? {} : { local: options.local } })
  }
}

/** Runs scripts in containers that are removed afterwards. */
export class DockerPythonExecutor extends PythonExecutor {
  /** @throws TypeError for an unknown option or transport. */
  constructor(options: DockerPythonExecutorOptions = {}) {
    refuseUnknown('DockerPythonExecutor', options, [
      ...COMMON_OPTIONS,
      'image',
      'docker',
      'streamContainerOutput',
      'log',
    ])
    const { image, docker = {}, streamContainerOutput = true, log = console.error } = options
    const lines = new LineLog('DockerPythonExecutor', 'script', log, streamContainerOutput)
    super(options, {
      engine: 'docker',
      options: { docker: { ...docker, image: image ?? DEFAULT_IMAGE } },
      // The engine has defaults of its own, such as an image that was built on this machine.
      ...(image === undefined && { fallback: { docker } }),
      log: lines,
    })
  }
}

/** Returns the packages that a script declares in its block `# /// script`, or the mistake in it for the model. */
async function findDeclaredPackages(
  code: string,
): Promise<{ readonly dependencies: readonly string[] } | { readonly problem: string }> {
  try {
    return (await readScriptMetadata(code)) ?? { dependencies: [] }
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'dependency_invalid') return { problem: error.message }
    throw error
  }
}

/** Reports packages that cannot be installed. The message is for the model. */
class FailedPackages extends Error {
  override readonly name = 'FailedPackages'
}

/** The text for the model about a mistake in its packages; undefined for any other failure. */
function textOfFailure(error: unknown): string | undefined {
  if (error instanceof FailedPackages) return error.message
  const isOfPackages = error instanceof SandglassError && /^(dependency|index)_/.test(error.code)
  return isOfPackages
    ? `Error: the script was not run, because its packages could not be installed: ${error.message}`
    : undefined
}

/**
 * Separates normalized requirements from texts that are not requirements.
 * @throws SandglassError `dependency_invalid` for too many.
 */
function separateInvalid(libraries: readonly string[]): {
  readonly valid: readonly string[]
  readonly invalid: readonly FailedDependency[]
} {
  assertMaxRequirements(libraries, 'packages')
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
  return { valid: [...new Set(valid)], invalid }
}
