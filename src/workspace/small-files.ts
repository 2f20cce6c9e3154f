import { Worker } from 'node:worker_threads'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'

/** A small file of the host, which is written in one piece. */
export interface SmallFile {
  /** Its name in errors. */
  readonly path: string
  /** The path that is created. If it exists, writing fails. */
  readonly written: string
  /** The path that the complete file gets; it may be the same. */
  readonly whole: string
  readonly permissions: number
  readonly size: number
}

/** A message to the thread: files, and their contents one after the other. */
export interface Batch {
  readonly files: readonly SmallFile[]
  readonly bytes: Uint8Array
}

/** The answer of the thread: the first file that failed, if any. */
export interface Written {
  readonly failed?: number
  readonly message?: string
  readonly errno?: string | undefined
}

const BATCH_BYTES = 256 * 1024
const BATCH_FILES = 512
const HEAP_MB = 32
const YOUNG_MB = 2

/**
 * A thread that writes small files. Opening, writing, closing and renaming one takes four turns of the host's event loop, which
 * cost several times as much as the calls themselves. The thread takes some 45 ms of processor time to start.
 */
export class SmallFiles implements AsyncDisposable {
  readonly #worker: Worker
  #files: SmallFile[] = []
  #pieces: Uint8Array[] = []
  #size = 0
  #writing: Promise<void> = Promise.resolve()
  #answer = Promise.withResolvers<Written>()

  constructor() {
    this.#worker = new Worker(new URL(import.meta.url.replace(/small-files\.(\w+)$/, 'small-files-thread.$1')), {
      name: 'sandglass-files',
      // The thread needs nothing of the host's environment and flags.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    })
    this.#worker.on('message', (written: Written) => this.#answer.resolve(written))
    this.#worker.on('error', (error: Error) => this.#fail(error))
    this.#worker.on('exit', () => this.#fail(new Error('it ended')))
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
  async idle(): Promise<void> {
    await this.#flush()
    await this.#writing
  }

  /** Ends the thread when it has written its batch. Other files are dropped. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing.catch(() => undefined)
    await this.#worker.terminate()
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
    // The next caller that waits for it gets the error.
    this.#writing.catch(() => undefined)
  }

  async #write(batch: Batch): Promise<void> {
    this.#worker.postMessage(batch, [batch.bytes.buffer as ArrayBuffer])
    const { failed, message, errno } = await this.#answer.promise
    this.#answer = Promise.withResolvers<Written>()
    this.#answer.promise.catch(() => undefined)
    if (failed === undefined) return
    throw unsavedError(batch.files[failed]?.path ?? '', Object.assign(new Error(message), { code: errno }))
  }

  #fail(error: Error): void {
    this.#answer.reject(
      new SandglassError('workspace_io', `the thread that writes files failed: ${error.message}`, { cause: error }),
    )
  }
}

/** The error of a file that the host could not write: `no_space` or `path_refused`. */
export function unsavedError(path: string, error: unknown): SandglassError {
  const code = errnoOf(error) === 'ENOSPC' || errnoOf(error) === 'EDQUOT' ? 'no_space' : 'path_refused'
  return new SandglassError(code, `${formatPath(path)} could not be saved: ${messageOf(error)}`, { cause: error })
}
