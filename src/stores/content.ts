import { setImmediate } from 'node:timers/promises'
import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import { Digest, HashedPieces } from './digest.ts'
import { readFileContent } from './file-source.ts'
import type { StoreContent, StoredBlob, TransferOptions } from './store.ts'

/** Content that is being stored: its pieces, and its digest once they were read. */
export interface Intake {
  /** Each piece stays valid until the second piece after it is requested, or the intake is closed. */
  readonly pieces: AsyncIterable<Uint8Array>
  /** The content, once all pieces were read. */
  readonly blob: () => StoredBlob
  /** True for the error with which the source, not the store, failed. */
  readonly isOfSource: (error: unknown) => boolean
  /** Ends the source, even if not all pieces were read. No piece may be used afterwards. */
  readonly close: () => void
}

/** Bytes that are hashed in one go, without a pause for other work of this process. */
const SLICE_BYTES = 4 * 1024 * 1024
/** Number of pieces that are read ahead, so that neither the disk nor the digest waits for the reader. */
const READ_AHEAD = 3

/** Counts and hashes pieces while a driver reads them. @throws SandglassError `too_large`, `aborted`; TypeError for no content. */
export function intakeOf(content: StoreContent, { maxBytes = Infinity, signal }: TransferOptions = {}): Intake {
  let size = 0
  let sha256: string | undefined
  let failure: { readonly error: unknown } | undefined
  const given = piecesOf(content, signal)
  const digest = new Digest()
  async function* source(): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const piece of given.pieces) {
        if (!(piece instanceof Uint8Array))
          throw new TypeError(`content: a piece of the stream is ${formatValue(piece)}, not bytes`)
        for (let at = 0; at < piece.byteLength; at += SLICE_BYTES) {
          if (at > 0) await setImmediate()
          yield piece.subarray(at, at + SLICE_BYTES)
        }
      }
    } catch (error) {
      failure = { error }
      throw error
    }
  }
  async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
    throwIfAborted(signal)
    for await (const piece of source()) {
      throwIfAborted(signal)
      size += piece.byteLength
      if (size > maxBytes) throw tooLarge(maxBytes)
      yield* digest.take(piece)
    }
    yield* digest.rest()
    sha256 = await digest.end()
  }
  return {
    pieces: pieces(),
    blob() {
      if (sha256 === undefined) throw new Error('the content was not read to its end')
      return { sha256, size }
    },
    isOfSource: (error) => failure !== undefined && failure.error === error,
    close() {
      digest[Symbol.dispose]()
      given.close()
    },
  }
}

/**
 * Passes the pieces of a blob on, and holds back the last ones until the digest has been verified.
 * @param pieces each has a buffer of its own, which nobody else uses.
 * @throws SandglassError `store_damaged`, also for more than `maxBytes`; `aborted`.
 */
export async function* verifyContent(
  sha256: string,
  store: string,
  pieces: AsyncIterable<Uint8Array<ArrayBuffer>>,
  { maxBytes = Infinity, signal }: TransferOptions = {},
): AsyncGenerator<Uint8Array, void, void> {
  using hashed = new HashedPieces()
  let size = 0
  throwIfAborted(signal)
  for await (const piece of pieces) {
    throwIfAborted(signal)
    size += piece.byteLength
    if (size > maxBytes) throw damagedError(sha256, store)
    await hashed.push(piece)
    const next = hashed.length > READ_AHEAD ? await hashed.shift() : undefined
    if (next !== undefined) yield next
  }
  if ((await hashed.end()) !== sha256) throw damagedError(sha256, store)
  for (let next = await hashed.shift(); next !== undefined; next = await hashed.shift()) yield next
}

/** @throws SandglassError `aborted`. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortedBy(signal)
}

function abortedBy(signal: AbortSignal | undefined): SandglassError {
  return new SandglassError('aborted', 'the transfer was aborted', { cause: signal?.reason })
}

/** The error for content that does not match its digest. */
export function damagedError(sha256: string, store: string): SandglassError {
  return new SandglassError(
    'store_damaged',
    `${store} returned content that does not match the blob ${sha256}: save the artifact or file that it belongs to again`,
  )
}

function tooLarge(maxBytes: number): SandglassError {
  return new SandglassError('too_large', `the content exceeds the limit of ${maxBytes} bytes`)
}

interface Source {
  readonly pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  readonly close: () => void
}

function piecesOf(content: StoreContent, signal: AbortSignal | undefined): Source {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  if (bytes instanceof Uint8Array) return { pieces: [bytes], close: () => {} }
  if (typeof bytes === 'object' && bytes !== null) {
    // Check this first, because a stream of a file also has a path.
    if (Symbol.asyncIterator in bytes) return begin(bytes, signal)
    if (typeof bytes.path === 'string') return begin(readFileContent(bytes.path), signal)
  }
  throw new TypeError(`content: must be bytes, a string, a stream of bytes or { path }, not ${formatValue(bytes)}`)
}

/** Requests the first piece at once: a stream of Node that fails while nobody reads it ends the process. */
function begin(content: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Source {
  const iterator = content[Symbol.asyncIterator]()
  let stop: (error: SandglassError) => void = () => {}
  const onAbort = (): void => stop(abortedBy(signal))
  signal?.addEventListener('abort', onAbort, { once: true })
  // A source may wait for its next piece forever. `Promise.race` with one promise of the signal would keep every piece in memory.
  const next = async (): Promise<IteratorResult<Uint8Array>> =>
    new Promise((resolve, reject) => {
      stop = reject
      iterator.next().then(resolve, reject)
    })
  const first = next()
  first.catch(() => undefined) // rethrown to the reader
  async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
    for (let step = await first; step.done !== true; step = await next()) yield step.value
  }
  return {
    pieces: pieces(),
    close() {
      signal?.removeEventListener('abort', onAbort)
      void iterator.return?.().catch(() => undefined)
    },
  }
}
