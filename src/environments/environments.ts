import { randomBytes } from 'node:crypto'
import { mkdir, rm, statfs } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, SandglassError } from '../errors/index.ts'
import { EnvironmentCache, type EnvironmentLease, type EnvironmentRecord } from './cache.ts'
import { type Difference, findDifferences, inspectContent } from './content.ts'
import { indexSettings, withoutCredentials } from './index-settings.ts'
import { type InstallPlan, installLock, lockRequirements, makeWorkDirectory } from './installer.ts'
import { digestOf, type Lock, readLock } from './lock-file.ts'
import {
  type EnvironmentOptions,
  type InstallProgress,
  type LockedPackage,
  resolveEnvironmentOptions,
  type ResolvedEnvironmentOptions,
} from './options.ts'
import type { Requirement } from './requirement.ts'
import { platformOf, type PythonTarget } from './target.ts'
import { assertAllowed } from './trust.ts'
import { findUv } from './uv.ts'

/** Packages that sandboxes can import: the content of one read-only directory. */
export interface Environment {
  /** The digest of its content, which names it in the cache. */
  readonly key: string
  /** The directory to mount. */
  readonly path: string
  readonly target: PythonTarget
  /** Version by normal name (PEP 503). */
  readonly packages: Readonly<Record<string, string>>
  /** Top-level modules of its packages. */
  readonly modules: readonly string[]
  readonly bytes: number
}

/** A wish for an environment. */
export interface EnvironmentRequest {
  readonly requirements: readonly Requirement[]
  readonly target: PythonTarget
  /** True if a script named some of them: then `allow` and an age of seven days apply. */
  readonly fromScript?: boolean | undefined
  /** Packages that the host named itself, by normal name: `allow` is not asked for them. */
  readonly trusted?: ReadonlySet<string> | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: InstallProgress) => void) | undefined
}

/** An environment that is ready, and what it took. */
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

/** Incremented if what an environment holds changes for a reason that no requirement shows. */
const LAYOUT = 1
const SCRIPT_EXCLUDE_NEWER = '7 days'
/** An unpacked environment has at most this many times the bytes of its wheels, and at least this room. */
const MAX_RATIO = 20
const MIN_BYTES = 256 * 1024 * 1024
const EXPECTED_RATIO = 4

/**
 * Makes environments, each once, and keeps those in use. Everything that one instance handed out stays until `close`.
 */
export class Environments {
  readonly options: ResolvedEnvironmentOptions
  readonly #cache: EnvironmentCache
  /** Environments in use by this instance, by their keys. */
  readonly #leases = new Map<string, EnvironmentLease>()
  /** What each request led to. */
  readonly #found = new Map<string, Promise<Environment>>()

  /** @throws as {@link resolveEnvironmentOptions} does. */
  constructor(options: EnvironmentOptions = {}) {
    this.options = resolveEnvironmentOptions(options)
    this.#cache = new EnvironmentCache(this.options.cacheDir)
  }

  /**
   * Returns the environment with these packages, and installs it if the cache does not have it.
   * @throws SandglassError with a code of docs/errors.md that begins with `dependency_` or `index_`; `installer_missing`,
   * `cache_dir_unusable`, `no_space`; `aborted`.
   */
  async prepare(request: EnvironmentRequest): Promise<PreparedEnvironment> {
    const began = performance.now()
    const excludeNewer = this.options.excludeNewer ?? (request.fromScript === true ? SCRIPT_EXCLUDE_NEWER : undefined)
    const requestKey = this.#requestKey(request, excludeNewer)
    let cached = true
    const known = await this.#found.get(requestKey)?.catch(() => undefined)
    let environment = known !== undefined && existsSync(known.path) ? known : undefined
    if (environment === undefined) {
      const search = this.#find(request, requestKey, excludeNewer, () => (cached = false))
      this.#found.set(requestKey, search)
      search.catch(() => this.#found.delete(requestKey))
      environment = await search
    }
    this.#assertAllowed(packagesOf(environment), request)
    const { packages, bytes } = environment
    this.#reporterOf(request)({ phase: 'done', packages: Object.keys(packages).length, bytes, totalBytes: bytes })
    return { environment, cached, ms: performance.now() - began }
  }

  /** The Python of an engine's sandboxes as it was the last time; undefined if it was never seen. */
  async recallTarget(engineId: string): Promise<PythonTarget | undefined> {
    return this.#cache.findTarget(engineId)
  }

  /** Keeps the Python of an engine's sandboxes for {@link recallTarget}. */
  async rememberTarget(engineId: string, target: PythonTarget): Promise<void> {
    this.#open()
    await this.#cache.saveTarget(engineId, target)
  }

  /** Every environment of the cache, the one used last at the end. */
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

  /** Removes an environment from the cache; false if it is in use or not there. */
  async remove(key: string): Promise<boolean> {
    this.#open()
    return this.#cache.remove(key)
  }

  /** Removes every environment that nobody uses. Returns their keys. */
  async prune(): Promise<readonly string[]> {
    this.#open()
    return this.#cache.evict({ maxBytes: -1, maxAgeDays: this.options.maxAgeDays })
  }

  /** Files of an environment that differ from what its wheels brought; undefined if there is no such environment. */
  async verify(key: string): Promise<readonly Difference[] | undefined> {
    this.#open()
    const lease = await this.#cache.lease(key)
    try {
      return lease === undefined ? undefined : await findDifferences(lease.path, lease.record.manifest)
    } finally {
      lease?.release()
    }
  }

  /** Resolves the requirements of an environment anew; undefined if there is no such environment. */
  async update(
    key: string,
    given: Omit<EnvironmentRequest, 'requirements' | 'target'>,
  ): Promise<PreparedEnvironment | undefined> {
    this.#open()
    const lease = await this.#cache.lease(key)
    if (lease === undefined) return undefined
    const { requirements, target } = lease.record
    lease.release()
    await this.#cache.forgetRequests(key)
    return this.prepare({ ...given, target, requirements: requirements.map((text) => ({ text, name: text })) })
  }

  /** Gives back what was in use. */
  close(): void {
    for (const lease of this.#leases.values()) lease.release()
    this.#leases.clear()
    this.#found.clear()
  }

  #assertAllowed(packages: readonly LockedPackage[], { fromScript, trusted }: EnvironmentRequest): void {
    if (fromScript !== true) return
    assertAllowed(
      packages.filter(({ name }) => trusted?.has(name) !== true),
      this.options.allow,
    )
  }

  #reporterOf({ onProgress }: EnvironmentRequest): (progress: InstallProgress) => void {
    return (progress) => {
      this.options.onProgress?.(progress)
      onProgress?.(progress)
    }
  }

  #requestKey({ requirements, target }: EnvironmentRequest, excludeNewer: string | undefined): string {
    const { digest } = indexSettings(this.options)
    const texts = requirements.map(({ text }) => text).toSorted()
    return digestOf([LAYOUT, target, texts, digest, excludeNewer ?? null], 32)
  }

  #open(): void {
    this.#cache.open()
  }

  async #find(
    request: EnvironmentRequest,
    requestKey: string,
    excludeNewer: string | undefined,
    onBuild: () => void,
  ): Promise<Environment> {
    this.#open()
    const resolved = await this.#cache.findRequest(requestKey)
    const ready = resolved === undefined ? undefined : await this.#lease(resolved.key)
    if (ready !== undefined) return ready
    onBuild()
    return this.#build(request, requestKey, excludeNewer)
  }

  async #lease(key: string): Promise<Environment | undefined> {
    const held = this.#leases.get(key)
    if (held !== undefined && existsSync(held.path)) return environmentOf(held)
    const lease = await this.#cache.lease(key)
    if (lease === undefined) return undefined
    held?.release()
    this.#leases.set(key, lease)
    return environmentOf(lease)
  }

  async #build(
    request: EnvironmentRequest,
    requestKey: string,
    excludeNewer: string | undefined,
  ): Promise<Environment> {
    const { options } = this
    const limit = AbortSignal.timeout(options.timeoutMs)
    const signal = request.signal === undefined ? limit : AbortSignal.any([request.signal, limit])
    try {
      const index = indexSettings(options)
      const uv = await findUv({ ...options, index }, signal)
      const requirements = request.requirements.map(({ text }) => text)
      const plan: InstallPlan = { ...options, uv, index, target: request.target, requirements, excludeNewer, signal }
      const only = await this.#cache.lockBuild(requestKey, signal)
      const downloads = await this.#cache.useDownloads()
      let isDone = false
      try {
        const again = await this.#cache.findRequest(requestKey)
        const found = again === undefined ? undefined : await this.#lease(again.key)
        const made = found ?? (await this.#install(plan, request, requestKey, again?.lock))
        isDone = true
        void this.#cache.evict(this.options).catch(() => undefined) // the next build tries again
        return made
      } finally {
        downloads.release()
        if (!isDone) await this.#cache.cleanDownloads({ all: false })
        only.release()
      }
    } catch (error) {
      if (request.signal?.aborted === true) throw aborted(request.signal)
      if (limit.aborted) {
        throw new SandglassError(
          'index_unreachable',
          `the packages were not installed within ${options.timeoutMs} ms (environments.timeoutMs): the index ` +
            `${withoutCredentials(indexSettings(options).base)} answers too slowly`,
          { cause: error },
        )
      }
      throw this.#cache.explain(error)
    }
  }

  /** @param known the lock of an environment that was removed since. */
  async #install(
    plan: InstallPlan,
    request: EnvironmentRequest,
    requestKey: string,
    known: string | undefined,
  ): Promise<Environment> {
    const onProgress = this.#reporterOf(request)
    const work = await makeWorkDirectory(this.#cache.root, plan.target)
    try {
      onProgress({ phase: 'resolve', packages: 0, bytes: 0, totalBytes: 0 })
      const lock = known === undefined ? await lockRequirements(plan, work) : await readLock(known)
      // Before anything is downloaded.
      this.#assertAllowed(lock.packages, request)
      const key = contentKey(lock, plan.target)
      const only = await this.#cache.lockBuild(key, plan.signal)
      try {
        const ready = await this.#lease(key)
        if (ready === undefined) await this.#fill(plan, key, lock, work, only.fd, onProgress)
      } finally {
        only.release()
      }
      await this.#cache.saveRequest(requestKey, { key, requirements: plan.requirements, lock: lock.text })
      const made = await this.#lease(key)
      if (made === undefined) throw new Error(`the environment ${key} was removed while it was made`)
      return made
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  }

  async #fill(
    plan: InstallPlan,
    key: string,
    lock: Lock,
    work: string,
    heldLock: number,
    onProgress: (progress: InstallProgress) => void,
  ): Promise<void> {
    const { downloadBytes: totalBytes, packages } = lock
    const report = (bytes: number): void =>
      onProgress({ phase: 'download', packages: packages.length, bytes: Math.min(bytes, totalBytes), totalBytes })
    report(0)
    await this.#assertRoom(totalBytes)
    const building = `${work}.new`
    try {
      await mkdir(building, { mode: 0o755 })
      const directory = `packages-${randomBytes(4).toString('hex')}`
      const target = join(building, directory)
      await mkdir(target)
      await installLock({ ...plan, onDownloaded: report }, work, lock, target, [heldLock])
      const content = await inspectContent(target)
      if (content.bytes > Math.max(MIN_BYTES, MAX_RATIO * totalBytes)) {
        throw new SandglassError(
          'dependency_invalid',
          `the packages unpack to ${content.bytes} bytes, ${MAX_RATIO} times their wheels and more, as an archive bomb does`,
        )
      }
      const record: EnvironmentRecord = {
        key,
        directory,
        target: plan.target,
        requirements: plan.requirements,
        packages: Object.fromEntries(packages.map(({ name, version }) => [name, version])),
        created: new Date().toISOString(),
        ...content,
      }
      await this.#cache.publish(key, building, record, lock.text)
    } finally {
      await rm(building, { recursive: true, force: true })
    }
  }

  async #assertRoom(downloadBytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(this.#cache.root)
    const wanted = downloadBytes * EXPECTED_RATIO
    if (bavail * bsize >= wanted) return
    throw new SandglassError(
      'no_space',
      `the package cache ${this.#cache.root} has ${bavail * bsize} bytes free, and the packages need about ${wanted}: free ` +
        'some, or name another directory with environments.cacheDir',
    )
  }
}

function environmentOf({ record, path }: EnvironmentLease): Environment {
  const { key, target, packages, modules, bytes } = record
  return { key, path, target, packages, modules, bytes }
}

function packagesOf({ packages }: Environment): { name: string; version: string }[] {
  return Object.entries(packages).map(([name, version]) => ({ name, version }))
}

/** Equal wheels for an equal Python are one environment, whatever was asked for. */
function contentKey(lock: Lock, target: PythonTarget): string {
  const python = target.python.split('.').slice(0, 2).join('.')
  return digestOf([LAYOUT, python, target.abi, platformOf(target), lock.packages.map(({ hashes }) => hashes)], 20)
}

function aborted(signal: AbortSignal): SandglassError {
  return new SandglassError('aborted', `aborted while packages were installed: ${messageOf(signal.reason)}`, {
    cause: signal.reason,
  })
}
