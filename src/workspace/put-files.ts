import { open, stat } from 'node:fs/promises'
import { isUint8Array } from 'node:util/types'
import { messageOf } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import { checkPath } from './check-path.ts'
import { checkWhole, invalid } from './failures.ts'
import type { Link } from './link.ts'
import { Operation } from './operation.ts'
import { PackWriter } from './pack.ts'
import { piecesUntil } from './pieces-until.ts'

/** A file for a workspace: bytes, text as UTF-8, or one of these with a mode; a file of the host; a stream of bytes. */
export type FileInput =
  | Uint8Array
  | string
  | { readonly content: Uint8Array | string; readonly mode?: number }
  /** A path on the host. It is read while it is sent, and never held in memory as a whole. */
  | { readonly path: string; readonly mode?: number }
  | { readonly stream: AsyncIterable<Uint8Array | string>; readonly mode?: number }

/** Files for a workspace, by their paths in it. */
export type FilesInput = Readonly<Record<string, FileInput>>

interface CheckedFile {
  readonly path: string
  readonly mode: number
  readonly open: () => AsyncIterable<Uint8Array | string> | readonly Uint8Array[]
}

const DEFAULT_MODE = 0o644
const READ_BYTES = 256 * 1024

/** @throws SandglassError `invalid_request` naming the path. */
export async function checkFilesInput(given: unknown): Promise<readonly CheckedFile[]> {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid('files', `${formatValue(given)} is not an object of paths and files`)
  return Promise.all(Object.entries(given).map(([path, value]) => checkFile(path, value)))
}

/** Writes files. Each appears as a whole or not at all; the first failure ends the transfer. */
export async function putFiles(
  link: Link,
  files: readonly CheckedFile[],
  signal: AbortSignal | undefined,
): Promise<void> {
  if (files.length === 0) return
  const operation = new Operation(link, 'files could not be written', { type: 'files_write' }, { signal })
  const { activity } = operation
  try {
    const pack = new PackWriter(activity)
    const isSent = (await writeAll(pack, files, operation.over)) && (await pack.flush())
    if (isSent) activity.endInput()
  } catch (error) {
    // The file that was being written must not appear.
    activity.cancel()
    await operation.awaitDone().catch(() => undefined)
    throw invalid('files', `a file could not be read: ${messageOf(error)}`)
  }
  await operation.awaitDone()
}

async function writeAll(pack: PackWriter, files: readonly CheckedFile[], over: Promise<unknown>): Promise<boolean> {
  for (const { path, mode, open } of files) {
    if (!(await pack.begin(path, mode))) return false
    const source = open()
    for await (const piece of Symbol.asyncIterator in source ? piecesUntil(source, over) : source) {
      if (!(await pack.data(typeof piece === 'string' ? Buffer.from(piece) : piece))) return false
    }
    if (!(await pack.end())) return false
  }
  return true
}

async function checkFile(path: string, value: unknown): Promise<CheckedFile> {
  const field = `files[${formatValue(path)}]`
  checkPath(field, path)
  const { content, path: hostPath, stream, mode = DEFAULT_MODE } = partsOf(value, field)
  checkWhole(`${field}.mode`, mode, 0, 0o777)
  const file = { path, mode: mode as number }
  if (hostPath !== undefined) {
    if (typeof hostPath !== 'string') throw invalid(`${field}.path`, `${formatValue(hostPath)} is not a string`)
    await checkHostFile(hostPath, field)
    return { ...file, open: () => piecesOf(hostPath) }
  }
  if (stream !== undefined) {
    if (typeof stream !== 'object' || stream === null || !(Symbol.asyncIterator in stream))
      throw invalid(`${field}.stream`, `${formatValue(stream)} is not an async iterable of bytes`)
    return { ...file, open: () => stream as AsyncIterable<Uint8Array | string> }
  }
  if (typeof content !== 'string' && !isUint8Array(content))
    throw invalid(field, `${formatValue(content)} is neither a string nor a Uint8Array`)
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return { ...file, open: () => [bytes] }
}

/** Yields the content of a file in pieces, all in one buffer: a piece is valid until the next one is requested. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array, void, void> {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  await using file = await open(path)
  for (;;) {
    const { bytesRead } = await file.read(buffer)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

function partsOf(value: unknown, field: string): Record<'content' | 'path' | 'stream' | 'mode', unknown> {
  const none = { content: undefined, path: undefined, stream: undefined, mode: undefined }
  if (typeof value === 'string' || isUint8Array(value)) return { ...none, content: value }
  const sources = ['content', 'path', 'stream'] as const
  const given = sources.filter((name) => typeof value === 'object' && value !== null && Object.hasOwn(value, name))
  if (given.length === 1) return { ...none, ...(value as object) }
  throw invalid(field, `${formatValue(value)} is not a file: give a string, bytes, { content }, { path } or { stream }`)
}

async function checkHostFile(path: string, field: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw invalid(`${field}.path`, messageOf(error))
  })
  if (!found.isFile()) throw invalid(`${field}.path`, `${formatValue(path)} is not a regular file`)
}
