import { Worker } from 'node:worker_threads'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath, hasStarted, siblingModule } from '../support/index.ts'

/** A small file of the host, which is written in one piece. */
export interface SmallFile {
  /** Its name in errors. */
  readonly path: string
  /** The path that is created. If it exists, writing fails. */
  readonly temporaryPath: string
  /** The path that the complete file gets; it may be the same. */
  readonly finalPath: string
  readonly permissions: number
  readonly size: number
}

/** A message to the thread: files, and their concatenated contents. */
export interface Batch {
  readonly files: readonly SmallFile[]
  readonly bytes: Uint8Array
}

/** The answer of the thread to a batch: the first file that failed, if any. */
export interface WriteResult {
  readonly failed?: number
  readonly message?: string
  readonly errno?: string | undefined
}

/** Maximum number of concurrent file writes or lookups on the host's thread. */
export const MAX_CONCURRENT = 8
const BATCH_BYTES = 256 * 1024
const BATCH_FILES = 512
const HEAP_MB = 32
const YOUNG_MB = 2

/**
 * A thread that writes small files. Opening, writing, closing and renaming one takes four turns of the host's event loop, which
 * cost several times as much as the calls themselves. The thread takes some 45 ms of processor time to start. If it cannot be
 * started, for example because the process may start none, the host's thread writes the files.
 */
export class SmallFiles implements AsyncDisposable {
  readonly #writeHere: (file: SmallFile, pieces: readonly Uint8Array[]) => Promise<void>
  readonly #worker: Worker | undefined
  readonly #isStarted: Promise<boolean>
  #files: SmallFile[] = []
  #pieces: Uint8Array[] = []
  #size = 0
  #writing: Promise<void> = Promise.resolve()
  #answer = Promise.withResolvers<WriteResult>()

  /** @param writeHere writes a file on the host's thread, and throws as {@link add} does. */
  constructor(writeHere: (file: SmallFile, pieces: readonly Uint8Array[]) => Promise<void>) {
    this.#writeHere = writeHere
    this.#worker = startWorker()
    this.#isStarted = this.#worker === undefined ? Promise.resolve(false) : hasStarted(this.#worker)
    this.#worker?.on('message', (message: WriteResult | 'ready') => {
      if (message !== 'ready') this.#answer.resolve(message)
    })
    this.#worker?.on('error', (error: Error) => this.#fail(error))
    this.#worker?.on('exit', () => this.#fail(new Error('it exited before it answered')))
    this.#answer.promise.catch(() => undefined)
  }

  /**
   * Queues a file for the thread. Waits while the thread writes another batch.
   * @throws SandglassError of an earlier file, as {@link unsavedError} makes it; `workspace_io` if the thread fails.
   */
  async add(file: SmallFile, pieces: readonly Uint8Array[]): Promise<void> {
    if (this.#size + file.size > BATCH_BYTES || this.#files.length === BATCH_FILES) await this.#flush()
    this.#files.push(file)
    this.#pieces.push(...pieces)
    this.#size += file.size
  }

  /** Resolves when all files are written. @throws as {@link add} does. */
  async drain(): Promise<void> {
    await this.#flush()
    await this.#writing
  }

  /** Ends the thread when it has written its current batch. Other files are dropped. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing.catch(() => undefined)
    await this.#worker?.terminate()
  }

  async #flush(): Promise<void> {
    await this.#writing
    const [files, pieces] = [this.#files, this.#pieces]
    const bytes = new Uint8Array(this.#size)
    let at = 0
    for (const piece of pieces) {
      bytes.set(piece, at)
      at += piece.length
    }
    this.#files = []
    this.#pieces = []
    this.#size = 0
    if (files.length === 0) return
    this.#writing = this.#write({ files, bytes })
    // The next caller that awaits the promise gets the error.
    this.#writing.catch(() => undefined)
  }

  async #write(batch: Batch): Promise<void> {
    if (this.#worker === undefined || !(await this.#isStarted)) return this.#writeConcurrently(batch)
    this.#worker.postMessage(batch, [batch.bytes.buffer as ArrayBuffer])
    const { failed, message, errno } = await this.#answer.promise
    this.#answer = Promise.withResolvers<WriteResult>()
    this.#answer.promise.catch(() => undefined)
    if (failed === undefined) return
    throw unsavedError(batch.files[failed]?.path ?? '', Object.assign(new Error(message), { code: errno }))
  }

  async #writeConcurrently({ files, bytes }: Batch): Promise<void> {
    let start = 0
    for (let at = 0; at < files.length; at += MAX_CONCURRENT) {
      const writing: Promise<void>[] = []
      for (const file of files.slice(at, at + MAX_CONCURRENT)) {
        writing.push(this.#writeHere(file, [bytes.subarray(start, start + file.size)]))
        start += file.size
      }
      // If one write fails, wait for the others before throwing.
      await Promise.allSettled(writing)
      await Promise.all(writing)
    }
  }

  #fail(error: Error): void {
    this.#answer.reject(
      new SandglassError('workspace_io', `the thread that writes files failed: ${error.message}`, { cause: error }),
    )
  }
}

/** Starts the thread; undefined if this process may not or cannot start one. */
function startWorker(): Worker | undefined {
  try {
    return new Worker(siblingModule(import.meta.url, 'small-files-thread'), {
      name: 'sandglass-files',
      // The thread needs no environment variables or flags of the host.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    })
  } catch {
    return undefined
  }
}

/** The error of a file that the host could not write: `no_space` or `path_refused`. */
export function unsavedError(path: string, error: unknown): SandglassError {
  const code = errnoOf(error) === 'ENOSPC' || errnoOf(error) === 'EDQUOT' ? 'no_space' : 'path_refused'
  return new SandglassError(code, `${formatPath(path)} could not be saved: ${messageOf(error)}`, { cause: error })
}
