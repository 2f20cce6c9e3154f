import { createHash, randomUUID } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { shortageError } from '../../errors/index.ts'
import { makeDirectory } from '../../support/index.ts'

/** A memory snapshot: in a file, or in this process if no file can be written. */
export type Snapshot = { readonly path: string } | { readonly bytes: Uint8Array }

const DIGEST_BYTES = 32
const STICKY = 0o1000
const UNUSED_MS = 30 * 86_400_000
const NAME = /^pyodide-[\da-f]{16}\.snapshot$/

/** The default directory of snapshots: a system directory for root, else one of the user. */
export function defaultCacheDir(): string {
  if (process.getuid?.() === 0) return '/var/cache/sandglass'
  const base = process.env['XDG_CACHE_HOME'] ?? ''
  if (isAbsolute(base)) return join(base, 'sandglass')
  const local = process.platform === 'win32' ? process.env['LOCALAPPDATA'] : undefined
  return join(local ?? join(homedir(), '.cache'), 'sandglass')
}

/** The key of a snapshot, made from everything that determines its content. */
export function snapshotKey(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
}

/** Snapshots on disk. They are written to a temporary file and renamed, so that a reader never sees an incomplete one. */
export class SnapshotCache {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** The path of a snapshot, which need not exist. */
  pathOf(key: string): string {
    return join(this.#directory, `pyodide-${key}.snapshot`)
  }

  /** True if there is a snapshot that no other user can have written. */
  has(key: string): boolean {
    try {
      const own = process.getuid?.()
      const found = [lstatSync(this.#directory), lstatSync(this.pathOf(key))]
      const isOurs = found.every(
        ({ uid, mode }) => own === undefined || ((uid === own || uid === 0) && (mode & 0o022) === 0),
      )
      return isOurs && (found[1]?.isFile() ?? false) && !this.#canBeSwapped()
    } catch {
      return false
    }
  }

  /** True if another user can replace the directory, because a directory above it is writable for them and not sticky. */
  #canBeSwapped(): boolean {
    const own = process.getuid?.()
    if (own === undefined) return false
    for (let at = dirname(this.#directory); ; at = dirname(at)) {
      const { uid, mode } = lstatSync(at)
      if ((uid !== own && uid !== 0) || ((mode & 0o022) !== 0 && (mode & STICKY) === 0)) return true
      if (at === dirname(at)) return false
    }
  }

  /**
   * Verifies the digest.
   * @throws SandglassError `sandbox_setup_failed` if the host is short of a resource.
   */
  async isIntact(key: string): Promise<boolean> {
    try {
      const bytes = await readFile(this.pathOf(key))
      const body = bytes.subarray(0, -DIGEST_BYTES)
      const isIntact = createHash('sha256').update(body).digest().equals(bytes.subarray(-DIGEST_BYTES))
      if (isIntact) await utimes(this.pathOf(key), new Date(), new Date()).catch(() => undefined)
      return isIntact
    } catch (error) {
      const shortage = shortageError(error, 'the snapshot cannot be read')
      if (shortage !== undefined) throw shortage
      return false
    }
  }

  /** Writes a snapshot. Returns the bytes themselves if that is not possible, for example on a full or read-only disk. */
  async keep(key: string, bytes: Uint8Array): Promise<Snapshot> {
    const path = this.pathOf(key)
    const temporary = `${path}.${randomUUID()}`
    try {
      makeDirectory(this.#directory, { own: 0o700, above: 0o700 })
      await this.#removeUnused()
      const digest = createHash('sha256').update(bytes).digest()
      await writeFile(temporary, Buffer.concat([bytes, digest]), { mode: 0o600, flush: true })
      await rename(temporary, path)
      return this.has(key) ? { path } : { bytes }
    } catch {
      await rm(temporary, { force: true }).catch(() => undefined)
      return { bytes }
    }
  }

  /** Removes snapshots that are no longer used, and temporary files of writers that were killed. */
  async #removeUnused(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name)
      const isTemporary = name.startsWith('pyodide-') && !NAME.test(name)
      if (!isTemporary && !NAME.test(name)) continue
      // Its writer may have renamed or removed it by now.
      const found = await stat(path).catch(() => undefined)
      if (found !== undefined && Date.now() - found.mtimeMs > (isTemporary ? 3_600_000 : UNUSED_MS))
        await rm(path, { force: true })
    }
  }
}
