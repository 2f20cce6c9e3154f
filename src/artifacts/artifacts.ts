import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandglassError } from '../errors/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import type { Store, StoreContent, StoredBlob } from '../stores/index.ts'
import { currentArtifactSession } from './context.ts'
import { writeNewFile } from './new-file.ts'
import { checkArtifactName, checkMimeType, checkSession, checkVersion, isUserArtifact } from './names.ts'
import type {
  ArtifactInfo,
  ArtifactOptions,
  ArtifactService,
  ArtifactSession,
  DeleteArtifactOptions,
  LoadArtifactOptions,
  LoadedArtifact,
  OpenedArtifact,
  SaveArtifactOptions,
  SaveToOptions,
} from './service.ts'
import { formatVersions, MAX_VERSIONS, parseVersions, type Versions } from './versions.ts'

/** Options of {@link createArtifactService}. */
export interface ArtifactServiceOptions {
  /** Maximum size of one version, in bytes. Default 4 GiB. */
  readonly maxBytes?: number
}

const AREA = 'artifacts'
const MiB = 1024 ** 2
const MAX_BYTES = 4096 * MiB
const MAX_LOAD_BYTES = 256 * MiB
const DEFAULT_MIME_TYPE = 'application/octet-stream'
/** Younger content stays, even if no version has it: a save may be in progress. */
const MIN_AGE_MS = 3_600_000
/** Attempts to be faster than other writers of the same artifact. One of them succeeds each time. */
const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20

/**
 * Artifacts in a store. Many services may use one store at once, in one process or in several.
 * @throws TypeError for an option that does not exist or has an invalid value.
 */
export function createArtifactService(store: Store, options: ArtifactServiceOptions = {}): ArtifactService {
  if (typeof store?.put !== 'function') throw new TypeError(`store: must be a Store, not ${formatValue(store)}`)
  refuseUnknown('createArtifactService', options, ['maxBytes'])
  const { maxBytes = MAX_BYTES } = options
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
    throw new TypeError(`maxBytes ${formatValue(maxBytes)}: must be a whole number of at least 0`)
  return new StoredArtifacts(store, maxBytes)
}

class StoredArtifacts implements ArtifactService {
  readonly #store: Store
  readonly #maxBytes: number

  constructor(store: Store, maxBytes: number) {
    this.#store = store
    this.#maxBytes = maxBytes
  }

  async save(name: string, content: StoreContent, options: SaveArtifactOptions = {}): Promise<ArtifactInfo> {
    const key = keyOf(checkArtifactName(name), sessionOf(options))
    const given = options.mimeType === undefined ? undefined : checkMimeType(options.mimeType)
    const { signal } = options
    const blob = await this.#store.put(AREA, content, {
      maxBytes: this.#maxBytes,
      ...(signal === undefined ? {} : { signal }),
    })
    const mimeType = given ?? (await mimeTypeOf(name))
    const saved = await this.#change(name, key, signal, (present) => appendVersion(present, mimeType, blob))
    await this.#assertKept(blob)
    return saved
  }

  async load(name: string, options: LoadArtifactOptions = {}): Promise<LoadedArtifact> {
    const info = await this.#find(name, options)
    if (info.size > MAX_LOAD_BYTES)
      throw new SandglassError(
        'too_large',
        `artifact ${formatValue(name)} has ${info.size} bytes, more than ${MAX_LOAD_BYTES}: open it as a stream`,
      )
    const data = new Uint8Array(info.size)
    let at = 0
    for await (const piece of await this.#contentOf(info, options.signal)) {
      data.set(piece, at)
      at += piece.byteLength
    }
    if (at < info.size)
      throw new SandglassError(
        'store_damaged',
        `${this.#store.name} has ${at} bytes of artifact ${formatValue(name)}, version ${info.version}, not ${info.size}: save it again, or delete this version`,
      )
    return { ...info, data }
  }

  async open(name: string, options: LoadArtifactOptions = {}): Promise<OpenedArtifact> {
    const info = await this.#find(name, options)
    return { ...info, stream: ReadableStream.from(await this.#contentOf(info, options.signal)) }
  }

  async saveTo(name: string, path: string, options: SaveToOptions = {}): Promise<ArtifactInfo> {
    const { overwrite = false, signal } = options
    const info = await this.#find(name, options)
    await writeNewFile(path, overwrite, async (file) => {
      if (this.#store.copyInto === undefined) {
        for await (const piece of await this.#contentOf(info, signal)) await file.writeFile(piece)
        return
      }
      const bounds = { maxBytes: info.size, ...(signal === undefined ? {} : { signal }) }
      if (!(await this.#store.copyInto(AREA, info.sha256, file, bounds))) throw this.#lostError(info)
    })
    return info
  }

  async list(options: ArtifactOptions = {}): Promise<readonly ArtifactInfo[]> {
    const session = sessionOf(options)
    throwIfAborted(options.signal)
    const latest: ArtifactInfo[] = []
    for (const scope of [sessionScope(session), userScope(session)]) {
      for await (const record of this.#store.records(AREA, scope)) {
        throwIfAborted(options.signal)
        const { name, versions } = parseVersions(record, this.#store.name)
        if (keyOf(name, session) !== record.key) throw this.#foreignError(`the key ${record.key}`)
        const newest = versions.at(-1)
        if (newest !== undefined) latest.push(newest)
      }
    }
    return latest.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  async versions(name: string, options: ArtifactOptions = {}): Promise<readonly ArtifactInfo[]> {
    const key = keyOf(checkArtifactName(name), sessionOf(options))
    throwIfAborted(options.signal)
    return (await this.#read(name, key)).present.versions
  }

  async delete(name: string, options: DeleteArtifactOptions = {}): Promise<readonly ArtifactInfo[]> {
    const key = keyOf(checkArtifactName(name), sessionOf(options))
    const version = checkVersion(options.version)
    return this.#change(name, key, options.signal, (present) => {
      const isDeleted = (one: ArtifactInfo): boolean => version === undefined || one.version === version
      const deleted = present.versions.filter(isDeleted)
      if (deleted.length === 0) return { answer: deleted }
      return { answer: deleted, next: { ...present, versions: present.versions.filter((one) => !isDeleted(one)) } }
    })
  }

  async prune(): Promise<number> {
    const old: StoredBlob[] = []
    // Blobs first, so that a version that is saved meanwhile counts.
    for await (const blob of this.#store.blobs(AREA)) if (blob.ageMs > MIN_AGE_MS) old.push(blob)
    const named = new Set<string>()
    for await (const record of this.#store.records(AREA)) {
      for (const { sha256 } of parseVersions(record, this.#store.name).versions) named.add(sha256)
    }
    let bytes = 0
    for (const { sha256, size } of old) {
      if (!named.has(sha256) && (await this.#store.remove(AREA, sha256, MIN_AGE_MS))) bytes += size
    }
    return bytes
  }

  /** Applies a change to the record of an artifact, and tries again when another writer was faster. */
  async #change<T>(
    name: string,
    key: string,
    signal: AbortSignal | undefined,
    change: (present: Versions) => { readonly answer: T; readonly next?: Versions },
  ): Promise<T> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      throwIfAborted(signal)
      const { present, tag } = await this.#read(name, key)
      const { answer, next } = change(present)
      if (next === undefined) return answer
      if ((await this.#store.write(AREA, key, formatVersions(next), tag)) !== undefined) return answer
      await sleep(Math.random() * Math.min(attempt, MAX_PAUSE_MS))
    }
    throw new SandglassError(
      'store_unusable',
      `artifact ${formatValue(name)}: other writers were faster ${MAX_ATTEMPTS} times; try again`,
    )
  }

  async #read(name: string, key: string): Promise<{ readonly present: Versions; readonly tag: string | undefined }> {
    const record = await this.#store.read(AREA, key)
    if (record === undefined) return { present: { name, next: 0, versions: [] }, tag: undefined }
    const present = parseVersions(record, this.#store.name)
    if (present.name === name) return { present, tag: record.tag }
    throw this.#foreignError(formatValue(name))
  }

  #foreignError(place: string): SandglassError {
    return new SandglassError(
      'store_damaged',
      `${this.#store.name} returned the record of another artifact for ${place}: restore it from a copy, or remove it`,
    )
  }

  async #find(name: string, options: LoadArtifactOptions): Promise<ArtifactInfo> {
    const version = checkVersion(options.version)
    const versions = await this.versions(name, options)
    const found = version === undefined ? versions.at(-1) : versions.find((one) => one.version === version)
    if (found !== undefined) return found
    const shown = formatValue(name)
    const [oldest] = versions
    throw new SandglassError(
      'artifact_not_found',
      oldest === undefined
        ? `this session has no artifact ${shown}; list() returns those that it has`
        : `artifact ${shown} has no version ${version}; it has ${rangeText(versions)}`,
    )
  }

  async #contentOf(info: ArtifactInfo, signal: AbortSignal | undefined): Promise<AsyncIterable<Uint8Array>> {
    const options = { maxBytes: info.size, ...(signal === undefined ? {} : { signal }) }
    const found = await this.#store.open(AREA, info.sha256, options)
    if (found !== undefined) return found
    throw this.#lostError(info)
  }

  #lostError({ name, version }: ArtifactInfo): SandglassError {
    return new SandglassError(
      'store_damaged',
      `${this.#store.name} has lost the content of artifact ${formatValue(name)}, version ${version}: save it again, or delete this version`,
    )
  }

  /** Checks that `prune` has not removed the content of a save that was suspended for more than an hour. */
  async #assertKept({ sha256 }: StoredBlob): Promise<void> {
    if (await this.#store.has(AREA, sha256)) return
    throw new SandglassError('store_damaged', `${this.#store.name} lost the content while it was saved: save it again`)
  }
}

function appendVersion(
  present: Versions,
  mimeType: string,
  { sha256, size }: StoredBlob,
): { readonly answer: ArtifactInfo; readonly next: Versions } {
  const { name, next, versions } = present
  if (versions.length >= MAX_VERSIONS)
    throw new SandglassError(
      'too_large',
      `artifact ${formatValue(name)} has ${MAX_VERSIONS} versions, which is the limit: delete some`,
    )
  const answer = { name, version: next, mimeType, size, sha256, savedAt: new Date().toISOString() }
  return { answer, next: { name, next: next + 1, versions: [...versions, answer] } }
}

/** @throws SandglassError `aborted`. */
function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new SandglassError('aborted', 'the call was aborted', { cause: signal.reason })
}

function rangeText(versions: readonly ArtifactInfo[]): string {
  const [first, last] = [versions[0]?.version, versions.at(-1)?.version]
  return first === last ? `version ${first} only` : `${versions.length} versions, from ${first} to ${last}`
}

async function mimeTypeOf(name: string): Promise<string> {
  const { default: mime } = await import('mime')
  return mime.getType(name) ?? DEFAULT_MIME_TYPE
}

function sessionOf({ session }: ArtifactOptions): ArtifactSession {
  return session === undefined ? currentArtifactSession() : checkSession(session)
}

function keyOf(name: string, session: ArtifactSession): string {
  return `${isUserArtifact(name) ? userScope(session) : sessionScope(session)}/${digestOf(name)}`
}

function sessionScope({ appName = '', userId = '', sessionId = '' }: ArtifactSession): string {
  return digestOf(JSON.stringify(['session', appName, userId, sessionId]))
}

function userScope({ appName = '', userId = '' }: ArtifactSession): string {
  return digestOf(JSON.stringify(['user', appName, userId]))
}

/** Turns a name of the caller into one that every store accepts. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
