import { SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'
import { failureOf } from './failures.ts'
import type { Link } from './link.ts'
import { Operation, type Question } from './operation.ts'
import { PackError, type PackHeader, type PackPart, PackReader } from './pack.ts'

/** The bounds of one read. */
export interface ReadBounds {
  readonly maxFileBytes: number | null
  readonly maxTotalBytes: number | null
  readonly signal?: AbortSignal | undefined
}

/** Options of one read. */
export interface ReadOptions {
  /**
   * True to report a file that is gone, or changes while it is read, as a part `header` with an error, or `broken`, instead of
   * throwing.
   */
  readonly isLenient?: boolean
  /** True if it does not count as use of the workspace. */
  readonly isInternal?: boolean
}

/** Bytes that may wait for the caller. */
const WINDOW_BYTES = 1024 * 1024
const WHAT = 'a file could not be read'

/**
 * Reads the files at these paths as parts of a pack: for each path, in this order, a header, its bytes and an end. Throws
 * if the sandbox sends anything else. Leaving the loop ends the read.
 * @throws SandglassError `path_not_found`, `path_refused`, `too_large`, `workspace_io`, `aborted`
 */
export async function* readFiles(
  link: Link,
  paths: readonly string[],
  { maxFileBytes, maxTotalBytes, signal }: ReadBounds,
  { isLenient = false, isInternal = false }: ReadOptions = {},
): AsyncGenerator<PackPart, void, void> {
  const question: Question = {
    type: 'files_read',
    paths: [...paths],
    max_file_bytes: maxFileBytes,
    max_total_bytes: maxTotalBytes,
    window: WINDOW_BYTES,
  }
  const operation = new Operation(link, WHAT, question, { signal, window: WINDOW_BYTES, isInternal })
  const reader = new PackReader()
  const expected = new ExpectedFiles(paths, maxFileBytes, maxTotalBytes, isLenient)
  for await (const answer of operation.answers()) {
    if (answer.kind !== 'bytes') continue
    for (const part of partsOf(reader, answer.bytes)) {
      expected.check(part)
      yield part
    }
  }
  if (!expected.isComplete || !reader.isBetween)
    throw makePackError(`the sandbox sent fewer than the ${paths.length} requested files`)
}

/** Reads one file as a stream of bytes. @throws SandglassError as {@link readFiles} does. */
export async function* readFile(link: Link, path: string, bounds: ReadBounds): AsyncGenerator<Buffer, void, void> {
  for await (const part of readFiles(link, [path], bounds)) if (part.kind === 'bytes') yield part.bytes
}

/** Reads one file into memory. @throws SandglassError as {@link readFiles} does. */
export async function getFile(link: Link, path: string, bounds: ReadBounds): Promise<Uint8Array> {
  const parts: Buffer[] = []
  for await (const bytes of readFile(link, path, bounds)) parts.push(bytes)
  return Buffer.concat(parts)
}

/** Compares the parts of a pack with the request. */
class ExpectedFiles {
  readonly #paths: readonly string[]
  readonly #maxFileBytes: number
  readonly #maxTotalBytes: number
  readonly #isLenient: boolean
  #done = 0
  #current: PackHeader | undefined
  #fileBytes = 0
  #totalBytes = 0

  constructor(paths: readonly string[], maxFileBytes: number | null, maxTotalBytes: number | null, isLenient: boolean) {
    this.#paths = paths
    this.#isLenient = isLenient
    this.#maxFileBytes = maxFileBytes ?? Number.POSITIVE_INFINITY
    this.#maxTotalBytes = maxTotalBytes ?? Number.POSITIVE_INFINITY
  }

  get isComplete(): boolean {
    return this.#done === this.#paths.length && this.#current === undefined
  }

  /** @throws SandglassError */
  check(part: PackPart): void {
    const path = this.#paths[this.#done] ?? ''
    if (part.kind === 'header') {
      if (this.#current !== undefined || part.header.path !== path)
        throw makePackError(`the sandbox sent another file than ${formatPath(path)}`)
      if (part.header.error !== undefined) {
        if (!this.#isLenient) throw failureOf(formatPath(path), part.header.error)
        this.#done += 1
        return
      }
      this.#current = part.header
      this.#fileBytes = 0
    } else if (part.kind === 'bytes') {
      this.#fileBytes += part.bytes.length
      this.#totalBytes += part.bytes.length
      if (this.#fileBytes > this.#maxFileBytes)
        throw makeTooLargeError(path, `a file of more than ${this.#maxFileBytes} bytes`)
      if (this.#totalBytes > this.#maxTotalBytes)
        throw makeTooLargeError(path, `the files have more than ${this.#maxTotalBytes} bytes in total`)
    } else {
      if (part.kind === 'broken' && !this.#isLenient)
        throw makePackError(`${formatPath(path)} changed while it was read`)
      this.#current = undefined
      this.#done += 1
    }
  }
}

function* partsOf(reader: PackReader, bytes: Buffer): Generator<PackPart, void, void> {
  try {
    yield* reader.push(bytes)
  } catch (error) {
    throw error instanceof PackError ? makePackError(`the sandbox sent ${error.message}`) : error
  }
}

function makeTooLargeError(path: string, problem: string): SandglassError {
  return new SandglassError('too_large', `${formatPath(path)}: ${problem}`)
}

function makePackError(problem: string): SandglassError {
  return new SandglassError('workspace_io', `${WHAT}: ${problem}`)
}
