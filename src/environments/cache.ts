import { randomUUID } from 'node:crypto'
import { existsSync, lstatSync, statSync } from 'node:fs'
import { lstat, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { awaitLock, type FileLock, makeDirectory, tryLock } from '../support/index.ts'
import { filesBelow, SLICE } from './content.ts'
import { type Declaration, isDeclaration } from './declaration.ts'
import { namesIn, readJson, writeJson } from './json-file.ts'
import { digestOf } from './lock-file.ts'
import { Resolutions, type ResolvedRequest } from './resolutions.ts'
import { isTarget, type PythonTarget } from './target.ts'

/** The facts of an environment; stored next to its packages. */
export interface EnvironmentRecord {
  readonly key: string
  readonly target: PythonTarget
  /** The declaration for which it was first made. */
  readonly declaration: Declaration
  /** Version by normal name. */
  readonly packages: Readonly<Record<string, string>>
  /** Top-level modules that scripts can import, in order. */
  readonly modules: readonly string[]
  readonly bytes: number
  /** A digest of the wheels' `RECORD` files; `verify` checks it first. */
  readonly manifest: string
  /** The directory of the packages. Each build gets a new one, so that no sandbox of an earlier build is reused. */
  readonly directory: string
  /** The time at which it was made, as an ISO date. */
  readonly created: string
}

/** An environment in the cache that cannot be removed before its release. */
export interface EnvironmentLease {
  readonly record: EnvironmentRecord
  /** The directory to mount. */
  readonly path: string
  release(): void
}

/** An environment as `list` shows it. */
export interface ListedEnvironment {
  readonly record: EnvironmentRecord
  readonly lastUsed: Date
  readonly inUse: boolean
}

/** Directories below the root that are read-only for uv. Only Sandglass writes to them. */
export const READ_ONLY: readonly string[] = ['bin', 'environments', 'locks', 'requests', 'targets']
const KEY = /^[0-9a-f]{20}$/
const DIRECTORY = /^packages-[0-9a-f]{8}$/
const DAY_MS = 86_400_000
/** An older temporary file was abandoned: its writer died before it renamed the file. */
const ABANDONED_MS = 60_000
/** The shortest time between two updates of the time of last use. */
const MIN_TOUCH_MS = 60_000

/**
 * The directory of environments, by the digest of their content. Many processes may use it at once: a build holds
 * an exclusive lock, a user a shared one, and both end with their process.
 */
export class EnvironmentCache {
  readonly root: string
  readonly #resolutions: Resolutions

  constructor(root: string) {
    this.root = root
    this.#resolutions = new Resolutions(join(root, 'requests'), join(root, 'work'))
  }

  /**
   * Makes the directories that are missing.
   * @throws SandglassError `cache_dir_unusable` or `no_space`, naming the directory.
   */
  open(): void {
    try {
      for (const name of ['', ...READ_ONLY, 'uv', 'work']) {
        const path = join(this.root, name)
        makeDirectory(path, { own: name === '' || name === 'environments' ? 0o755 : 0o700, above: 0o755 })
      }
      const { uid, mode } = statSync(this.root)
      const own = process.getuid?.()
      if (own !== undefined && uid !== own) throw new Error(`it belongs to uid ${uid}, not to uid ${own}`)
      if ((mode & 0o022) !== 0)
        throw new Error('other users can write to it (if all its files are yours, run chmod go-w)')
    } catch (error) {
      throw this.unusableError(error)
    }
  }

  // ── requests ───────────────────────────────────────────────────────────────────────────────────────────────────

  async findRequest(requestKey: string): Promise<ResolvedRequest | undefined> {
    const found = await this.#resolutions.find(requestKey)
    return found !== undefined && KEY.test(found.key) ? found : undefined
  }

  async saveRequest(requestKey: string, request: ResolvedRequest): Promise<void> {
    await this.#explainErrors(this.#resolutions.save(requestKey, request))
  }

  /** The requests that led to an environment: one or several. */
  async declarationsOf(key: string): Promise<readonly Declaration[]> {
    const asked = await this.#resolutions.requestsFor(key)
    if (asked.length > 0 || !KEY.test(key)) return asked
    const record = await this.#readRecord(key)
    return record === undefined ? [] : [record.declaration]
  }

  async findTarget(engineId: string): Promise<PythonTarget | undefined> {
    const found = await readJson<unknown>(this.#targetOf(engineId))
    return isTarget(found) ? found : undefined
  }

  async saveTarget(engineId: string, target: PythonTarget): Promise<void> {
    await this.#explainErrors(writeJson(this.#targetOf(engineId), target, join(this.root, 'work')))
  }

  // ── environments ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Leases an environment; undefined if the cache does not have it.
   * @param useLock the lock of {@link lockUse}, if the caller has it: it is released if the environment does not exist.
   */
  async lease(key: string, useLock?: FileLock): Promise<EnvironmentLease | undefined> {
    if (!KEY.test(key) || !existsSync(this.#recordOf(key))) {
      useLock?.release()
      return undefined
    }
    const lock = useLock ?? (await this.lockUse(key))
    const record = await this.#readRecord(key)
    if (record === undefined) {
      lock.release()
      return undefined
    }
    await this.#touch(key)
    const path = join(this.root, 'environments', key, record.directory)
    return { record, path, release: () => lock.release() }
  }

  /** Keeps an environment, which may be made later, from being removed. */
  async lockUse(key: string): Promise<FileLock> {
    // Another process takes this lock exclusively only to check for users of the environment, or to remove the environment. After a
    // removal, the record is gone.
    return this.#waitForLock(this.#lockOf(key, 'use'), 'shared')
  }

  /** Locks the resolution and installation of a request. Waits while another process has the lock. */
  async lockBuild(requestKey: string, signal: AbortSignal): Promise<FileLock> {
    return this.#waitForLock(this.#lockOf(requestKey, 'build'), 'exclusive', signal)
  }

  /** Keeps others from cleaning the directory of uv, until the lock is released. */
  async useDownloads(signal: AbortSignal): Promise<FileLock> {
    return this.#waitForLock(this.#lockOf('uv', 'use'), 'shared', signal)
  }

  /**
   * Removes the files of interrupted installations, unless another one is running; with `all`, every download. Environments
   * keep their files.
   */
  async cleanDownloads({ all }: { readonly all: boolean }): Promise<void> {
    const isAbandoned = (name: string): boolean => name.startsWith('.tmp')
    const directory = join(this.root, 'uv')
    const [downloads, works] = await Promise.all([namesIn(directory), namesIn(join(this.root, 'work'))])
    // Return early, because a lock starts a process.
    if (!all && works.length === 0 && !downloads.some(isAbandoned)) return
    const lock = await tryLock(this.#lockOf('uv', 'use'))
    if (lock === undefined) return
    try {
      for (const name of await namesIn(directory)) {
        if (all || isAbandoned(name)) await rm(join(directory, name), { recursive: true, force: true })
      }
      await this.#removeAbandoned()
    } finally {
      lock.release()
    }
  }

  /** Bytes of downloads that no environment shares: {@link cleanDownloads} with `all` frees them. */
  async downloadBytes(): Promise<number> {
    let bytes = 0
    for (const [at, { parentPath, name }] of (await filesBelow(join(this.root, 'uv'), Infinity)).entries()) {
      const found = lstatSync(join(parentPath, name), { throwIfNoEntry: false })
      if (found?.nlink === 1) bytes += found.size
      if (at % SLICE === 0) await setImmediate()
    }
    return bytes
  }

  /** Puts a finished directory in its place: the last step of a build. Another process may have been first. */
  async publish(key: string, work: string, record: EnvironmentRecord, lock: string): Promise<void> {
    await writeFile(join(work, 'record.json'), JSON.stringify(record))
    await writeFile(join(work, 'pylock.toml'), lock)
    const target = join(this.root, 'environments', key)
    try {
      await rename(work, target)
    } catch (error) {
      if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error
      // One process at a time, so that none replaces a directory that another has just published.
      const only = await this.#waitForLock(this.#lockOf(key, 'build'), 'exclusive')
      try {
        const present = await this.lease(key)
        if (present !== undefined) return present.release()
        // The directory in the way is damaged, or made by another version.
        await rename(target, join(this.root, 'work', randomUUID()))
        await rename(work, target)
      } finally {
        only.release()
      }
    }
  }

  /** Every environment, the least recently used first. */
  async list(): Promise<readonly ListedEnvironment[]> {
    return this.#runProbe(() => this.#list())
  }

  /** The record of an environment; undefined for one that is missing, damaged or of an older version. */
  async #readRecord(key: string): Promise<EnvironmentRecord | undefined> {
    const record = await readJson<EnvironmentRecord | null>(this.#recordOf(key))
    const isValid =
      record?.key === key &&
      isTarget(record.target) &&
      isDeclaration(record.declaration) &&
      Array.isArray(record.modules) &&
      typeof record.packages === 'object' &&
      DIRECTORY.test(record.directory)
    return isValid ? record : undefined
  }

  async #list(): Promise<readonly ListedEnvironment[]> {
    const listed: ListedEnvironment[] = []
    for (const key of await namesIn(join(this.root, 'environments'))) {
      const record = KEY.test(key) ? await this.#readRecord(key) : undefined
      if (record === undefined) continue
      const used = await stat(this.#recordOf(key)).catch(() => undefined)
      if (used !== undefined) listed.push({ record, lastUsed: used.mtime, inUse: await this.#isUsed(key) })
    }
    return listed.toSorted((a, b) => a.lastUsed.getTime() - b.lastUsed.getTime())
  }

  /** Removes an environment; false if it is in use or does not exist. */
  async remove(key: string): Promise<boolean> {
    if (!KEY.test(key)) return false
    const aside = join(this.root, 'work', randomUUID())
    const isRemoved = await this.#runProbe(() => this.#moveUnused(key, aside))
    if (isRemoved) await rm(aside, { recursive: true, force: true })
    return isRemoved
  }

  async #moveUnused(key: string, aside: string): Promise<boolean> {
    const lock = await tryLock(this.#lockOf(key, 'use'))
    if (lock === undefined) return false
    try {
      await rename(join(this.root, 'environments', key), aside)
      return true
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return false
      throw this.explain(error)
    } finally {
      lock.release()
    }
  }

  /**
   * Removes environments that are too old, and the files of builders that died. Above `maxBytes` it removes all
   * downloads, which can be fetched again, and then the least recently used environments. An environment in use stays. Returns
   * the keys of removed environments.
   */
  async evict(limits: { readonly maxBytes: number; readonly maxAgeDays: number }): Promise<readonly string[]> {
    await this.cleanDownloads({ all: false })
    await this.#resolutions.evict()
    const listed = await this.list()
    let bytes = listed.reduce((sum, { record }) => sum + record.bytes, 0)
    if (bytes + (await this.downloadBytes()) > limits.maxBytes) await this.cleanDownloads({ all: true })
    const removed: string[] = []
    for (const { record, lastUsed, inUse } of listed) {
      const isOld = Date.now() - lastUsed.getTime() > limits.maxAgeDays * DAY_MS
      if (inUse || (!isOld && bytes <= limits.maxBytes)) continue
      if (!(await this.remove(record.key))) continue
      bytes -= record.bytes
      removed.push(record.key)
    }
    if (removed.length > 0) await this.cleanDownloads({ all: true })
    return removed
  }

  /** The error of a failed system call, with its remedy; any other error as it is. */
  explain(error: unknown): unknown {
    return error instanceof SandglassError || errnoOf(error) === undefined ? error : this.unusableError(error)
  }

  /** The error of a cache that cannot be used, with its remedy. */
  unusableError(error: unknown): SandglassError {
    const code = errnoOf(error)
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      return new SandglassError(
        'no_space',
        `no space is left for the package cache ${this.root}: free some space, then try again`,
        {
          cause: error,
        },
      )
    }
    return new SandglassError(
      'cache_dir_unusable',
      `the package cache ${this.root} cannot be used: ${messageOf(error)}; name another directory (option ` +
        'environments.cacheDir, variable SANDGLASS_CACHE_DIR)',
      { cause: error },
    )
  }

  /** Removes the work of builders that died. The caller holds the lock, so nobody builds, but a new file may still be renamed. */
  async #removeAbandoned(): Promise<void> {
    const directory = join(this.root, 'work')
    for (const name of await namesIn(directory)) {
      const found = await lstat(join(directory, name)).catch(() => undefined)
      if (found !== undefined && (found.isDirectory() || Date.now() - found.mtimeMs > ABANDONED_MS)) {
        await rm(join(directory, name), { recursive: true, force: true })
      }
    }
  }

  async #waitForLock(path: string, kind: 'shared' | 'exclusive', signal?: AbortSignal): Promise<FileLock> {
    try {
      return await awaitLock(path, kind, signal)
    } catch (error) {
      throw signal?.aborted === true ? error : this.unusableError(error)
    }
  }

  /** Checks whether environments are in use, which takes their `use` locks briefly. Checks run one at a time, so that none takes the lock of another for a use. */
  async #runProbe<T>(work: () => Promise<T>): Promise<T> {
    const only = await this.#waitForLock(this.#lockOf('probe', 'use'), 'exclusive')
    try {
      return await work()
    } finally {
      only.release()
    }
  }

  async #isUsed(key: string): Promise<boolean> {
    const lock = await tryLock(this.#lockOf(key, 'use'))
    lock?.release()
    return lock === undefined
  }

  async #touch(key: string): Promise<void> {
    const path = this.#recordOf(key)
    const used = await stat(path).catch(() => undefined)
    if (used === undefined || Date.now() - used.mtimeMs < MIN_TOUCH_MS) return
    const now = new Date()
    await utimes(path, now, now).catch(() => undefined) // only eviction depends on it
  }

  async #explainErrors(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      throw this.explain(error)
    }
  }

  #targetOf(engineId: string): string {
    return join(this.root, 'targets', `${digestOf(engineId, 16)}.json`)
  }

  #recordOf(key: string): string {
    return join(this.root, 'environments', key, 'record.json')
  }

  #lockOf(name: string, kind: 'use' | 'build'): string {
    return join(this.root, 'locks', `${name}.${kind}`)
  }
}
