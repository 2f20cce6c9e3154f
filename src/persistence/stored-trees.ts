import { SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'
import type { Store, StoreContent, StoredBlob } from '../stores/index.ts'
import type { WorkspaceLease } from './lease.ts'
import { type EntryState, type FileState, formatManifest, MAX_MANIFEST_BYTES, parseManifest } from './manifest.ts'
import { areaOf, type TreeState } from './record.ts'

/**
 * Minimum age of unused content before its removal: an owner that was suspended in the middle of a removal must
 * not remove what the next owner has just stored.
 */
const MIN_AGE_MS = 600_000

/** The files and manifests of one workspace in a store. */
export class StoredTrees {
  readonly #store: Store
  readonly #area: string
  readonly #id: string

  constructor(store: Store, id: string) {
    this.#store = store
    this.#area = areaOf(id)
    this.#id = id
  }

  /** Stores the content of a file. @throws SandglassError of the store, and the errors of the content. */
  put(content: StoreContent, signal?: AbortSignal): Promise<StoredBlob> {
    return this.#store.put(this.#area, content, signal === undefined ? {} : { signal })
  }

  /** The content of a file. @throws SandglassError `store_damaged`, also while it is read, and those of the store. */
  async open({ path, sha256, size }: FileState, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const options = { maxBytes: size, ...(signal === undefined ? {} : { signal }) }
    const found = await this.#store.open(this.#area, sha256, options)
    if (found !== undefined) return found
    throw new SandglassError(
      'store_damaged',
      `${this.#store.name} has lost the content of ${formatPath(path)} in workspace ${JSON.stringify(this.#id)}`,
    )
  }

  /** Stores a manifest whose files are already stored. */
  async save(entries: Iterable<EntryState>, at: Date, signal?: AbortSignal): Promise<TreeState> {
    let files = 0
    let bytes = 0
    const countEntries = function* (): Generator<EntryState, void, void> {
      for (const entry of entries) {
        if (entry.kind === 'file') {
          files += 1
          bytes += entry.size
        }
        yield entry
      }
    }
    const { sha256 } = await this.#store.put(this.#area, formatManifest(countEntries()), {
      maxBytes: MAX_MANIFEST_BYTES,
      ...(signal === undefined ? {} : { signal }),
    })
    return { sha256, files, bytes, at: at.toISOString() }
  }

  /** The entries of a state, by path. @throws SandglassError `store_damaged`, and those of the store. */
  async load({ sha256 }: TreeState, signal?: AbortSignal): Promise<Map<string, EntryState>> {
    const options = { maxBytes: MAX_MANIFEST_BYTES, ...(signal === undefined ? {} : { signal }) }
    const found = await this.#store.open(this.#area, sha256, options)
    if (found !== undefined) return parseManifest(found, this.#store.name)
    throw new SandglassError(
      'store_damaged',
      `${this.#store.name} has lost a manifest of workspace ${JSON.stringify(this.#id)}`,
    )
  }

  /** Removes content that no state of the record needs. The lease must be held. */
  async prune({ record }: WorkspaceLease): Promise<void> {
    const old: string[] = []
    for await (const { sha256, ageMs } of this.#store.blobs(this.#area)) if (ageMs > MIN_AGE_MS) old.push(sha256)
    if (old.length === 0) return
    const needed = new Set<string>()
    for (const state of [...(record.tree === null ? [] : [record.tree]), ...record.checkpoints]) {
      if (needed.has(state.sha256)) continue
      needed.add(state.sha256)
      for (const entry of (await this.load(state)).values()) if (entry.kind === 'file') needed.add(entry.sha256)
    }
    for (const sha256 of old) if (!needed.has(sha256)) await this.#store.remove(this.#area, sha256, MIN_AGE_MS)
  }

  /** Removes all content. The lease must be held, and the record must have no states. */
  async clear(): Promise<void> {
    const all: string[] = []
    for await (const { sha256 } of this.#store.blobs(this.#area)) all.push(sha256)
    for (const sha256 of all) await this.#store.remove(this.#area, sha256, 0)
  }
}
