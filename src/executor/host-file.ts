import { access, constants, type FileHandle, open, stat } from 'node:fs/promises'
import { messageOf, SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import { invalid } from './invalid.ts'
import { isAt } from './real-file.ts'

const READ_BYTES = 256 * 1024
/** Files of /proc report a size of 0 although they have content. */
const MAX_UNSIZED_BYTES = 64 * 1024 * 1024
/** O_NONBLOCK, so that a FIFO in place of the file does not block `open`. Windows has no such flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/**
 * Returns the size in bytes of a readable regular file of the host. Links are followed.
 * @throws SandglassError `invalid_request`, naming the field.
 */
export async function sizeOfHostFile(path: string, field: string): Promise<number> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw notRegular(path, field)
    await access(path, constants.R_OK)
    return found.size
  } catch (error) {
    throw error instanceof SandglassError ? error : invalid(field, `it cannot be read: ${messageOf(error)}`)
  }
}

/**
 * Yields the content of a file in pieces, all in one buffer: a piece is valid until the next one is requested.
 * @param isReal true for a path that had no symbolic link when it was checked, and must have none now.
 * @throws SandglassError `invalid_request` if it cannot be read, or changes while it is read.
 */
export async function* readHostFile(
  path: string,
  field: string,
  isReal: boolean = false,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    await using file = await open(path, FLAGS)
    if (isReal && !(await isAt(file, path)))
      throw invalid(field, `${formatValue(path)} was replaced after it was checked`)
    yield* piecesOf(file, path, field)
  } catch (error) {
    throw error instanceof SandglassError ? error : invalid(field, `it cannot be read: ${messageOf(error)}`)
  }
}

async function* piecesOf(file: FileHandle, path: string, field: string): AsyncGenerator<Uint8Array, void, void> {
  const before = await file.stat({ bigint: true })
  if (!before.isFile()) throw notRegular(path, field)
  const maxBytes = before.size === 0n ? MAX_UNSIZED_BYTES : Number(before.size)
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  for (let read = 0; ;) {
    const { bytesRead } = await file.read(buffer)
    read += bytesRead
    // Another program may append as fast as this one reads.
    if (read > maxBytes) throw changedError(path, field)
    if (bytesRead === 0) break
    yield buffer.subarray(0, bytesRead)
  }
  const after = await file.stat({ bigint: true })
  if (after.size !== before.size || after.mtimeNs !== before.mtimeNs) throw changedError(path, field)
}

function notRegular(path: string, field: string): SandglassError {
  return invalid(field, `${formatValue(path)} is not a regular file`)
}

function changedError(path: string, field: string): SandglassError {
  return invalid(field, `${formatValue(path)} changed while it was read; pass a copy that does not change`)
}
