import { randomUUID } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { formatPath, repositoryMadeOf } from '../support/index.ts'
import { MAX_CONCURRENT } from './small-files.ts'
import { attempt, type Place } from './target-file.ts'

type Found = 'nothing' | 'file' | 'directory' | 'other'

/** A directory of the host in which files of a workspace are written. */
export class TargetDirectory {
  readonly #directory: string
  readonly #overwrite: boolean
  #root = ''
  /** Paths that are known to be directories, and not links. */
  readonly #checked = new Set<string>()

  constructor(directory: string, overwrite: boolean) {
    this.#directory = directory
    this.#overwrite = overwrite
  }

  /** Makes the directory. Before any file is written, throws if a path is occupied. */
  async prepare(paths: readonly string[]): Promise<void> {
    await attempt(this.#directory, async () => {
      await mkdir(this.#directory, { recursive: true })
      this.#root = await realpath(this.#directory)
    })
    const parents = new Map<string, Promise<Found>>()
    for (let at = 0; at < paths.length; at += MAX_CONCURRENT) {
      const some = paths.slice(at, at + MAX_CONCURRENT)
      const kinds = await Promise.all(some.map((path) => attempt(path, () => this.#kindOf(path, parents))))
      for (const [index, path] of some.entries()) this.#refuse(path, kinds[index])
    }
    const made = this.#overwrite ? undefined : repositoryMadeOf(paths, (path) => isThere(join(this.#root, path)))
    if (made === undefined) return
    throw new SandglassError(
      'path_refused',
      `${formatPath(join(this.#directory, made))} is or would become a repository, whose files tools obey; set overwrite: true to allow it`,
    )
  }

  #refuse(path: string, found: Found | undefined): void {
    if (found === 'nothing' || (found === 'file' && this.#overwrite)) return
    throw new SandglassError(
      'path_refused',
      `${formatPath(join(this.#directory, path))} already exists${found === 'file' ? '; set overwrite: true to replace it' : ' and is not a regular file'}`,
    )
  }

  /** Returns the paths of a new file, and makes the directories above it. */
  async place(path: string, mode: number): Promise<Place> {
    await attempt(path, () => this.#makeParents(path))
    const finalPath = join(this.#root, path)
    // An existing file is replaced atomically; a new one is created at a path that does not exist, so no link is followed.
    const temporaryPath = this.#overwrite ? join(this.#root, `.${randomUUID()}.part`) : finalPath
    return { path, temporaryPath, finalPath, permissions: mode & 0o111 ? 0o755 : 0o644 }
  }

  /** The kind of the entry at a path; no link is followed. Most files share their directories: each is looked up once. */
  async #kindOf(path: string, parents: Map<string, Promise<Found>>): Promise<Found> {
    const end = path.lastIndexOf('/')
    if (end !== -1) {
      const parent = path.slice(0, end)
      const looked = parents.get(parent) ?? this.#kindOf(parent, parents)
      parents.set(parent, looked)
      const found = await looked
      if (found !== 'directory') return found === 'nothing' ? 'nothing' : 'other'
    }
    const found = await lstat(join(this.#root, path)).catch(ignoreMissing)
    if (found === undefined) return 'nothing'
    if (found.isDirectory()) return 'directory'
    return found.isFile() ? 'file' : 'other'
  }

  async #makeParents(path: string): Promise<void> {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const parent = join(this.#root, path.slice(0, end))
      if (this.#checked.has(parent)) continue
      await mkdir(parent).catch((error: unknown) => {
        if (errnoOf(error) !== 'EEXIST') throw error
      })
      if (!(await lstat(parent)).isDirectory()) throw new Error(`${formatPath(path.slice(0, end))} is not a directory`)
      this.#checked.add(parent)
    }
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false // writing it says why
  }
}

function ignoreMissing(error: unknown): undefined {
  if (errnoOf(error) === 'ENOENT') return undefined
  throw error
}
