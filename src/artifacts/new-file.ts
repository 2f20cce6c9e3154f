import { randomUUID } from 'node:crypto'
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { errnoOf, SandglassError } from '../errors/index.ts'
import { formatPath, formatValue } from '../support/index.ts'

/**
 * Writes a temporary file in the same directory, and renames it when it is complete: a failure leaves nothing behind.
 * @throws SandglassError `invalid_request` for a file that exists, unless `overwrite` is true, or cannot be written; the errors of `write`.
 */
export async function writeNewFile(
  path: string,
  overwrite: boolean,
  write: (file: FileHandle) => Promise<void>,
): Promise<void> {
  if (typeof path !== 'string' || path === '' || path.endsWith('/') || path.includes('\0'))
    throw new SandglassError('invalid_request', `path: must be the path of a file, not ${formatValue(path)}`)
  const target = resolve(path)
  const aside = `${target}.${randomUUID()}`
  try {
    await using file = await open(aside, 'wx')
    await write(file)
    // Linking never replaces a file that another process made meanwhile.
    await (overwrite ? rename(aside, target) : link(aside, target))
  } catch (error) {
    const errno = errnoOf(error)
    if (error instanceof SandglassError || errno === undefined) throw error
    const why = errno === 'EEXIST' ? 'exists; name another file, or set overwrite' : `cannot be written: ${errno}`
    throw new SandglassError('invalid_request', `path: ${formatPath(target)} ${why}`, { cause: error })
  } finally {
    await rm(aside, { force: true })
  }
}
