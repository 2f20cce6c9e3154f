import { isUint8Array } from 'node:util/types'
import { messageOf, SandglassError } from '../errors/index.ts'
import { formatValue, piecesUntil } from '../support/index.ts'
import { invalid } from './invalid.ts'

const MAX_STDIN_BYTES = 16 * 1024 * 1024

/** Checks the standard input of a script and converts text to bytes. @throws SandglassError `invalid_request` */
export function checkStdin(given: unknown): Uint8Array {
  if (typeof given !== 'string' && !isUint8Array(given))
    throw invalid('stdin', `${formatValue(given)} is neither a string, nor bytes, nor an async iterable of them`)
  const bytes = typeof given === 'string' ? Buffer.from(given) : given
  if (bytes.length > MAX_STDIN_BYTES) throw tooLongError(`${bytes.length} bytes`)
  return bytes
}

/** True for a stream, which {@link readStdin} reads. A stream can be used for one script only. */
export function isStdinStream(given: unknown): given is AsyncIterable<unknown> {
  return typeof given === 'object' && given !== null && !isUint8Array(given) && Symbol.asyncIterator in given
}

/**
 * Reads a stream to its end, or stops reading as soon as it is too long.
 * @throws SandglassError `invalid_request` if it fails or does not end within `timeoutSec`, `aborted`
 */
export async function readStdin(
  stream: AsyncIterable<unknown>,
  { timeoutSec, signal }: { readonly timeoutSec: number; readonly signal?: AbortSignal | undefined },
): Promise<Uint8Array> {
  const over = Promise.withResolvers<never>()
  // The rejection may come before `piecesUntil` handles it.
  over.promise.catch(() => undefined)
  let left: SandglassError | undefined
  const leave = (error: SandglassError): void => {
    left ??= error
    over.reject(error)
  }
  const onAbort = (): void => leave(new SandglassError('aborted', 'the run was aborted while its stdin was read'))
  const timer = setTimeout(
    () => leave(invalid('stdin', `the stream did not end within ${timeoutSec} s`)),
    timeoutSec * 1000,
  )
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  try {
    const bytes = await gather(piecesUntil(stream, over.promise))
    if (left !== undefined) throw left
    return bytes
  } catch (error) {
    throw error instanceof SandglassError ? error : invalid('stdin', `the stream failed: ${messageOf(error)}`)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function gather(pieces: AsyncIterable<unknown>): Promise<Uint8Array> {
  const held: Uint8Array[] = []
  let size = 0
  for await (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    if (!isUint8Array(bytes)) throw invalid('stdin', `${formatValue(piece)} in the stream is neither bytes nor text`)
    size += bytes.length
    if (size > MAX_STDIN_BYTES) throw tooLongError('the stream is too long')
    // A source may reuse its buffer.
    held.push(typeof piece === 'string' ? bytes : Uint8Array.from(bytes))
  }
  return Buffer.concat(held)
}

function tooLongError(problem: string): SandglassError {
  return invalid('stdin', `${problem}; at most ${MAX_STDIN_BYTES} bytes, pass more as a file`)
}
