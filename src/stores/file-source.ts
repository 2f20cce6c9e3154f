import { constants, type FileHandle, open } from 'node:fs/promises'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'

const PIECE_BYTES = 2 * 1024 * 1024
/** Files of /proc have a size of 0 and some content. */
const MIN_PIECE_BYTES = 64 * 1024
/** A FIFO must not block `open`. Windows has no such flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/**
 * Yields the content of a regular file in pieces. Two buffers alternate, so that no garbage accumulates; a piece is valid until the
 * next one is requested.
 * @throws SandglassError `invalid_request` if it cannot be read, or changes while it is read.
 */
export async function* readFileContent(path: string): AsyncGenerator<Uint8Array, void, void> {
  try {
    await using file = await open(path, FLAGS)
    yield* piecesOf(file, path)
  } catch (error) {
    if (error instanceof SandglassError) throw error
    throw refusedError(path, `cannot be read: ${errnoOf(error) ?? messageOf(error)}`, error)
  }
}

async function* piecesOf(file: FileHandle, path: string): AsyncGenerator<Uint8Array, void, void> {
  const before = await file.stat({ bigint: true })
  if (!before.isFile()) throw refusedError(path, 'is not a regular file')
  const pieceBytes = Math.max(MIN_PIECE_BYTES, Math.min(Number(before.size), PIECE_BYTES))
  let [buffer, other] = [Buffer.allocUnsafeSlow(pieceBytes), Buffer.allocUnsafeSlow(pieceBytes)]
  const read = async (): Promise<Buffer> => {
    ;[buffer, other] = [other, buffer]
    const { bytesRead } = await file.read(buffer)
    return buffer.subarray(0, bytesRead)
  }
  let left = before.size
  let reading = read()
  try {
    for (let piece = await reading; piece.byteLength > 0; piece = await reading) {
      left -= BigInt(piece.byteLength)
      // Another program may append as fast as this one reads.
      if (left < 0n && before.size > 0n) break
      reading = read()
      reading.catch(() => undefined) // it is awaited next
      yield piece
    }
  } finally {
    await reading.catch(() => undefined) // the file is closed next
  }
  const after = await file.stat({ bigint: true })
  if (after.size !== before.size || after.mtimeNs !== before.mtimeNs)
    throw refusedError(path, 'changed while it was read; pass a copy that does not change')
}

function refusedError(path: string, problem: string, cause?: unknown): SandglassError {
  return new SandglassError('invalid_request', `content: ${formatPath(path)} ${problem}`, { cause })
}
