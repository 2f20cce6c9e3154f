import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'

/** A file, directory or link below a directory. The path has slashes on every system. */
export type Entry =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'file'; readonly path: string }

/** The part of a directory of this host that a pod gets. */
export interface Listing {
  readonly directory: string
  /** Each directory comes before what is in it. */
  readonly entries: readonly Entry[]
  /** The size of a file system in memory that holds the content. */
  readonly volumeBytes: number
  /** The memory that it takes: the content, and what the kernel keeps for each name. */
  readonly memoryBytes: number
  /** Differs when names, sizes or times do. */
  readonly fingerprint: string
}

const PAGE_BYTES = 4096
/** The inode and the name of a file in memory, rounded up. */
const ENTRY_BYTES = 2048
/** A larger directory belongs on a volume. */
const MAX_BYTES = 4 * 1024 ** 3
/** More entries than the largest known environment has: someone named the wrong directory. */
const MAX_ENTRIES = 200_000

/**
 * Lists what the sandbox of another user could read in place: files and directories that others may read, and links that stay
 * inside. Sockets, pipes and devices are left out.
 * @throws SandglassError `packages_unreadable`, naming the option and the directory.
 */
export async function listDirectory(option: string, directory: string): Promise<Listing> {
  try {
    if (!(await stat(directory)).isDirectory()) throw new Error('it is not a directory')
    return await new Walk(directory, await realpath(directory)).list()
  } catch (error) {
    const what = `${option}: ${directory} cannot be read`
    throw (
      shortageError(error, what) ??
      new SandglassError('packages_unreadable', `${what}: ${messageOf(error)}`, { cause: error })
    )
  }
}

class Walk {
  readonly #directory: string
  readonly #root: string
  readonly #entries: Entry[] = []
  readonly #hash = createHash('sha256')
  #pages = 0
  #leftOut = 0

  constructor(directory: string, root: string) {
    this.#directory = directory
    this.#root = root
  }

  async list(): Promise<Listing> {
    await this.#walk('')
    const { length } = this.#entries
    if (length === 0 && this.#leftOut > 0)
      throw new Error('no file in it may be read by users other than its owner (chmod -R o+rX)')
    const volumeBytes = Math.max(1, this.#pages) * PAGE_BYTES
    return {
      directory: this.#directory,
      entries: this.#entries,
      volumeBytes,
      memoryBytes: volumeBytes + length * ENTRY_BYTES,
      fingerprint: this.#hash.digest('hex'),
    }
  }

  async #walk(below: string): Promise<void> {
    const directory = join(this.#root, below)
    const names = (await readdir(directory)).toSorted()
    const found = await Promise.all(names.map((name) => lstat(join(directory, name)).catch(undefinedIfGone)))
    for (const [at, name] of names.entries()) {
      const path = below === '' ? name : `${below}/${name}`
      const stats = found[at]
      if (stats === undefined) continue
      if (!(await this.#add(path, stats))) this.#leftOut += 1
      if (this.#entries.length > MAX_ENTRIES) throw new Error(`it has more than ${MAX_ENTRIES} files`)
    }
  }

  async #add(path: string, found: Stats): Promise<boolean> {
    this.#hash.update(`${path}\0${found.mode}\0${found.size}\0${found.mtimeMs}\0${found.ctimeMs}\0`)
    if (found.isSymbolicLink()) return this.#addLink(path)
    if (found.isDirectory()) {
      if ((found.mode & 0o005) !== 0o005) return false
      this.#entries.push({ kind: 'directory', path })
      await this.#walk(path)
      return true
    }
    if (!found.isFile() || (found.mode & 0o004) === 0) return false
    this.#entries.push({ kind: 'file', path })
    this.#pages += Math.ceil(found.size / PAGE_BYTES)
    if (this.#pages * PAGE_BYTES > MAX_BYTES)
      throw new Error(`it has more than ${MAX_BYTES} bytes; put it on a volume (kubernetes.volumeClaims)`)
    return true
  }

  async #addLink(path: string): Promise<boolean> {
    const link = join(this.#root, path)
    const end = await realpath(link).catch(() => undefined)
    if (end?.startsWith(`${this.#root}${sep}`) !== true) return false
    const text = await readlink(link)
    const target = isAbsolute(text) ? relative(dirname(link), end) : text
    this.#entries.push({ kind: 'link', path, target: target.replaceAll(sep, '/') })
    this.#pages += 1
    return true
  }
}

/** Files that are being added to an environment get their names when they are complete. */
function undefinedIfGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
