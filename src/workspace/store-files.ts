import { createHash } from 'node:crypto'
import type { FileState, StoredTrees } from '../persistence/index.ts'
import type { EntryOnWire } from '../protocol/index.ts'
import type { Link } from './link.ts'
import type { PackHeader } from './pack.ts'
import { readFiles } from './read-files.ts'
import { ConcurrentTasks } from './concurrent-tasks.ts'

/** The result of storing one file. */
export type Stored = { readonly state: FileState } | { readonly isGone: boolean; readonly message: string }

/** Paths in one request, which is a single line on the wire. */
const BATCH = 256
/** A larger file is stored while it is received. */
const MAX_SMALL_BYTES = 64 * 1024
/** Maximum number of small files that are stored concurrently, because each waits for the disk several times. */
const MAX_CONCURRENT = 8

/** The bounds of a transfer. */
interface Bounds {
  /** Digests that the store has. */
  readonly known: Set<string>
  readonly maxFileBytes: number
  readonly signal: AbortSignal
}

/**
 * Reads files of a workspace and stores their content.
 * @param onStored called for each file.
 * @throws SandglassError of the store and of the sandbox, `aborted`
 */
export async function storeFiles(
  link: Link,
  trees: StoredTrees,
  files: readonly EntryOnWire[],
  bounds: Bounds,
  onStored: (entry: EntryOnWire, stored: Stored) => void,
): Promise<void> {
  const uploads = new Uploads(trees, bounds.known, bounds.signal)
  try {
    for (let at = 0; at < files.length; at += BATCH)
      await storeBatch(link, files.slice(at, at + BATCH), uploads, bounds, onStored)
    await uploads.drain()
  } catch (error) {
    await uploads.abandon(error)
    throw error
  }
}

async function storeBatch(
  link: Link,
  entries: readonly EntryOnWire[],
  uploads: Uploads,
  { maxFileBytes, signal }: Bounds,
  onStored: (entry: EntryOnWire, stored: Stored) => void,
): Promise<void> {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]))
  const bounds = { maxFileBytes, maxTotalBytes: null, signal }
  let entry: EntryOnWire | undefined
  for await (const part of readFiles(link, [...byPath.keys()], bounds, { isLenient: true, isInternal: true })) {
    if (part.kind === 'header') {
      entry = byPath.get(part.header.path)
      if (entry === undefined) continue
      const { error } = part.header
      if (error === undefined) uploads.begin(part.header)
      else onStored(entry, { isGone: error.code === 'not_found', message: error.message })
    } else if (part.kind === 'bytes') await uploads.write(part.bytes)
    else if (entry !== undefined && part.kind === 'broken') {
      await uploads.abandon(new Error('it changed'))
      onStored(entry, { isGone: false, message: 'it changed while it was read' })
    } else if (entry !== undefined) {
      const ended = entry
      await uploads.finish((state) => onStored(ended, { state }))
    }
  }
}

/** Stores files that are received one after the other. */
class Uploads {
  readonly #trees: StoredTrees
  readonly #known: Set<string>
  readonly #signal: AbortSignal
  readonly #storing = new ConcurrentTasks(MAX_CONCURRENT)
  #header: PackHeader | undefined
  /** The bytes of the file so far, while it is small. */
  #pieces: Uint8Array[] = []
  #bytes = 0
  #large: LargeUpload | undefined

  constructor(trees: StoredTrees, known: Set<string>, signal: AbortSignal) {
    this.#trees = trees
    this.#known = known
    this.#signal = signal
  }

  begin(header: PackHeader): void {
    this.#header = header
    this.#pieces = []
    this.#bytes = 0
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.length
    if (this.#bytes <= MAX_SMALL_BYTES) {
      this.#pieces.push(bytes)
      return
    }
    this.#large ??= new LargeUpload(this.#trees, this.#signal)
    for (const piece of [...this.#pieces.splice(0), bytes]) await this.#large.write(piece)
  }

  /** Completes the current file. Waits until another one may begin. */
  async finish(onStored: (state: FileState) => void): Promise<void> {
    const { path = '', mode = 0 } = this.#header ?? {}
    const large = this.#large
    this.#large = undefined
    if (large !== undefined) {
      onStored({ kind: 'file', path, mode, ...(await large.finish()) })
      return
    }
    const content = Buffer.concat(this.#pieces)
    const sha256 = createHash('sha256').update(content).digest('hex')
    const state: FileState = { kind: 'file', path, mode, size: content.length, sha256 }
    if (this.#known.has(sha256)) {
      onStored(state)
      return
    }
    this.#known.add(sha256)
    await this.#storing.add(this.#trees.put(content, this.#signal).then(() => onStored(state)))
  }

  /** Resolves when everything is stored. */
  async drain(): Promise<void> {
    await this.#storing.awaitDone()
  }

  /** Drops the current file. */
  async abandon(error: unknown): Promise<void> {
    await this.#large?.abandon(error)
    this.#large = undefined
    await this.#storing.awaitSettled()
  }
}

/** A file that is stored while it is received. The store reads a piece before the next one is requested. */
class LargeUpload {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #stored: Promise<{ readonly sha256: string; readonly size: number }>

  constructor(trees: StoredTrees, signal: AbortSignal) {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    this.#writer = writable.getWriter()
    this.#writer.closed.catch(() => undefined)
    this.#stored = trees.put(readable, signal)
    this.#stored.catch(() => undefined) // reported when it is awaited
  }

  /** @throws what the store throws. */
  async write(bytes: Uint8Array): Promise<void> {
    const written = this.#writer.write(bytes)
    written.catch(() => undefined)
    // After a failure the store reads no more.
    await Promise.race([written, this.#stored])
  }

  async finish(): Promise<{ readonly sha256: string; readonly size: number }> {
    const ended = this.#writer.close()
    ended.catch(() => undefined)
    return this.#stored
  }

  async abandon(error: unknown): Promise<void> {
    // A write that the store no longer reads never settles, and the abort waits for it.
    this.#writer.abort(error).catch(() => undefined)
    await this.#stored.catch(() => undefined)
  }
}
