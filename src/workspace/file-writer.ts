import { ConcurrentTasks } from './concurrent-tasks.ts'
import { MAX_CONCURRENT, type SmallFiles } from './small-files.ts'
import type { TargetDirectory } from './target-directory.ts'
import { createFile, type TargetFile, writeSmall } from './target-file.ts'

/** A larger file is written while it is received. */
const MAX_SMALL_BYTES = 64 * 1024

/**
 * Writes files that are received one after the other. The thread, if given, writes the small files; otherwise several are written
 * concurrently, because each takes four asynchronous calls.
 */
export class FileWriter implements AsyncDisposable {
  readonly #target: TargetDirectory
  readonly #thread: SmallFiles | undefined
  readonly #writing = new ConcurrentTasks(MAX_CONCURRENT)
  #path = ''
  #mode = 0
  /** The bytes of the file so far, while it is small. */
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** The file, once it is large. */
  #file: TargetFile | undefined

  constructor(target: TargetDirectory, thread: SmallFiles | undefined) {
    this.#target = target
    this.#thread = thread
  }

  begin(path: string, mode: number): void {
    this.#path = path
    this.#mode = mode
    this.#pieces = []
    this.#bytes = 0
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.length
    if (this.#bytes <= MAX_SMALL_BYTES) {
      this.#pieces.push(bytes)
      return
    }
    this.#file ??= await createFile(await this.#target.place(this.#path, this.#mode))
    for (const piece of [...this.#pieces.splice(0), bytes]) await this.#file.write(piece)
  }

  /** Completes the current file. Waits until another one may begin. */
  async finish(): Promise<void> {
    if (this.#file !== undefined) {
      await this.#file.finish()
      this.#file = undefined
      return
    }
    if (this.#thread !== undefined) {
      const place = await this.#target.place(this.#path, this.#mode)
      await this.#thread.add({ ...place, size: this.#bytes }, this.#pieces)
      return
    }
    const pieces = this.#pieces
    await this.#writing.add(this.#target.place(this.#path, this.#mode).then((place) => writeSmall(place, pieces)))
  }

  /** Resolves when all files are written. */
  async drain(): Promise<void> {
    await this.#writing.awaitDone()
    await this.#thread?.drain()
  }

  /** Removes an incomplete file. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing.awaitSettled()
    await this.#file?.abandon()
  }
}
