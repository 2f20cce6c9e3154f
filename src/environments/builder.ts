import { randomBytes } from 'node:crypto'
import { mkdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, SandglassError } from '../errors/index.ts'
import type { FileLock } from '../support/index.ts'
import type { EnvironmentCache } from './cache.ts'
import { type Content, tidyContent } from './content.ts'
import { type Declaration, declarationOf, LAYOUT, requestKeyOf } from './declaration.ts'
import { indexSettings, withoutCredentials } from './index-settings.ts'
import {
  EXPECTED_RATIO,
  type Installation,
  type InstallPlan,
  lockRequirements,
  makeWorkDirectory,
  maxUnpacked,
  startInstallation,
} from './installer.ts'
import { digestOf, type Lock, readLock } from './lock-file.ts'
import { TOO_LARGE } from './explain.ts'
import type { InstallProgress, LockedPackage, ResolvedEnvironmentOptions } from './options.ts'
import type { Requirement } from './requirement.ts'
import { platformOf, type PythonTarget } from './target.ts'
import { assertNoneRefused, refusedNames, refusedOf } from './trust.ts'
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

/** A request for an environment. */
export interface EnvironmentRequest {
  readonly requirements: readonly Requirement[]
  readonly target: PythonTarget
  /** True if a script named some of them: then `allow` and an age of seven days apply. */
  readonly fromScript?: boolean | undefined
  /**
   * The requirements that the host named itself. `allow` does not apply to the packages to which they resolve without the
   * requirements of the script.
   */
  readonly host?: readonly Requirement[] | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: InstallProgress) => void) | undefined
}

/** Leases an environment of the cache, with its lock if the caller has it; undefined if the cache does not have it. */
type Lease = (key: string, useLock?: FileLock) => Promise<Environment | undefined>

/** Makes environments that the cache does not have. */
export class Builder {
  readonly #options: ResolvedEnvironmentOptions
  readonly #cache: EnvironmentCache
  readonly #lease: Lease
  /** The versions (by name) of the host's requirements, by the key of their request. A host names few sets. */
  readonly #hostVersions = new Map<string, ReadonlyMap<string, string>>()

  constructor(options: ResolvedEnvironmentOptions, cache: EnvironmentCache, lease: Lease) {
    this.#options = options
    this.#cache = cache
    this.#lease = lease
  }

  /**
   * Resolves and installs the requirements, once for all processes.
   * @param options.isUpdate ignores the recorded resolution; it stays if the update fails.
   */
  async build(
    request: EnvironmentRequest,
    { isUpdate = false }: { readonly isUpdate?: boolean } = {},
  ): Promise<Environment> {
    await this.#assertNamesAllowed(request)
    const declaration = declarationOf(this.#options, request)
    const requestKey = requestKeyOf(declaration, this.#options)
    const work = async (plan: InstallPlan): Promise<Environment> => {
      const resolved = isUpdate ? undefined : await this.#cache.findRequest(requestKey)
      const found = resolved === undefined ? undefined : await this.#lease(resolved.key)
      return found ?? this.#install({ ...plan, isUpdate }, request, requestKey, declaration, resolved?.lock)
    }
    const made = await this.#withInstaller(declaration, request.signal, requestKey, work, this.reporterOf(request))
    void this.#cache.evict(this.#options).catch(() => undefined) // the next build tries again
    return made
  }

  /**
   * Runs work that needs uv, with the time limit, and explains its errors.
   * @param build the key of the build lock to hold; undefined for none.
   */
  async #withInstaller<T>(
    { target, requirements, excludeNewer }: Declaration,
    given: AbortSignal | undefined,
    build: string | undefined,
    work: (plan: InstallPlan) => Promise<T>,
    onProgress?: (progress: InstallProgress) => void,
  ): Promise<T> {
    const options = this.#options
    const limit = AbortSignal.timeout(options.timeoutMs)
    const stop = new AbortController()
    const signal = AbortSignal.any([limit, stop.signal, ...(given === undefined ? [] : [given])])
    try {
      const index = indexSettings(options)
      // A killed installation leaves its files behind.
      await this.#cache.cleanDownloads({ all: false })
      const locks = [
        this.#cache.useDownloads(signal),
        ...(build === undefined ? [] : [this.#cache.lockBuild(build, signal)]),
      ]
      let failure: unknown
      try {
        const finding = findUv({ ...options, index }, signal, () =>
          onProgress?.({ phase: 'installer', packages: 0, bytes: 0, totalBytes: 0 }),
        )
        const [uv, ...held] = await Promise.all([finding, ...locks])
        const heldLocks = held.map(({ fd }) => fd)
        return await work({ ...options, uv, index, target, requirements, excludeNewer, signal, heldLocks })
      } catch (error) {
        failure = error
        throw error
      } finally {
        stop.abort() // stops waiting for a lock
        await Promise.allSettled(locks.map(async (lock) => (await lock).release()))
        // Files that were unpacked from an invalid package must not be used again.
        const isInvalid = failure instanceof SandglassError && failure.code === 'dependency_invalid'
        if (failure !== undefined) await this.#cache.cleanDownloads({ all: isInvalid })
      }
    } catch (error) {
      if (given?.aborted === true) throw abortedBy(given)
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

  /** @param known the recorded lock, if its environment was removed. */
  async #install(
    plan: InstallPlan,
    request: EnvironmentRequest,
    requestKey: string,
    declaration: Declaration,
    known: string | undefined,
  ): Promise<Environment> {
    const onProgress = this.reporterOf(request)
    const work = await makeWorkDirectory(this.#cache.root, plan.target)
    const building = `${work.path}.new`
    const directory = `packages-${randomBytes(4).toString('hex')}`
    try {
      onProgress({ phase: 'resolve', packages: 0, bytes: 0, totalBytes: 0 })
      const locking = known === undefined ? lockRequirements(plan, work) : readLock(known)
      // Its sandbox starts while versions are chosen.
      await using installation = startInstallation(plan, work, join(building, directory))
      const lock = await locking
      // Before anything is downloaded.
      await this.assertAllowed(lock.packages, request)
      const key = contentKey(lock, plan.target)
      let made = await this.#lease(key)
      if (made === undefined) {
        const use = this.#cache.lockUse(key) // runs during the installation, because a lock starts a process
        try {
          const content = await this.#installInto(plan, installation, lock, join(building, directory), onProgress)
          const packages = Object.fromEntries(lock.packages.map(({ name, version }) => [name, version]))
          const created = new Date().toISOString()
          const record = { key, directory, target: plan.target, declaration, packages, created, ...content }
          // Another request may have resolved to the same packages meanwhile: the first environment is kept.
          await this.#cache.publish(key, building, record, lock.text)
        } catch (error) {
          await use.then((useLock) => useLock.release()).catch(() => {})
          throw error
        }
        made = await this.#lease(key, await use)
      }
      await this.#cache.saveRequest(requestKey, { key, declaration, lock: lock.text })
      if (made === undefined) throw this.#cache.unusableError(new Error(`${key} was removed while it was made`))
      return made
    } finally {
      await Promise.all([work.path, building].map((path) => rm(path, { recursive: true, force: true })))
    }
  }

  /** Installs the packages of a lock into a new directory. */
  async #installInto(
    plan: InstallPlan,
    installation: Installation,
    lock: Lock,
    target: string,
    onProgress: (progress: InstallProgress) => void,
  ): Promise<Content> {
    const { downloadBytes: totalBytes, packages } = lock
    const report = (bytes: number): void =>
      onProgress({ phase: 'download', packages: packages.length, bytes: Math.min(bytes, totalBytes), totalBytes })
    report(0)
    await Promise.all([this.#assertRoom(totalBytes), mkdir(target, { recursive: true, mode: 0o755 })])
    await installation.install(lock, report)
    const content = await tidyContent(target)
    if (content.bytes > maxUnpacked(lock, plan.maxBytes)) throw new SandglassError('dependency_invalid', TOO_LARGE)
    return content
  }

  async #assertRoom(downloadBytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(this.#cache.root)
    const wanted = downloadBytes * EXPECTED_RATIO
    if (bavail * bsize >= wanted) return
    throw new SandglassError(
      'no_space',
      `the package cache ${this.#cache.root} has ${bavail * bsize} bytes free, and the packages need about ${wanted}: free some ` +
        'space, or name another directory with environments.cacheDir',
    )
  }
  /**
   * The requirements that cannot be met even on their own, each with its error. Nothing is installed.
   * @throws SandglassError when uv or the index fails, `aborted`.
   */
  async findFailing(request: EnvironmentRequest): Promise<ReadonlyMap<string, SandglassError>> {
    const failing = new Map<string, SandglassError>()
    for (const one of request.requirements) {
      const { text } = one
      try {
        await this.#assertNamesAllowed({ ...request, requirements: [one] })
        const declaration = { ...declarationOf(this.#options, request), requirements: [text] }
        const lock = await this.#resolve(declaration, request.signal)
        await this.assertAllowed(lock.packages, { ...request, requirements: [one] })
      } catch (error) {
        if (!(error instanceof SandglassError && error.code.startsWith('dependency_'))) throw error
        failing.set(text, error)
      }
    }
    return failing
  }

  /** Called before a request to the index, so that refused names never reach it. @throws SandglassError as {@link assertAllowed} does. */
  async #assertNamesAllowed(request: EnvironmentRequest): Promise<void> {
    if (request.fromScript !== true) return
    const { host = [], requirements } = request
    const named = new Set(host.map(({ text }) => text))
    const fromScript = requirements.filter(({ text }) => !named.has(text))
    const { allow } = this.#options
    const names = fromScript.map(({ name }) => name)
    const refused = refusedNames(names, allow)
    if (refused.length === 0) return
    const trusted = await this.#versionsOfHost(request)
    assertNoneRefused(
      refused.filter(({ name }) => trusted !== 'all' && !trusted.has(name)),
      allow,
    )
  }

  /** @throws SandglassError `dependency_not_allowed`; as {@link build} does if the host's requirements must be resolved. */
  async assertAllowed(packages: readonly LockedPackage[], request: EnvironmentRequest): Promise<void> {
    if (request.fromScript !== true) return
    const { allow } = this.#options
    const refused = refusedOf(packages, allow)
    if (refused.length === 0) return
    const trusted = await this.#versionsOfHost(request)
    assertNoneRefused(
      refused.filter(({ name, version }) => trusted !== 'all' && trusted.get(name) !== version),
      allow,
    )
  }

  /** The versions of the host's requirements alone, without those of the script, under the same age limit. */
  async #versionsOfHost(request: EnvironmentRequest): Promise<ReadonlyMap<string, string> | 'all'> {
    const { host = [], requirements, target, signal } = request
    if (host.length === 0) return new Map()
    const named = new Set(host.map(({ text }) => text))
    if (requirements.every(({ text }) => named.has(text))) return 'all'
    const { excludeNewer } = declarationOf(this.#options, request)
    const declaration = { ...declarationOf(this.#options, { requirements: host, target }), excludeNewer }
    const requestKey = requestKeyOf(declaration, this.#options)
    const cached = this.#hostVersions.get(requestKey)
    if (cached !== undefined) return cached
    const resolved = await this.#cache.findRequest(requestKey)
    const lock = resolved === undefined ? await this.#resolve(declaration, signal) : await readLock(resolved.lock)
    if (resolved === undefined) {
      await this.#cache.saveRequest(requestKey, { key: contentKey(lock, target), declaration, lock: lock.text })
    }
    const versions = new Map(lock.packages.map(({ name, version }) => [name, version]))
    this.#hostVersions.set(requestKey, versions)
    return versions
  }

  /** Chooses versions, and installs nothing. */
  async #resolve(declaration: Declaration, signal: AbortSignal | undefined): Promise<Lock> {
    return this.#withInstaller(declaration, signal, undefined, async (plan) => {
      const work = await makeWorkDirectory(this.#cache.root, plan.target)
      try {
        return await lockRequirements(plan, work)
      } finally {
        await rm(work.path, { recursive: true, force: true })
      }
    })
  }

  reporterOf({ onProgress }: EnvironmentRequest): (progress: InstallProgress) => void {
    return (progress) => {
      this.#options.onProgress?.(progress)
      onProgress?.(progress)
    }
  }
}

/** Equal wheels for an equal Python are one environment, whatever the request was. */
function contentKey(lock: Lock, target: PythonTarget): string {
  const python = target.python.split('.').slice(0, 2).join('.')
  return digestOf([LAYOUT, python, target.abi, platformOf(target), lock.packages.map(({ hashes }) => hashes)], 20)
}

/** The error of a call that its caller aborted. */
export function abortedBy(signal: AbortSignal): SandglassError {
  return new SandglassError('aborted', `aborted while packages were installed: ${messageOf(signal.reason)}`, {
    cause: signal.reason,
  })
}
