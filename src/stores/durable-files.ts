import { randomUUID } from 'node:crypto'
import { linkSync } from 'node:fs'
import { type FileHandle, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { formatPath, makeDirectory } from '../support/index.ts'

const FORMAT = 'sandglass-store 1\n'
const FORMAT_FILE = 'format'
/** Number of bytes of a large file after which they are synchronised with the disk. */
const SYNCED_BYTES = 32 * 1024 * 1024
/** A file in `tmp` that has not changed for this time is abandoned. */
const ABANDONED_MS = 3_600_000
/** The clock of the file system is read again after this time. */
const CLOCK_MS = 60_000

/**
 * Writes files below one directory atomically, even if the process or the machine dies: they are written to a temporary file,
 * synchronised, then renamed, and the target directory is synchronised.
 */
export class DurableFiles {
  readonly root: string
  /** Directories whose entries in their parents are synchronised. */
  readonly #ready = new Set<string>()
  #opened: Promise<void> | undefined
  #isStore = false
  #clock: { readonly ms: number; readonly at: number } | undefined

  constructor(root: string) {
    this.root = root
  }

  /**
   * Writes a temporary file. The caller moves it with {@link place}, or removes it.
   * @param pieces each must stay valid until the second piece after it is requested.
   */
  async writeAside(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<string> {
    await this.#prepare()
    const path = join(this.root, 'tmp', randomUUID())
    try {
      await using file = await this.#openAside(path)
      await writeOverlapped(file, pieces)
      await file.sync()
      return path
    } catch (error) {
      await this.discard(path)
      throw error
    }
  }

  /** Renames a temporary file to `path`. */
  async place(aside: string, path: string): Promise<void> {
    await this.prepare(dirname(path))
    await rename(aside, path)
    await syncDirectory(dirname(path))
  }

  /** Makes a directory and its missing parents. */
  async prepare(directory: string): Promise<void> {
    if (this.#ready.has(directory)) return
    const parent = dirname(directory)
    if (directory !== this.root) await this.prepare(parent)
    makeDirectory(directory, { own: 0o700 })
    // Also if another process created it, because that process may die before it synchronises.
    await syncDirectory(parent)
    this.#ready.add(directory)
  }

  async discard(aside: string): Promise<void> {
    await unlink(aside).catch(() => undefined) // it is removed later as abandoned
  }

  /** The time by the clock of the file system, which may be that of another machine. */
  async now(): Promise<number> {
    if (this.#clock === undefined || performance.now() - this.#clock.at > CLOCK_MS) {
      await this.#prepare()
      const probe = join(this.root, 'tmp', randomUUID())
      await using file = await open(probe, 'wx', 0o600)
      this.#clock = { ms: (await file.stat()).mtimeMs, at: performance.now() }
      await this.discard(probe)
    }
    return this.#clock.ms + performance.now() - this.#clock.at
  }

  /** Opens a temporary file. Creates the store again if its directory was removed. */
  async #openAside(path: string): Promise<FileHandle> {
    try {
      return await open(path, 'wx', 0o600)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
      this.#opened = undefined
      this.#isStore = false
      this.#ready.clear()
      await this.#prepare()
      return open(path, 'wx', 0o600)
    }
  }

  async #prepare(): Promise<void> {
    await (this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    }))
  }

  async #open(): Promise<void> {
    await this.prepare(this.root)
    await this.#makeFormat()
    await this.prepare(join(this.root, 'tmp'))
    // Deferred, because it needs the finished set-up. If it fails, the next process tries again.
    setImmediate(() => void this.#removeAbandoned().catch(() => undefined))
  }

  /**
   * False for a directory that is empty or missing.
   * @throws SandglassError `store_unusable` for one that holds something else.
   */
  async isStore(): Promise<boolean> {
    if (this.#isStore) return true
    const path = join(this.root, FORMAT_FILE)
    const found = await readIfPresent('', () => readFile(path, 'utf8'))
    if (found !== FORMAT) {
      const names = await readIfPresent([], () => readdir(this.root))
      if (found === '' && names.every((name) => name.startsWith(`${FORMAT_FILE}-`))) return false
      // Another process may have made the store meanwhile.
      if ((await readFile(path, 'utf8').catch(() => '')) !== FORMAT) throw noStore(this.root)
    }
    return (this.#isStore = true)
  }

  async #makeFormat(): Promise<void> {
    if (await this.isStore()) return
    const path = join(this.root, FORMAT_FILE)
    const aside = `${path}-${randomUUID()}`
    await using file = await open(aside, 'wx', 0o600)
    await file.writeFile(FORMAT)
    await file.sync()
    await rename(aside, path)
    await syncDirectory(this.root)
  }

  /** Removes the files of dead writers. */
  async #removeAbandoned(): Promise<void> {
    const names = await readdir(join(this.root, 'tmp'))
    if (names.length === 0) return
    const now = await this.now()
    for (const name of names) {
      const path = join(this.root, 'tmp', name)
      const found = await stat(path).catch(() => undefined)
      if (found !== undefined && now - found.mtimeMs > ABANDONED_MS) await this.discard(path)
    }
  }
}

function noStore(directory: string): SandglassError {
  return new SandglassError(
    'store_unusable',
    `the directory ${formatPath(directory)} is not empty and is not a store of this version: name another directory`,
  )
}

async function readIfPresent<T>(otherwise: T, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return otherwise
    throw error
  }
}

/**
 * Writes each piece while the next one is produced. A piece must stay valid until the second piece after it is requested. Written bytes are
 * synchronised meanwhile.
 */
export async function writeOverlapped(
  file: FileHandle,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  let writing: Promise<void> | undefined
  let written = 0
  let syncing: Promise<void> | undefined
  const write = async (piece: Uint8Array): Promise<void> => {
    for (let at = 0; at < piece.byteLength;) at += (await file.write(piece, at)).bytesWritten
    written += piece.byteLength
    if (written < SYNCED_BYTES) return
    written = 0
    await syncing
    syncing = file.datasync()
    syncing.catch(() => undefined) // it is awaited before the next one
  }
  try {
    for await (const piece of pieces) {
      await writing
      writing = write(piece)
      writing.catch(() => undefined) // it is awaited before the next one
    }
    await writing
    await syncing
  } finally {
    await Promise.allSettled([writing, syncing]) // the file is closed next
  }
}

/** Links a file; false if `path` exists. Synchronous, to keep the time between the caller's check and the link short. */
export function linkNew(aside: string, path: string): boolean {
  try {
    linkSync(aside, path)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}

export async function syncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, 'r')
  await handle.sync()
}
