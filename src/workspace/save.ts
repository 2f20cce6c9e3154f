import { lstatSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, realpath, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { formatPath, repositoryMadeOf } from '../support/index.ts'
import { type CollectBounds, type CollectOptions, matchingFiles } from './collect.ts'
import type { Link } from './link.ts'
import type { FileEntry } from './list-files.ts'
import { readFiles } from './read-files.ts'
import { MAX_SIDE_BY_SIDE, type SmallFile, SmallFiles, unsavedError } from './small-files.ts'

/** Options of {@link WorkspaceActivities.save}. */
export interface SaveOptions extends CollectOptions {
  /**
   * Replaces files that are there. Default false: then nothing is saved if one is there, or if a directory is or would become a
   * repository, whose files tools obey.
   */
  readonly overwrite?: boolean
}

/** A file that was saved. */
export interface SavedFile {
  /** Relative to the directory, and to the workspace. */
  readonly path: string
  readonly size: number
}

/** Paths in one request, which is a single line on the wire. */
const BATCH = 256
/** A file of more bytes is written while it comes. */
const MAX_SMALL_BYTES = 64 * 1024
/** From this number of files on, a thread saves more time than its start takes. */
const MANY_FILES = 500

/**
 * Saves what globs match below a directory of the host. Names and sizes are hostile: nothing is written outside of it or
 * through a link, and names that a case-insensitive file system takes for one are refused.
 * @throws SandglassError `too_large`, `path_refused`, `no_space`, `workspace_io`, `aborted`
 */
export async function saveFiles(
  link: Link,
  globs: string | readonly string[],
  directory: string,
  bounds: CollectBounds,
  overwrite: boolean,
): Promise<readonly SavedFile[]> {
  const entries: FileEntry[] = []
  let total = 0
  for await (const entry of matchingFiles(link, globs, bounds)) {
    entries.push(entry)
    total += entry.size
    if (entry.size > bounds.maxFileBytes || total > bounds.maxTotalBytes)
      throw new SandglassError('too_large', `${formatPath(entry.path)}: raise maxFileBytes or maxTotalBytes to save it`)
  }
  refuseTwins(entries)
  await using thread = entries.length < MANY_FILES ? undefined : new SmallFiles(writeSmall)
  const target = new TargetDirectory(directory, overwrite)
  await target.prepare(entries.map(({ path }) => path))
  await using writer = new FileWriter(target, thread)
  const saved: SavedFile[] = []
  let left = bounds.maxTotalBytes
  for (let at = 0; at < entries.length; at += BATCH) {
    // A file may have grown since it was listed.
    const batch = await saveBatch(link, entries.slice(at, at + BATCH), writer, { ...bounds, maxTotalBytes: left })
    for (const { size } of batch) left -= size
    saved.push(...batch)
  }
  await writer.idle()
  return saved
}

async function saveBatch(
  link: Link,
  entries: readonly FileEntry[],
  writer: FileWriter,
  { maxFileBytes, maxTotalBytes, signal }: CollectBounds,
): Promise<readonly SavedFile[]> {
  const paths = entries.map(({ path }) => path)
  const saved: SavedFile[] = []
  let size = 0
  for await (const part of readFiles(link, paths, { maxFileBytes, maxTotalBytes, signal })) {
    if (part.kind === 'header') {
      writer.begin(part.header.path, part.header.mode)
      size = 0
    } else if (part.kind === 'bytes') {
      await writer.write(part.bytes)
      size += part.bytes.length
    } else if (part.kind === 'end') {
      await writer.finish()
      saved.push({ path: entries[saved.length]?.path ?? '', size })
    }
  }
  return saved
}

/**
 * Writes files that come one after the other. Small ones are written by the thread, if there is one, else side by side: each takes
 * four calls of the system, which wait for their turn.
 */
class FileWriter implements AsyncDisposable {
  readonly #target: TargetDirectory
  readonly #thread: SmallFiles | undefined
  readonly #unfinished = new Set<Promise<void>>()
  #failure: { readonly error: unknown } | undefined
  #path = ''
  #mode = 0
  /** The bytes of the file so far, while it is small. */
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** The file, once it is large. */
  #file: TargetFile | undefined

  constructor(target: TargetDirectory, thread: SmallFiles | undefined) {
    this.#target = target
    this.#thread = thread
  }

  begin(path: string, mode: number): void {
    this.#path = path
    this.#mode = mode
    this.#pieces = []
    this.#bytes = 0
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.length
    if (this.#bytes <= MAX_SMALL_BYTES) {
      this.#pieces.push(bytes)
      return
    }
    this.#file ??= await createFile(await this.#target.place(this.#path, this.#mode))
    for (const piece of [...this.#pieces.splice(0), bytes]) await this.#file.write(piece)
  }

  /** The current file is complete. Waits until there is room for another one. */
  async finish(): Promise<void> {
    if (this.#file !== undefined) {
      await this.#file.finish()
      this.#file = undefined
      return
    }
    if (this.#thread !== undefined) {
      const place = await this.#target.place(this.#path, this.#mode)
      await this.#thread.add({ ...place, size: this.#bytes }, this.#pieces)
      return
    }
    const pieces = this.#pieces
    const writing = this.#target
      .place(this.#path, this.#mode)
      .then((place) => writeSmall(place, pieces))
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#unfinished.delete(writing))
    this.#unfinished.add(writing)
    if (this.#unfinished.size >= MAX_SIDE_BY_SIDE) await Promise.race(this.#unfinished)
    this.#throwFailure()
  }

  /** Resolves when all files are written. */
  async idle(): Promise<void> {
    await Promise.all(this.#unfinished)
    this.#throwFailure()
    await this.#thread?.idle()
  }

  /** Removes what was written of an incomplete file. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#unfinished)
    await this.#file?.abandon()
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }
}

/** Refuses names, also of directories, that differ only by case or by Unicode normalization. */
function refuseTwins(entries: readonly FileEntry[]): void {
  const names = new Map<string, string>()
  for (const { path } of entries) {
    for (let end = path.indexOf('/'); ; end = path.indexOf('/', end + 1)) {
      const part = end === -1 ? path : path.slice(0, end)
      const folded = part.normalize('NFC').toUpperCase().toLowerCase()
      const other = names.get(folded) ?? part
      if (other !== part)
        throw new SandglassError(
          'path_refused',
          `${formatPath(part)} and ${formatPath(other)} are one name on a file system that ignores case; rename one`,
        )
      names.set(folded, part)
      if (end === -1) break
    }
  }
}

/** The place of a new file. */
type Place = Omit<SmallFile, 'size'>

type Found = 'nothing' | 'file' | 'directory' | 'other'

/** A directory of the host in which files of a workspace are written. */
class TargetDirectory {
  readonly #directory: string
  readonly #overwrite: boolean
  #root = ''
  /** Paths that were found to be directories, and not links. */
  readonly #checked = new Set<string>()

  constructor(directory: string, overwrite: boolean) {
    this.#directory = directory
    this.#overwrite = overwrite
  }

  /** Makes the directory. Refuses everything that is in the way, before any file is written. */
  async prepare(paths: readonly string[]): Promise<void> {
    await attempt(this.#directory, async () => {
      await mkdir(this.#directory, { recursive: true })
      this.#root = await realpath(this.#directory)
    })
    const parents = new Map<string, Promise<Found>>()
    for (let at = 0; at < paths.length; at += MAX_SIDE_BY_SIDE) {
      const some = paths.slice(at, at + MAX_SIDE_BY_SIDE)
      const kinds = await Promise.all(some.map((path) => attempt(path, () => this.#kindOf(path, parents))))
      for (const [index, path] of some.entries()) this.#refuse(path, kinds[index])
    }
    const made = this.#overwrite ? undefined : repositoryMadeOf(paths, (path) => isThere(join(this.#root, path)))
    if (made === undefined) return
    throw new SandglassError(
      'path_refused',
      `${formatPath(join(this.#directory, made))} is or would become a repository, whose files tools obey; overwrite: true allows it`,
    )
  }

  #refuse(path: string, found: Found | undefined): void {
    if (found === 'nothing' || (found === 'file' && this.#overwrite)) return
    throw new SandglassError(
      'path_refused',
      `${formatPath(join(this.#directory, path))} is there${found === 'file' ? '; overwrite: true replaces it' : ', and no regular file'}`,
    )
  }

  /** Returns the place of a new file, and makes the directories above it. */
  async place(path: string, mode: number): Promise<Place> {
    await attempt(path, () => this.#makeParents(path))
    const whole = join(this.#root, path)
    // A file that exists is replaced as a whole; a new one is created where nothing is, so no link is followed.
    const written = this.#overwrite ? join(this.#root, `.${randomUUID()}.part`) : whole
    return { path, written, whole, permissions: mode & 0o111 ? 0o755 : 0o644 }
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
    const found = await lstat(join(this.#root, path)).catch(unlessMissing)
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
      if (!(await lstat(parent)).isDirectory()) throw new Error('a part of the path is not a directory')
      this.#checked.add(parent)
    }
  }
}

/** A file of the host that is being written. */
class TargetFile {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #written: string
  readonly #whole: string

  constructor(path: string, handle: FileHandle, written: string, whole: string) {
    this.#path = path
    this.#handle = handle
    this.#written = written
    this.#whole = whole
  }

  async write(bytes: Uint8Array): Promise<void> {
    await attempt(this.#path, () => this.#handle.writeFile(bytes))
  }

  async finish(): Promise<void> {
    await attempt(this.#path, async () => {
      await this.#handle.close()
      if (this.#written !== this.#whole) await rename(this.#written, this.#whole)
    })
  }

  /** Removes what was written of it. */
  async abandon(): Promise<void> {
    await this.#handle.close().catch(() => undefined)
    await unlink(this.#written).catch(() => undefined)
  }
}

async function createFile({ path, written, whole, permissions }: Place): Promise<TargetFile> {
  return attempt(path, async () => new TargetFile(path, await open(written, 'wx', permissions), written, whole))
}

/** Writes a small file. If that fails, nothing of it stays. */
async function writeSmall(place: Place, pieces: readonly Uint8Array[]): Promise<void> {
  const file = await createFile(place)
  try {
    for (const piece of pieces) await file.write(piece)
    await file.finish()
  } catch (error) {
    await file.abandon()
    throw error
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false // writing it says why
  }
}

function unlessMissing(error: unknown): undefined {
  if (errnoOf(error) === 'ENOENT') return undefined
  throw error
}

async function attempt<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw unsavedError(path, error)
  }
}
