import { constants, readdirSync } from 'node:fs'
import { open, readdir, stat, truncate, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { type DurableFiles, linkNew, syncDirectory } from './durable-files.ts'
import { checkRecord, isSegment, MAX_RECORD_BYTES, MAX_SEGMENTS, segmentsOf, type StoreRecord } from './store.ts'

/** No segment of a key begins like this. */
const MARK = '='
const DIGITS = 12
const GENERATION = /^=[0-9]{12}$/
/** Old generations stay as empty files for this time, so that a slow writer finds its generation taken. */
const KEPT_MS = 600_000
/** Maximum number of empty files that one write removes. */
const REMOVED_AT_ONCE = 8
const MAX_ATTEMPTS = 1000

/**
 * Stores each record as a directory. Each state of a record is a file of its own, named by its generation; the highest one counts. A
 * writer links its file to the name of the generation after the one it read, which succeeds for one writer only, on network file
 * systems, too. No lock is held that could outlive its holder.
 */
export class DirectoryRecords {
  readonly #files: DurableFiles

  constructor(files: DurableFiles) {
    this.#files = files
  }

  async read(root: string, key: string): Promise<StoreRecord | undefined> {
    const directory = join(root, ...segmentsOf(key))
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const latest = generationsIn(directory).at(-1)
      if (latest === undefined) return undefined
      const text = await readText(join(directory, latest))
      // Empty: later writers have replaced and truncated this state.
      if (text !== '') return { key, text, tag: latest.slice(MARK.length) }
    }
    throw new SandglassError(
      'store_damaged',
      `the record ${key} in ${root} has no content: restore it from a copy, or remove it`,
    )
  }

  async write(root: string, key: string, text: string, expected: string | undefined): Promise<string | undefined> {
    const directory = join(root, ...segmentsOf(key))
    const aside = await this.#files.writeAside([Buffer.from(checkRecord(text))])
    try {
      if (expected === undefined) await this.#files.prepare(directory)
      const began = performance.now()
      const generations = generationsIn(directory)
      const latest = generations.at(-1)
      if (latest?.slice(MARK.length) !== expected) return undefined
      const next = String(Number(expected ?? 0) + 1).padStart(DIGITS, '0')
      if (!linkNew(aside, join(directory, `${MARK}${next}`))) return undefined
      if (performance.now() - began > KEPT_MS / 2)
        throw new SandglassError(
          'store_unusable',
          `writing the record ${key} took more than ${KEPT_MS / 2} ms, so it may or may not be written; read it, then try again`,
        )
      await syncDirectory(directory)
      // The previous state stays for readers who have just listed it.
      await this.#empty(directory, generations.slice(0, -1))
      return next
    } finally {
      await this.#files.discard(aside)
    }
  }

  async *all(root: string, prefix?: string): AsyncGenerator<StoreRecord, void, void> {
    yield* this.#below(root, prefix === undefined ? [] : segmentsOf(prefix), prefix === undefined)
  }

  async *#below(
    root: string,
    segments: readonly string[],
    isIncluded: boolean,
  ): AsyncGenerator<StoreRecord, void, void> {
    const names = await namesIn(join(root, ...segments))
    if (isIncluded && segments.length > 0 && names.some(isGeneration)) {
      const record = await this.read(root, segments.join('/'))
      if (record !== undefined) yield record
    }
    if (segments.length === MAX_SEGMENTS) return
    for (const name of names) if (isSegment(name)) yield* this.#below(root, [...segments, name], true)
  }

  async #empty(directory: string, old: readonly string[]): Promise<void> {
    const newest = old.at(-1)
    if (newest === undefined) return
    try {
      await truncate(join(directory, newest))
      const now = await this.#files.now()
      for (const name of old.slice(0, REMOVED_AT_ONCE)) {
        const path = join(directory, name)
        const { size, mtimeMs } = await stat(path)
        if (now - mtimeMs < KEPT_MS) break
        await (size === 0 ? unlink(path) : truncate(path))
      }
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error // another writer was faster
    }
  }
}

function isGeneration(name: string): boolean {
  return GENERATION.test(name)
}

function generationsIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter(isGeneration).toSorted()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown): string[] => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return []
    throw error
  })
}

/** The text of a file; empty if it was removed. @throws SandglassError `store_damaged` for a file that cannot be a record. */
async function readText(path: string): Promise<string> {
  try {
    // Non-blocking, because opening a FIFO in its place would wait for a writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile() || found.size > MAX_RECORD_BYTES)
      throw new SandglassError('store_damaged', `${path} is not a record of a store: remove it`)
    return await file.readFile('utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return ''
    throw error
  }
}
