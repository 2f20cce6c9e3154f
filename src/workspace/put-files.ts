import { messageOf, SandglassError } from '../errors/index.ts'
import { checkFileList, findHostFiles, openFile, type StagedFile } from '../executor/index.ts'
import { piecesUntil } from '../support/index.ts'
import { invalid } from './failures.ts'
import type { Link } from './link.ts'
import { Operation } from './operation.ts'
import { PackWriter } from './pack.ts'

/** @throws SandglassError `invalid_request` naming the path. */
export async function checkFilesInput(given: unknown): Promise<readonly StagedFile[]> {
  const files = checkFileList(given)
  await findHostFiles(files)
  return files
}

/** Writes files. Each file appears complete or not at all; the first failure ends the transfer. */
export async function putFiles(
  link: Link,
  files: readonly StagedFile[],
  signal: AbortSignal | undefined,
): Promise<void> {
  if (files.length === 0) return
  await sendPack(link, (pack, over) => writeAll(pack, files, over), signal)
}

/**
 * Sends a pack that `write` writes. `write` resolves to false if the sandbox reads no more.
 * @throws SandglassError of the sandbox, `aborted`, `invalid_request` for what `write` throws.
 */
export async function sendPack(
  link: Link,
  write: (pack: PackWriter, over: Promise<unknown>) => Promise<boolean>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const operation = new Operation(link, 'files could not be written', { type: 'files_write' }, { signal })
  const { activity } = operation
  try {
    const pack = new PackWriter(activity)
    const isSent = (await write(pack, operation.over)) && (await pack.flush())
    if (isSent) activity.endInput()
  } catch (error) {
    // The file that was being written must not appear.
    activity.cancel()
    await operation.awaitDone().catch(() => undefined)
    throw error instanceof SandglassError ? error : invalid('files', `a file could not be read: ${messageOf(error)}`)
  }
  await operation.awaitDone()
}

async function writeAll(pack: PackWriter, files: readonly StagedFile[], over: Promise<unknown>): Promise<boolean> {
  for (const file of files) {
    if (!(await pack.begin(file.path, file.mode))) return false
    const source = openFile(file)
    for await (const piece of Symbol.asyncIterator in source ? piecesUntil(source, over) : source) {
      if (!(await pack.data(typeof piece === 'string' ? Buffer.from(piece) : piece))) return false
    }
    if (!(await pack.end())) return false
  }
  return true
}
