import type { FileHandle } from 'node:fs/promises'
import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'

/**
 * Content to store: bytes, a stream of pieces, or a regular file of the host. A string is stored as UTF-8. A file
 * that cannot be read, or that changes while it is read, is refused with `invalid_request`.
 */
export type StoreContent = Uint8Array | string | AsyncIterable<Uint8Array> | { readonly path: string }

/** Content in a store, identified by its digest. */
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

/** A small text under a key, with its version. */
export interface StoreRecord {
  readonly key: string
  readonly text: string
  /** Names this state of the record; a later state has another tag. */
  readonly tag: string
}

/**
 * A place where bytes last: blobs, identified by the digest of their content, and small records, which only a writer who knows
 * their current state can change. Both are in areas, which share nothing. See {@link storeInMemory}, {@link storeInDirectory} and
 * {@link storeInS3}.
 *
 * Every method may throw SandglassError `store_unusable`, `store_unreachable`, `store_damaged` or `no_space`, and TypeError for a
 * malformed area, key or digest.
 */
export interface Store {
  /** The name of the store in messages, such as `the store /srv/store`. */
  readonly name: string
  /** Stores content. Existing content counts as put now. @throws also `too_large`, `aborted`, and the errors of the content. */
  put(area: string, content: StoreContent, options?: TransferOptions): Promise<StoredBlob>
  /**
   * The pieces of a blob; undefined if it does not exist. The last piece is returned only if the content matches its digest.
   * @throws `store_damaged`, while it is read, for content that does not match its digest.
   */
  open(area: string, sha256: string, options?: TransferOptions): Promise<AsyncIterable<Uint8Array> | undefined>
  /**
   * Writes a blob into an empty file of the host; false if it does not exist. Absent where {@link open} is as fast.
   * @throws `store_damaged` for content that does not match its digest: the file then holds the wrong content.
   */
  copyInto?(area: string, sha256: string, file: FileHandle, options?: TransferOptions): Promise<boolean>
  has(area: string, sha256: string): Promise<boolean>
  /** All blobs of an area, and the time since each was last put, in milliseconds. */
  blobs(area: string): AsyncIterable<StoredBlob & { readonly ageMs: number }>
  /** Removes a blob that was last put more than `ageMs` ago; false if it is younger or does not exist. */
  remove(area: string, sha256: string, ageMs: number): Promise<boolean>
  /** The current state of a record; undefined if it was never written. */
  read(area: string, key: string): Promise<StoreRecord | undefined>
  /**
   * Replaces a record whose current tag is `expected`; undefined stands for a record that was never written.
   * @returns the new tag; undefined, without a change, if another writer was faster.
   */
  write(area: string, key: string, text: string, expected: string | undefined): Promise<string | undefined>
  /** All records whose keys are below a prefix of complete segments; without it, all records of the area. */
  records(area: string, prefix?: string): AsyncIterable<StoreRecord>
  close(): Promise<void>
}

/** Bytes of a record, at most. */
export const MAX_RECORD_BYTES: number = 8 * 1024 * 1024

const SEGMENT = /^[a-z0-9][a-z0-9_-]{0,127}$/
const SHA256 = /^[0-9a-f]{64}$/
/** Segments of a key, at most. */
export const MAX_SEGMENTS = 4

/** @throws TypeError for an area that is not a valid directory name on every system. */
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

/** True for a possible key of a record. Other objects in the store belong to other programs. */
export function isKey(key: unknown): key is string {
  const segments = typeof key === 'string' ? key.split('/', MAX_SEGMENTS + 1) : []
  return segments.length > 0 && segments.length <= MAX_SEGMENTS && segments.every((one) => SEGMENT.test(one))
}

/** True for a possible digest of a blob. */
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
  throw new SandglassError(
    'too_large',
    `the record has ${Buffer.byteLength(text)} bytes; the limit of a store is ${MAX_RECORD_BYTES}`,
  )
}
