import type { FileHandle } from 'node:fs/promises'
import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'

/**
 * Bytes to store: all of them, pieces that are read one at a time, or a regular file of the host. A string is stored as UTF-8. A file
 * that cannot be read, or that changes meanwhile, is refused with `invalid_request`.
 */
export type StoreContent = Uint8Array | string | AsyncIterable<Uint8Array> | { readonly path: string }

/** Content that a store has, named by its digest. */
export interface StoredBlob {
  /** SHA-256 of the content, in hexadecimal. */
  readonly sha256: string
  /** Bytes of the content. */
  readonly size: number
}

/** Options of a transfer. */
export interface TransferOptions {
  /** Bytes of content, at most. More is refused by `put` with `too_large`, by `open` with `store_damaged`. Default: no limit. */
  readonly maxBytes?: number
  /** Ends the transfer with the error `aborted`. */
  readonly signal?: AbortSignal
}

/** A small text under a key, and the version of it. */
export interface StoreRecord {
  readonly key: string
  readonly text: string
  /** Names this state of the record; a later state has another tag. */
  readonly tag: string
}

/**
 * A place where bytes last: blobs, named by the digest of their content, and small records, changed only by writers who know
 * their present state. Both lie in areas, which share nothing. See {@link storeInMemory}, {@link storeInDirectory} and
 * {@link storeInS3}.
 *
 * Every method may throw SandglassError `store_unusable`, `store_unreachable`, `store_damaged` or `no_space`, and TypeError for a
 * malformed area, key or digest.
 */
export interface Store {
  /** The store in messages, such as `the store /srv/store`. */
  readonly name: string
  /** Stores content. Content that is already there counts as put now. @throws also `too_large`, `aborted`, and what the content throws. */
  put(area: string, content: StoreContent, options?: TransferOptions): Promise<StoredBlob>
  /**
   * The pieces of a blob; undefined if it is not there. The last piece is given only if the content fits its name.
   * @throws `store_damaged`, while it is read, for content that does not fit its name.
   */
  open(area: string, sha256: string, options?: TransferOptions): Promise<AsyncIterable<Uint8Array> | undefined>
  /**
   * Writes a blob into an empty file of the host; false if it is not there. Absent where the pieces of {@link open} are as fast.
   * @throws `store_damaged` for content that does not fit its name: the file then holds something else.
   */
  copyInto?(area: string, sha256: string, file: FileHandle, options?: TransferOptions): Promise<boolean>
  has(area: string, sha256: string): Promise<boolean>
  /** All blobs of an area, and how long ago each was put the last time, in milliseconds. */
  blobs(area: string): AsyncIterable<StoredBlob & { readonly ageMs: number }>
  /** Removes a blob if it was put longer ago than `ageMs`; false if it was not, or is not there. */
  remove(area: string, sha256: string, ageMs: number): Promise<boolean>
  /** The present state of a record; undefined if it was never written. */
  read(area: string, key: string): Promise<StoreRecord | undefined>
  /**
   * Replaces a record whose present tag is `expected`; undefined stands for a record that was never written.
   * @returns the new tag, or undefined, and nothing is changed, if another writer was faster.
   */
  write(area: string, key: string, text: string, expected: string | undefined): Promise<string | undefined>
  /** All records whose keys lie below a prefix, which is one or more whole segments; all of the area without it. */
  records(area: string, prefix?: string): AsyncIterable<StoreRecord>
  close(): Promise<void>
}

/** Bytes of a record, at most. */
export const MAX_RECORD_BYTES: number = 8 * 1024 * 1024

const SEGMENT = /^[a-z0-9][a-z0-9_-]{0,127}$/
const SHA256 = /^[0-9a-f]{64}$/
/** Segments of a key, at most. */
export const MAX_SEGMENTS = 4

/** @throws TypeError for an area that cannot be the name of a directory everywhere. */
export function checkArea(area: string): string {
  if (typeof area === 'string' && SEGMENT.test(area)) return area
  throw new TypeError(`area ${formatValue(area)}: must be 1 to 128 of a-z, 0-9, _ and -`)
}

/** True for a text that can be a segment of a key. */
export function isSegment(text: string): boolean {
  return SEGMENT.test(text)
}

/** The segments of a key or of a prefix. @throws TypeError. */
export function segmentsOf(key: string): readonly string[] {
  if (isKey(key)) return key.split('/')
  throw new TypeError(
    `key ${formatValue(key)}: must be 1 to ${MAX_SEGMENTS} segments of a-z, 0-9, _ and -, with / between`,
  )
}

/** True for what can be the key of a record. Others in the place of a store are not of this program. */
export function isKey(key: unknown): key is string {
  const segments = typeof key === 'string' ? key.split('/', MAX_SEGMENTS + 1) : []
  return segments.length > 0 && segments.length <= MAX_SEGMENTS && segments.every((one) => SEGMENT.test(one))
}

/** True for what can be the name of a blob. */
export function isDigest(sha256: unknown): sha256 is string {
  return typeof sha256 === 'string' && SHA256.test(sha256)
}

/** @throws TypeError. */
export function checkDigest(sha256: string): string {
  if (isDigest(sha256)) return sha256
  throw new TypeError(`sha256 ${formatValue(sha256)}: must be 64 of 0-9 and a-f`)
}

/** @throws SandglassError `too_large`. */
export function checkRecord(text: string): string {
  if (Buffer.byteLength(text) <= MAX_RECORD_BYTES) return text
  throw new SandglassError('too_large', `a record of a store has at most ${MAX_RECORD_BYTES} bytes`)
}
