import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createDeflate } from 'node:zlib'
import { errnoOf, messageOf, SandglassError } from '../../errors/index.ts'
import { unlessAborted } from '../../sandbox/index.ts'
import type { Entry, Listing } from './directory.ts'

/** The fastest level: of pandas, level 6 saves an eighth of the bytes for two and a half times the work. */
const LEVEL = 1
const PIECE_BYTES = 256 * 1024
/** Directories whose archives are kept. */
const MAX_KEPT = 8

/** A directory in the format of harness/unpack.py, as bytes to send. Dispose of it when they are sent. */
export interface Archive extends Disposable {
  readonly bytes: number
  pieces(): AsyncGenerator<Buffer, void, void>
}

/** Packs directories of this host, each once until it changes. */
export class Archives {
  readonly #kept = new Map<string, Packed>()

  /** The directories, and the memory that each takes in every pod that has it. */
  get inMemory(): readonly string[] {
    return [...this.#kept.values()].map(
      ({ listing: { directory, memoryBytes } }) => `${directory}: ${memoryBytes} bytes`,
    )
  }

  /** An abort ends the wait, not the work. @throws SandglassError `packages_unreadable`, `no_space`, `aborted`. */
  async use(listing: Listing, signal?: AbortSignal): Promise<Archive> {
    const { directory, fingerprint } = listing
    const known = this.#kept.get(directory)
    const packed = known?.listing.fingerprint === fingerprint ? known : this.#pack(listing)
    this.#kept.delete(directory) // the least recently used comes first
    this.#kept.set(directory, packed)
    for (const oldest of [...this.#kept.keys()].slice(0, -MAX_KEPT)) this.#drop(oldest)
    return packed.use(signal)
  }

  close(): void {
    for (const directory of this.#kept.keys()) this.#drop(directory)
  }

  #pack(listing: Listing): Packed {
    const { directory } = listing
    this.#drop(directory)
    const packed = new Packed(listing)
    packed.file.catch(() => {
      if (this.#kept.get(directory) === packed) this.#kept.delete(directory)
    })
    return packed
  }

  #drop(directory: string): void {
    this.#kept.get(directory)?.retire()
    this.#kept.delete(directory)
  }
}

/** An archive in a file without a name, which goes with this process at the latest. */
interface PackedFile {
  readonly handle: FileHandle
  readonly bytes: number
}

/** An archive that is there or being made, and who reads it. */
class Packed {
  readonly listing: Listing
  readonly file: Promise<PackedFile>
  #users = 0
  #isRetired = false

  constructor(listing: Listing) {
    this.listing = listing
    this.file = pack(listing)
  }

  async use(signal: AbortSignal | undefined): Promise<Archive> {
    this.#users += 1
    let isOver = false
    const leave = (): void => {
      if (isOver) return
      isOver = true
      this.#users -= 1
      this.#closeUnused()
    }
    try {
      const file = await unlessAborted(this.file, signal, `packing ${this.listing.directory} for pods`)
      return { bytes: file.bytes, pieces: () => piecesOf(file), [Symbol.dispose]: leave }
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Closes the file when nobody reads it any more. */
  retire(): void {
    this.#isRetired = true
    this.#closeUnused()
  }

  #closeUnused(): void {
    if (!this.#isRetired || this.#users > 0) return
    this.file.then(
      ({ handle }) => handle.close(),
      () => undefined,
    )
  }
}

async function* piecesOf({ handle, bytes }: PackedFile): AsyncGenerator<Buffer, void, void> {
  for (let at = 0; at < bytes;) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, bytes - at))
    const { bytesRead } = await handle.read(piece, 0, piece.length, at)
    if (bytesRead === 0) throw new Error('an archive of this process was cut')
    at += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}

async function pack(listing: Listing): Promise<PackedFile> {
  const { directory } = listing
  const path = join(tmpdir(), `sandglass-${randomUUID()}`)
  let handle: FileHandle | undefined
  try {
    handle = await open(path, 'wx+', 0o600)
    await unlink(path)
    await pipeline(collect(encode(listing)), createDeflate({ level: LEVEL }), writerOf(handle))
    return { handle, bytes: (await handle.stat()).size }
  } catch (error) {
    await handle?.close()
    if (errnoOf(error) === 'ENOSPC')
      throw new SandglassError('no_space', `no space in ${tmpdir()} to pack ${directory} for pods`, { cause: error })
    throw new SandglassError('packages_unreadable', `${directory} cannot be packed for pods: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

function writerOf(file: FileHandle): (source: AsyncIterable<Buffer>) => Promise<void> {
  return async (source) => {
    for await (const piece of source) await file.writeFile(piece)
  }
}

/** The entries as bytes, and the end. */
async function* encode({ directory, entries }: Listing): AsyncGenerator<Buffer, void, void> {
  for (const entry of entries) {
    if (entry.kind === 'file') yield* encodeFile(directory, entry)
    else yield headerOf(entry)
  }
  yield lengthOf(0)
}

/** A file that is gone by now is left out. */
async function* encodeFile(directory: string, { path }: Entry): AsyncGenerator<Buffer, void, void> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = await open(join(directory, path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error
  })
  if (file === undefined) return
  try {
    const found = await file.stat()
    if (!found.isFile() || (found.mode & 0o004) === 0) throw new Error(`${path} was replaced meanwhile`)
    const { size, mode } = found
    yield headerOf({
      kind: 'file',
      path,
      size,
      mtime: Math.trunc(found.mtimeMs / 1000),
      executable: (mode & 0o111) > 0,
    })
    for (let at = 0; at < size;) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - at))
      const { bytesRead } = await file.read(piece, 0, piece.length, at)
      if (bytesRead === 0) throw new Error(`${path} was cut meanwhile`)
      at += bytesRead
      yield piece.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}

/** Joins small parts: the compressor takes each on a thread. */
async function* collect(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let held: Buffer[] = []
  let bytes = 0
  for await (const part of parts) {
    held.push(part)
    bytes += part.length
    if (bytes < PIECE_BYTES) continue
    yield Buffer.concat(held)
    held = []
    bytes = 0
  }
  yield Buffer.concat(held)
}

function headerOf(fields: object): Buffer {
  const header = Buffer.from(JSON.stringify(fields))
  return Buffer.concat([lengthOf(header.length), header])
}

function lengthOf(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32BE(length)
  return bytes
}
