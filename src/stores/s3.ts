import { createHash, randomUUID } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'
import { intakeOf, verifyContent } from './content.ts'
import { S3Client, type S3StoreOptions } from './s3-client.ts'
import {
  checkArea,
  checkDigest,
  checkRecord,
  isDigest,
  isKey,
  MAX_RECORD_BYTES,
  segmentsOf,
  type Store,
  type StoreContent,
  type StoredBlob,
  type StoreRecord,
  type TransferOptions,
} from './store.ts'

/** S3's limit for one PUT request. */
const MAX_PUT_BYTES = 5 * 1024 ** 3
/** Each state of a record begins with a unique id, so that equal texts have different tags, and a writer recognises its own. */
const ID_LENGTH = 36
/** S3 lists 1,000 objects at a time, with keys of 200 bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
const MAX_PAGES = 10_000
/** Bytes of content that are hashed and passed on at a time. */
const PIECE_BYTES = 256 * 1024
const CONFLICTS: readonly number[] = [404, 409, 412]

/**
 * Keeps everything in a bucket of an S3-compatible server, which must have conditional writes: `If-None-Match` and `If-Match`
 * of PUT; a server without them is refused. The bucket must exist. Needs the npm package aws4fetch; content waits in a temporary file
 * of the host until its digest is known. Every method may also throw SandglassError `store_unreachable`.
 * @throws TypeError for an option that does not exist or has an invalid value.
 */
export function storeInS3(options: S3StoreOptions): Store {
  return new S3Store(new S3Client(options))
}

interface Listed {
  /** Relative to the prefix. */
  readonly key: string
  readonly size: number
  readonly ageMs: number
}

class S3Store implements Store {
  readonly name: string
  readonly #client: S3Client
  #checked: Promise<void> | undefined

  constructor(client: S3Client) {
    this.name = client.name
    this.#client = client
  }

  async put(area: string, content: StoreContent, options: TransferOptions = {}): Promise<StoredBlob> {
    checkArea(area)
    const { pieces, blob, close } = intakeOf(content, {
      ...options,
      maxBytes: Math.min(options.maxBytes ?? Infinity, MAX_PUT_BYTES),
    })
    let directory: string | undefined
    const temporary = async <T>(call: Promise<T>): Promise<T> =>
      call.catch((error: unknown) => {
        throw toTemporaryError(this.name, error)
      })
    try {
      directory = await temporary(mkdtemp(join(tmpdir(), 'sandglass-s3-')))
      const path = join(directory, 'content')
      const file = await temporary(open(path, 'wx', 0o600))
      try {
        for await (const piece of pieces) await temporary(file.writeFile(piece))
      } finally {
        await temporary(file.close())
      }
      const stored = blob()
      const response = await this.#client.send({
        method: 'PUT',
        key: blobKey(area, stored.sha256),
        headers: { 'x-amz-content-sha256': stored.sha256 },
        body: await temporary(openAsBlob(path)),
        signal: options.signal,
      })
      if (!response.ok) throw await this.#client.refusal(response)
      await discard(response)
      return stored
    } finally {
      close()
      if (directory !== undefined) await rm(directory, { recursive: true, force: true })
    }
  }

  async open(
    area: string,
    sha256: string,
    options: TransferOptions = {},
  ): Promise<AsyncIterable<Uint8Array> | undefined> {
    const key = blobKey(checkArea(area), checkDigest(sha256))
    if ((await this.#head(key)) === undefined) return undefined
    const client = this.#client
    async function* pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
      const response = await client.send({ method: 'GET', key, signal: options.signal })
      if (!response.ok) throw await client.refusal(response)
      yield* inLargePieces(client.pieces(response, options.signal))
    }
    return verifyContent(sha256, this.name, pieces(), options)
  }

  async has(area: string, sha256: string): Promise<boolean> {
    return (await this.#head(blobKey(checkArea(area), checkDigest(sha256)))) !== undefined
  }

  async *blobs(area: string): AsyncGenerator<StoredBlob & { readonly ageMs: number }, void, void> {
    const below = `${checkArea(area)}/blobs/`
    for await (const { key, size, ageMs } of this.#list(below)) {
      const sha256 = key.slice(below.length)
      if (isDigest(sha256) && Number.isSafeInteger(size)) yield { sha256, size, ageMs }
    }
  }

  async remove(area: string, sha256: string, ageMs: number): Promise<boolean> {
    const key = blobKey(checkArea(area), checkDigest(sha256))
    const found = await this.#head(key)
    if (found === undefined || ageOf(found.get('last-modified'), found) <= ageMs) return false
    const response = await this.#client.send({ method: 'DELETE', key })
    if (!response.ok && response.status !== 404) throw await this.#client.refusal(response)
    await discard(response)
    return true
  }

  async read(area: string, key: string): Promise<StoreRecord | undefined> {
    const found = await this.#read(recordKey(area, key))
    return found === undefined ? undefined : { key, text: found.body.slice(ID_LENGTH), tag: found.tag }
  }

  async write(area: string, key: string, text: string, expected: string | undefined): Promise<string | undefined> {
    const object = recordKey(area, key)
    checkRecord(text)
    await (this.#checked ??= this.#checkConditions().catch((error: unknown) => {
      this.#checked = undefined
      throw error
    }))
    return this.#write(object, text, expected)
  }

  async *records(area: string, prefix?: string): AsyncGenerator<StoreRecord, void, void> {
    const root = `${checkArea(area)}/records/`
    const below = prefix === undefined ? root : `${recordKey(area, prefix)}/`
    for await (const { key: object } of this.#list(below)) {
      const key = object.slice(root.length)
      const record = isKey(key) ? await this.read(area, key) : undefined
      if (record !== undefined) yield record
    }
  }

  async close(): Promise<void> {}

  async #write(object: string, text: string, expected: string | undefined): Promise<string | undefined> {
    const id = randomUUID()
    const body = `${id}${text}`
    const response = await this.#client.send({
      method: 'PUT',
      key: object,
      headers: {
        'x-amz-content-sha256': createHash('sha256').update(body).digest('hex'),
        ...(expected === undefined ? { 'if-none-match': '*' } : { 'if-match': expected }),
      },
      body,
    })
    if (response.ok) {
      await discard(response)
      return tagOf(response.headers, this.name)
    }
    if (!CONFLICTS.includes(response.status)) throw await this.#client.refusal(response)
    if (/NoSuchBucket/.test(await this.#client.textOf(response)))
      throw new SandglassError('store_unusable', `${this.name} does not exist: create it`)
    // If the first response was lost, the repeated request conflicts with its own write.
    const present = await this.#read(object)
    return present?.body.startsWith(id) === true ? present.tag : undefined
  }

  async #read(object: string): Promise<{ readonly body: string; readonly tag: string } | undefined> {
    const response = await this.#client.send({ method: 'GET', key: object })
    if (response.status === 404) return this.#assertBucket(response)
    if (!response.ok) throw await this.#client.refusal(response)
    const body = await this.#client.textOf(response, MAX_RECORD_BYTES + ID_LENGTH)
    return { body, tag: tagOf(response.headers, this.name) }
  }

  /** @throws SandglassError `store_unusable` if the bucket itself is missing. */
  async #assertBucket(response: Response): Promise<undefined> {
    if (/NoSuchBucket/.test(await this.#client.textOf(response)))
      throw new SandglassError('store_unusable', `${this.name} does not exist: create it`)
    return undefined
  }

  async #head(key: string): Promise<Headers | undefined> {
    const response = await this.#client.send({ method: 'HEAD', key })
    if (response.status === 404) return undefined
    if (!response.ok) throw await this.#client.refusal(response)
    return response.headers
  }

  async *#list(below: string): AsyncGenerator<Listed, void, void> {
    const { prefix } = this.#client
    let token: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const query = { 'list-type': '2', prefix: `${prefix}${below}` }
      const response = await this.#client.send({
        method: 'GET',
        query: token === undefined ? query : { ...query, 'continuation-token': token },
      })
      if (!response.ok) throw await this.#client.refusal(response)
      const text = await this.#client.textOf(response, MAX_PAGE_BYTES)
      for (const entry of entriesOf(text)) {
        const key = elementOf(entry, 'Key')
        if (key?.startsWith(`${prefix}${below}`) !== true) continue
        const ageMs = ageOf(elementOf(entry, 'LastModified'), response.headers)
        yield { key: key.slice(prefix.length), size: Number(elementOf(entry, 'Size')), ageMs }
      }
      const next = elementOf(text, 'NextContinuationToken')
      if (next === undefined) return
      if (next === token) break
      token = next
    }
    throw new SandglassError('store_damaged', `${this.name} sent an endless list of objects`)
  }

  /** Refuses a server that ignores conditions, because it would lose versions. @throws SandglassError `store_unusable`. */
  async #checkConditions(): Promise<void> {
    const object = `probe/${randomUUID()}`
    const first = await this.#write(object, 'first', undefined)
    try {
      const again = await this.#write(object, 'again', undefined)
      const other = await this.#write(object, 'other', '"00000000000000000000000000000000"')
      if (first !== undefined && again === undefined && other === undefined) return
    } finally {
      await discard(await this.#client.send({ method: 'DELETE', key: object }))
    }
    throw new SandglassError(
      'store_unusable',
      `${this.name} cannot be used: it has no conditional writes (If-None-Match and If-Match of PUT)`,
    )
  }
}

/** The error of a call on the temporary directory or the file in it. */
function toTemporaryError(store: string, error: unknown): unknown {
  const errno = errnoOf(error)
  if (errno === undefined) return error
  const where = `the temporary directory ${formatPath(tmpdir())}, where content waits for ${store}`
  const isFull = errno === 'ENOSPC' || errno === 'EDQUOT'
  return isFull
    ? new SandglassError(
        'no_space',
        `no space is left in ${where}: free some space, or set TMPDIR to another directory, then try again`,
        { cause: error },
      )
    : new SandglassError('store_unusable', `${where}, cannot be used: ${errno}; set TMPDIR to another directory`, {
        cause: error,
      })
}

/** Copies the pieces of a response, which may be small and share memory, into larger ones of their own. */
async function* inLargePieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  let large = new Uint8Array(PIECE_BYTES)
  let used = 0
  for await (const piece of pieces) {
    for (let at = 0; at < piece.byteLength;) {
      const part = piece.subarray(at, at + PIECE_BYTES - used)
      large.set(part, used)
      at += part.byteLength
      used += part.byteLength
      if (used < PIECE_BYTES) continue
      yield large
      large = new Uint8Array(PIECE_BYTES)
      used = 0
    }
  }
  if (used > 0) yield large.slice(0, used)
}

/** Cancels the body, because an unread response would keep its connection. */
async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => undefined)
}

function blobKey(area: string, sha256: string): string {
  return `${area}/blobs/${sha256}`
}

function recordKey(area: string, key: string): string {
  return `${checkArea(area)}/records/${segmentsOf(key).join('/')}`
}

function tagOf(headers: Headers, store: string): string {
  const tag = headers.get('etag')
  if (tag !== null) return tag
  throw new SandglassError('store_damaged', `${store} returned a record without an ETag`)
}

/** Computes an age by the server's clock alone. */
function ageOf(modified: string | null | undefined, headers: Headers): number {
  const age = Date.parse(headers.get('date') ?? '') - Date.parse(modified ?? '')
  return Number.isNaN(age) ? -Infinity : age
}

function* entriesOf(xml: string): Generator<string, void, void> {
  for (let at = xml.indexOf('<Contents>'); at !== -1;) {
    const next = xml.indexOf('<Contents>', at + 1)
    yield next === -1 ? xml.slice(at) : xml.slice(at, next)
    at = next
  }
}

function elementOf(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`)
  const end = xml.indexOf(`</${name}>`, start)
  if (start === -1 || end === -1) return undefined
  return xml
    .slice(start + name.length + 2, end)
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
