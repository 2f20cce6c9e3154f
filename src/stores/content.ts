import { createHash } from 'node:crypto'
import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import type { StoreContent, StoredBlob, TransferOptions } from './store.ts'

/** Content on its way into a store: its pieces, and its name once they were read. */
export interface Intake {
  readonly pieces: AsyncIterable<Uint8Array>
  /** The content that was read so far. */
  readonly blob: () => StoredBlob
}

/** Counts and hashes pieces while a driver reads them. @throws SandglassError `too_large`, `aborted`; TypeError for no content. */
export function intakeOf(content: StoreContent, { maxBytes = Infinity, signal }: TransferOptions = {}): Intake {
  const hash = createHash('sha256')
  let size = 0
  const source = piecesOf(content)
  async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
    refuseAborted(signal)
    for await (const piece of source) {
      refuseAborted(signal)
      if (!(piece instanceof Uint8Array)) throw new TypeError(`content: a piece is ${formatValue(piece)}, not bytes`)
      size += piece.byteLength
      if (size > maxBytes) throw tooLarge(maxBytes)
      hash.update(piece)
      yield piece
    }
  }
  return { pieces: pieces(), blob: () => ({ sha256: hash.copy().digest('hex'), size }) }
}

/**
 * Passes the pieces of a blob on, and holds back the last one until the digest fits.
 * @throws SandglassError `store_damaged`, also for more than `maxBytes`; `aborted`.
 */
export async function* verified(
  sha256: string,
  store: string,
  pieces: AsyncIterable<Uint8Array>,
  { maxBytes = Infinity, signal }: TransferOptions = {},
): AsyncGenerator<Uint8Array, void, void> {
  const hash = createHash('sha256')
  let size = 0
  let held: Uint8Array | undefined
  refuseAborted(signal)
  for await (const piece of pieces) {
    refuseAborted(signal)
    size += piece.byteLength
    if (size > maxBytes) throw damaged(sha256, store)
    if (held !== undefined) yield held
    hash.update(piece)
    held = piece
  }
  if (hash.digest('hex') !== sha256) throw damaged(sha256, store)
  if (held !== undefined) yield held
}

/** @throws SandglassError `aborted`. */
export function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true)
    throw new SandglassError('aborted', 'the transfer was aborted', { cause: signal.reason })
}

function damaged(sha256: string, store: string): SandglassError {
  return new SandglassError(
    'store_damaged',
    `${store} gave other content for the blob ${sha256}: save what it belongs to again`,
  )
}

function tooLarge(maxBytes: number): SandglassError {
  return new SandglassError('too_large', `the content has more than ${maxBytes} bytes, which is the limit`)
}

function piecesOf(content: StoreContent): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (typeof content === 'string') return [new TextEncoder().encode(content)]
  if (content instanceof Uint8Array) return [content]
  if (typeof content === 'object' && content !== null && Symbol.asyncIterator in content) return content
  throw new TypeError(`content: must be bytes, a string or a stream of bytes, not ${formatValue(content)}`)
}
