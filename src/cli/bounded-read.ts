import { createReadStream, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { messageOf } from '../errors/index.ts'
import { UsageError } from './failure.ts'

/**
 * Reads a whole file, or stdin for `-`.
 * @param what for messages, for example `--file a.csv`.
 * @throws UsageError when it cannot be read or is larger than `maxBytes`.
 */
export async function readBounded(path: string, what: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of openInput(path, what, signal) as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) throw new UsageError('invalid_request', `${what}: larger than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof UsageError ? error : makeReadError(what, error)
  }
  signal.throwIfAborted()
  return Buffer.concat(chunks, length)
}

/** Reads a whole file, or stdin for `-`, as text. */
export async function readText(path: string, what: string, maxBytes: number, signal: AbortSignal): Promise<string> {
  const bytes = await readBounded(path, what, maxBytes, signal)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError('invalid_request', `${what}: it is not UTF-8`)
  }
}

/**
 * Opens a file, or stdin for `-`, as a stream that ends early when `signal` fires.
 * @throws UsageError for a directory, or a path that does not exist.
 */
export function openInput(path: string, what: string, signal: AbortSignal): Readable {
  const stream = path === '-' ? process.stdin : createReadStream(checkFile(path, what))
  const stop = (): void => void stream.destroy()
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  stream.once('close', () => signal.removeEventListener('abort', stop))
  return stream
}

/** The size of a file in bytes; undefined if it is not known, as for stdin. */
export function sizeOf(path: string): number | undefined {
  const found = path === '-' ? undefined : statSync(path, { throwIfNoEntry: false })
  return found?.isFile() === true ? found.size : undefined
}

function checkFile(path: string, what: string): string {
  try {
    if (statSync(path).isDirectory()) throw new Error('it is a directory')
    return path
  } catch (error) {
    throw makeReadError(what, error)
  }
}

function makeReadError(what: string, error: unknown): UsageError {
  return new UsageError('invalid_request', `cannot read ${what}: ${messageOf(error)}`, { cause: error })
}
