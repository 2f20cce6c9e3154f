import { existsSync } from 'node:fs'
import type { SandglassError } from '../errors/index.ts'
import type { FileLock } from '../support/index.ts'
import { abortedBy, Builder, type Environment, type EnvironmentRequest } from './builder.ts'
import { addedFiles } from './byte-code.ts'
import { EnvironmentCache, type EnvironmentLease } from './cache.ts'
import { type Difference, findDifferences } from './content.ts'
import { type Declaration, declarationOf, optionsOf, requestKeyOf } from './declaration.ts'
import { type EnvironmentOptions, resolveEnvironmentOptions, type ResolvedEnvironmentOptions } from './options.ts'
import { parseRequirements } from './requirement.ts'
import type { PythonTarget } from './target.ts'

/** An environment that is ready, and how it was prepared. */
export interface PreparedEnvironment {
  readonly environment: Environment
  /** True if it was in the cache. */
  readonly cached: boolean
  readonly ms: number
}

/** An environment of the cache, for people. */
export interface EnvironmentSummary {
  readonly key: string
  readonly python: string
  readonly packages: Readonly<Record<string, string>>
  readonly bytes: number
  readonly lastUsed: Date
  readonly inUse: boolean
}

/** The number of most recently requested environments that are kept even if unused: their sandbox may not have started yet. */
const MAX_UNUSED = 32
/** Maximum number of requests whose environments are held in memory. */
const MAX_REQUESTS = 1000

/**
 * Makes environments, each once. Environments that an instance handed out stay until `close`, or until `releaseUnused`
 * releases them.
 */
export class Environments {
  readonly options: ResolvedEnvironmentOptions
  readonly #cache: EnvironmentCache
  readonly #builder: Builder
  /** Environments in use by this instance, by their keys, the least recently requested first. */
  readonly #leases = new Map<string, EnvironmentLease>()
  /** The environment of each request, by the key of the request. */
  readonly #environments = new Map<string, Promise<Environment>>()

  /** @throws as {@link resolveEnvironmentOptions} does. */
  constructor(options: EnvironmentOptions = {}) {
    this.options = resolveEnvironmentOptions(options)
    this.#cache = new EnvironmentCache(this.options.cacheDir)
    this.#builder = new Builder(this.options, this.#cache, (key, useLock) => this.#lease(key, useLock))
  }

  /**
   * Returns the environment with these packages, and installs it if the cache does not have it.
   * @throws SandglassError with a code of docs/errors.md that begins with `dependency_` or `index_`; `installer_missing`,
   * `cache_dir_unusable`, `no_space`; `aborted`.
   */
  async prepare(request: EnvironmentRequest): Promise<PreparedEnvironment> {
    const began = performance.now()
    const requestKey = requestKeyOf(declarationOf(this.options, request), this.options)
    let cached = true
    const known = await waitOrAbort(
      request.signal,
      this.#environments.get(requestKey)?.catch(() => undefined),
    )
    let environment = known !== undefined && this.#refreshLease(known) ? known : undefined
    if (environment === undefined) {
      const search = this.#find(request, requestKey, () => (cached = false))
      this.#environments.set(requestKey, search)
      const [oldest = ''] = this.#environments.keys()
      if (this.#environments.size > MAX_REQUESTS) this.#environments.delete(oldest)
      search.catch(() => this.#environments.delete(requestKey))
      environment = await search
    }
    await this.#builder.assertAllowed(packagesOf(environment), request)
    reportDone(this.#builder, environment, request)
    return { environment, cached, ms: performance.now() - began }
  }

  /** The last known Python of an engine's sandboxes; undefined if it was never seen. */
  async recallTarget(engineId: string): Promise<PythonTarget | undefined> {
    return this.#cache.findTarget(engineId)
  }

  /** Keeps the Python of an engine's sandboxes for {@link recallTarget}. */
  async rememberTarget(engineId: string, target: PythonTarget): Promise<void> {
    this.#open()
    await this.#cache.saveTarget(engineId, target)
  }

  /** Every environment of the cache, the least recently used first. */
  async list(): Promise<readonly EnvironmentSummary[]> {
    this.#open()
    return (await this.#cache.list()).map(({ record, lastUsed, inUse }) => ({
      key: record.key,
      python: record.target.python,
      packages: record.packages,
      bytes: record.bytes,
      lastUsed,
      inUse,
    }))
  }

  /**
   * Removes an environment from the cache. Also clears the download cache; otherwise the files would stay there and keep their
   * disk space. False if the environment is in use or does not exist.
   */
  async remove(key: string): Promise<boolean> {
    this.#open()
    const isRemoved = await this.#cache.remove(key)
    if (isRemoved) await this.#cache.cleanDownloads({ all: true })
    return isRemoved
  }

  /** Bytes of downloads that no environment shares. */
  async downloadBytes(): Promise<number> {
    this.#open()
    return this.#cache.downloadBytes()
  }

  /** Removes every environment that nobody uses, and all downloads. Returns the keys of the environments. */
  async prune(): Promise<readonly string[]> {
    this.#open()
    return this.#cache.evict({ maxBytes: -1, maxAgeDays: this.options.maxAgeDays })
  }

  /** Files of an environment that differ from those of its wheels; undefined if there is no such environment. */
  async verify(key: string): Promise<readonly Difference[] | undefined> {
    this.#open()
    const lease = await this.#cache.lease(key)
    try {
      return lease === undefined
        ? undefined
        : await findDifferences(lease.path, lease.record.manifest, await addedFiles(lease.path))
    } finally {
      lease?.release()
    }
  }

  /**
   * Resolves again the requests that led to an environment, with their settings. A request that fails keeps its resolution.
   * @returns the resulting environments; undefined if the cache does not have the given one.
   * @throws SandglassError as {@link prepare} does: the first error, after all requests were tried.
   */
  async update(
    key: string,
    given: Pick<EnvironmentRequest, 'signal' | 'onProgress'>,
  ): Promise<readonly PreparedEnvironment[] | undefined> {
    this.#open()
    const lease = await this.#cache.lease(key)
    if (lease === undefined) return undefined
    lease.release()
    const updated = new Map<string, PreparedEnvironment>()
    const failures: unknown[] = []
    for (const declaration of await this.#cache.declarationsOf(key)) {
      try {
        const began = performance.now()
        const environment = await this.#renew(declaration, given)
        const ms = performance.now() - began
        updated.set(environment.key, { environment, cached: environment.key === key, ms })
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    return [...updated.values()]
  }

  async #renew(
    declaration: Declaration,
    given: Pick<EnvironmentRequest, 'signal' | 'onProgress'>,
  ): Promise<Environment> {
    const { target, fromScript } = declaration
    const requirements = parseRequirements(declaration.requirements)
    const request = { ...given, target, requirements, fromScript, host: parseRequirements(declaration.host) }
    const builder = new Builder(optionsOf(declaration, this.options), this.#cache, (key, useLock) =>
      this.#lease(key, useLock),
    )
    const environment = await builder.build(request, { isUpdate: true })
    reportDone(builder, environment, request)
    return environment
  }

  /**
   * The requirements that cannot be met even on their own, each with its error. Nothing is installed.
   * @throws SandglassError when uv or the index fails, `aborted`.
   */
  async findFailing(request: EnvironmentRequest): Promise<ReadonlyMap<string, SandglassError>> {
    this.#open()
    return this.#builder.findFailing(request)
  }

  /** Releases unused environments, except the most recently requested ones. They may then be removed. */
  releaseUnused(isUsed: (path: string) => boolean): void {
    for (const [key, lease] of [...this.#leases].slice(0, -MAX_UNUSED)) {
      if (isUsed(lease.path)) continue
      lease.release()
      this.#leases.delete(key)
    }
  }

  /** Releases all environments. */
  close(): void {
    for (const lease of this.#leases.values()) lease.release()
    this.#leases.clear()
    this.#environments.clear()
  }

  /** Makes an environment the most recently requested one. Returns false if it has no lease or its directory was removed. */
  #refreshLease({ key, path }: Environment): boolean {
    const lease = this.#leases.get(key)
    if (lease?.path !== path || !existsSync(path)) return false
    this.#leases.delete(key)
    this.#leases.set(key, lease)
    return true
  }

  #open(): void {
    this.#cache.open()
  }

  async #find(request: EnvironmentRequest, requestKey: string, onBuild: () => void): Promise<Environment> {
    this.#open()
    const resolved = await this.#cache.findRequest(requestKey)
    const ready = resolved === undefined ? undefined : await this.#lease(resolved.key)
    if (ready !== undefined) return ready
    onBuild()
    return this.#builder.build(request)
  }

  async #lease(key: string, useLock?: FileLock): Promise<Environment | undefined> {
    const held = this.#leases.get(key)
    if (held !== undefined && this.#refreshLease(environmentOf(held))) {
      useLock?.release()
      return environmentOf(held)
    }
    const lease = await this.#cache.lease(key, useLock)
    if (lease === undefined) return undefined
    // Two concurrent requests can lease the same environment.
    this.#leases.get(key)?.release()
    this.#leases.delete(key)
    this.#leases.set(key, lease)
    return environmentOf(lease)
  }
}

/** Waits for the work of another caller, at most until the signal is aborted. @throws SandglassError `aborted` */
async function waitOrAbort<T>(signal: AbortSignal | undefined, work: Promise<T> | undefined): Promise<T | undefined> {
  if (signal === undefined || work === undefined) return work
  if (signal.aborted) throw abortedBy(signal)
  const stop = Promise.withResolvers<never>()
  const onAbort = (): void => stop.reject(abortedBy(signal))
  signal.addEventListener('abort', onAbort)
  try {
    return await Promise.race([work, stop.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function environmentOf({ record, path }: EnvironmentLease): Environment {
  const { key, target, packages, modules, bytes } = record
  return { key, path, target, packages, modules, bytes }
}

function reportDone(builder: Builder, { packages, bytes }: Environment, request: EnvironmentRequest): void {
  const { length } = Object.keys(packages)
  builder.reporterOf(request)({ phase: 'done', packages: length, bytes, totalBytes: bytes })
}

function packagesOf({ packages }: Environment): { name: string; version: string }[] {
  return Object.entries(packages).map(([name, version]) => ({ name, version }))
}
