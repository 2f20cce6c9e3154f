import { statSync } from 'node:fs'
import { type FilesInput, readHostFile } from '../executor/index.ts'
import { type Context, supportsAnsi } from './context.ts'
import { plural } from './figures.ts'
import { LiveLine } from './live-line.ts'

/** No line is shown before this time, because a short transfer would remove it before anybody could read it. */
const LONG_MS = 500

/** The files of `--file` on their way into a sandbox. Their bytes are counted, where a person looks on. */
export class Transfer {
  /** The files to send. */
  readonly files: FilesInput
  #sent = 0
  #total = 0
  #startedAt: number | undefined

  /** @param isShown false where nothing will be shown, so nothing is counted. */
  constructor(files: FilesInput, isShown: boolean) {
    this.files = isShown ? this.#countBytes(files) : files
  }

  /** The status text while files have been sent for longer than {@link LONG_MS}; undefined otherwise. */
  get text(): string | undefined {
    const isSending = this.#startedAt !== undefined && this.#sent < this.#total
    if (!isSending || performance.now() - (this.#startedAt ?? 0) < LONG_MS) return undefined
    return `sending files, ${(this.#sent / 1e6).toFixed(1)} of ${(this.#total / 1e6).toFixed(1)} MB`
  }

  #countBytes(files: FilesInput): FilesInput {
    const entries = Object.entries(files).map(([path, file]): [string, FilesInput[string]] => {
      if (typeof file !== 'object' || !('path' in file)) return [path, file]
      const { size } = statSync(file.path)
      this.#total += size
      const { path: host, ...mode } = file
      return [path, { stream: this.#count(readHostFile(host, `--file ${host}`)), size, ...mode }]
    })
    return Object.fromEntries(entries)
  }

  async *#count(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const piece of pieces) {
      this.#startedAt ??= performance.now()
      yield piece
      this.#sent += piece.length
    }
  }
}

/** The files of `--collect` that have arrived. */
export class Arrivals {
  #files = 0
  #bytes = 0
  #startedAt: number | undefined

  take({ size }: { readonly size: number }): void {
    this.#startedAt ??= performance.now()
    this.#files += 1
    this.#bytes += size
  }

  /** The status text while files have been arriving for longer than {@link LONG_MS}; undefined otherwise. */
  get text(): string | undefined {
    if (this.#startedAt === undefined || performance.now() - this.#startedAt < LONG_MS) return undefined
    return `receiving files, ${plural(this.#files, 'file')} with ${(this.#bytes / 1e6).toFixed(1)} MB so far`
  }
}

/** A status line during a transfer, for a command that has no other. */
export class TransferLine extends Transfer implements AsyncDisposable {
  readonly #live: LiveLine

  /** @param isWanted false if a program reads the output. */
  constructor(files: FilesInput, context: Context, isWanted: boolean) {
    const isShown = isWanted && supportsAnsi(context)
    super(files, isShown)
    this.#live = new LiveLine(context.stderr, isShown, () => this.text)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#live.end()
  }
}
