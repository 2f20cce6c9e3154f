import { constants } from 'node:fs'
import { type FileHandle, open, readdir, stat, unlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { formatPath, formatValue } from '../support/index.ts'
import { damagedError, intakeOf, verifyContent } from './content.ts'
import { toDirectoryError } from './directory-error.ts'
import { DirectoryRecords } from './directory-records.ts'
import { DurableFiles, writeOverlapped } from './durable-files.ts'
import {
  checkArea,
  checkDigest,
  segmentsOf,
  type Store,
  type StoreContent,
  type StoredBlob,
  type StoreRecord,
  type TransferOptions,
} from './store.ts'

const MAX_PIECE_BYTES = 1024 * 1024
const SHARD = /^[0-9a-f]{2}$/
const REST = /^[0-9a-f]{62}$/

/**
 * Keeps everything in a directory, which is created with access for its owner only when something is stored. Many processes may use it at
 * once. Acknowledged data is on the disk; files of a killed process are never visible, and removed after an hour. The file
 * system must have hard links.
 * @throws TypeError for an invalid path.
 */
export function storeInDirectory(path: string): Store {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw new TypeError(`path: must be the path of a directory, not ${formatValue(path)}`)
  return new DirectoryStore(resolve(path))
}

class DirectoryStore implements Store {
  readonly name: string
  readonly #root: string
  readonly #files: DurableFiles
  readonly #records: DirectoryRecords

  constructor(root: string) {
    this.name = `the store ${formatPath(root)}`
    this.#root = root
    this.#files = new DurableFiles(root)
    this.#records = new DirectoryRecords(this.#files)
  }

  async put(area: string, content: StoreContent, options?: TransferOptions): Promise<StoredBlob> {
    checkArea(area)
    const { pieces, blob, isOfSource, close } = intakeOf(content, options)
    let aside: string | undefined
    try {
      aside = await this.#files.writeAside(pieces)
      const stored = blob()
      await this.#files.place(aside, this.#blobPath(area, stored.sha256))
      return stored
    } catch (error) {
      if (aside !== undefined) await this.#files.discard(aside)
      throw isOfSource(error) ? error : toDirectoryError(this.#root, error)
    } finally {
      close()
    }
  }

  async open(area: string, sha256: string, options?: TransferOptions): Promise<AsyncIterable<Uint8Array> | undefined> {
    const path = this.#blobPath(checkArea(area), checkDigest(sha256))
    if (!(await this.#explainErrors(() => this.#hasFile(path)))) return undefined
    return verifyContent(sha256, this.name, this.#piecesOf(path), options)
  }

  async copyInto(area: string, sha256: string, file: FileHandle, options?: TransferOptions): Promise<boolean> {
    const path = this.#blobPath(checkArea(area), checkDigest(sha256))
    if (!(await this.#explainErrors(() => this.#hasFile(path)))) return false
    const { pieces, blob, close } = intakeOf({ path }, options)
    try {
      await writeOverlapped(file, pieces)
    } catch (error) {
      throw this.#explainCopyError(sha256, error)
    } finally {
      close()
    }
    if (blob().sha256 !== sha256) throw damagedError(sha256, this.name)
    return true
  }

  async has(area: string, sha256: string): Promise<boolean> {
    const path = this.#blobPath(checkArea(area), checkDigest(sha256))
    return this.#explainErrors(() => this.#hasFile(path))
  }

  async *blobs(area: string): AsyncGenerator<StoredBlob & { readonly ageMs: number }, void, void> {
    const directory = join(this.#root, checkArea(area), 'blobs')
    if (!(await this.#explainErrors(() => this.#files.isStore()))) return
    const shards = (await this.#explainErrors(() => namesIn(directory))).filter((name) => SHARD.test(name))
    if (shards.length === 0) return
    const now = await this.#explainErrors(() => this.#files.now())
    for (const shard of shards) {
      for (const rest of await this.#explainErrors(() => namesIn(join(directory, shard)))) {
        const found = await stat(join(directory, shard, rest)).catch(() => undefined)
        if (found?.isFile() !== true || !REST.test(rest)) continue
        yield { sha256: `${shard}${rest}`, size: found.size, ageMs: now - found.mtimeMs }
      }
    }
  }

  async remove(area: string, sha256: string, ageMs: number): Promise<boolean> {
    const path = this.#blobPath(checkArea(area), checkDigest(sha256))
    return this.#explainErrors(async () => {
      if (!(await this.#hasFile(path))) return false
      const now = await this.#files.now()
      try {
        if (now - (await stat(path)).mtimeMs <= ageMs) return false
        await unlink(path)
        return true
      } catch (error) {
        if (errnoOf(error) === 'ENOENT') return false
        throw error
      }
    })
  }

  async read(area: string, key: string): Promise<StoreRecord | undefined> {
    return this.#explainErrors(async () => {
      const record = await this.#records.read(this.#recordsOf(area), key)
      if (record === undefined) await this.#files.isStore() // throws for a directory that is not a store
      return record
    })
  }

  async write(area: string, key: string, text: string, expected: string | undefined): Promise<string | undefined> {
    return this.#explainErrors(() => this.#records.write(this.#recordsOf(area), key, text, expected))
  }

  async *records(area: string, prefix?: string): AsyncGenerator<StoreRecord, void, void> {
    const root = this.#recordsOf(area)
    if (prefix !== undefined) segmentsOf(prefix) // throws for an invalid prefix
    try {
      if (await this.#files.isStore()) yield* this.#records.all(root, prefix)
    } catch (error) {
      throw toDirectoryError(this.#root, error)
    }
  }

  async close(): Promise<void> {}

  async *#piecesOf(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    try {
      await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
      const pieceBytes = Math.min((await file.stat()).size, MAX_PIECE_BYTES)
      const read = async (): Promise<Buffer<ArrayBuffer>> => {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(pieceBytes))
        return buffer.subarray(0, bytesRead)
      }
      let reading = read()
      try {
        for (let piece = await reading; piece.byteLength > 0; piece = await reading) {
          // Read ahead while the reader uses this piece.
          reading = read()
          reading.catch(() => undefined) // it is awaited next
          yield piece
        }
      } finally {
        await reading.catch(() => undefined) // the file is closed next
      }
    } catch (error) {
      throw toDirectoryError(this.#root, error)
    }
  }

  async #hasFile(path: string): Promise<boolean> {
    return (await this.#files.isStore()) && isFile(path)
  }

  /** Explains a failed copy of a blob: an invalid source file means that the store is damaged. */
  #explainCopyError(sha256: string, error: unknown): unknown {
    if (!(error instanceof SandglassError)) return error
    if (errnoOf(error.cause) !== undefined) return toDirectoryError(this.#root, error.cause)
    return error.code === 'invalid_request' || error.code === 'too_large' ? damagedError(sha256, this.name) : error
  }

  #recordsOf(area: string): string {
    return join(this.#root, checkArea(area), 'records')
  }

  #blobPath(area: string, sha256: string): string {
    return join(this.#root, area, 'blobs', sha256.slice(0, 2), sha256.slice(2))
  }

  async #explainErrors<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw toDirectoryError(this.#root, error)
    }
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return false
    throw error
  }
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown): string[] => {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  })
}
