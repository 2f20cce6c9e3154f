import { checkCollectLimits, type CollectedFile, type CollectLimits } from '../executor/index.ts'

/** The files that the scripts of a task left, the newest of each path, within the limits of one run. The oldest are dropped first. */
export class TaskFiles {
  #files = new Map<string, CollectedFile>()
  readonly #maxFiles: number
  readonly #maxBytes: number

  constructor(limits: CollectLimits | undefined) {
    const { files, totalBytes } = checkCollectLimits(limits)
    this.#maxFiles = files
    this.#maxBytes = totalBytes
  }

  get all(): readonly CollectedFile[] {
    return [...this.#files.values()]
  }

  /** Replaces all files with those of one script. */
  replace(files: readonly CollectedFile[]): void {
    this.#files = new Map()
    this.add(files)
  }

  /** Adds the files of a script to those of earlier scripts. */
  add(files: readonly CollectedFile[]): void {
    for (const file of files) {
      // Deleted first, so that the newest file is last.
      this.#files.delete(file.path)
      this.#files.set(file.path, file)
    }
    let bytes = this.all.reduce((sum, { size }) => sum + size, 0)
    for (const [path, { size }] of this.#files) {
      if (this.#files.size <= this.#maxFiles && bytes <= this.#maxBytes) return
      this.#files.delete(path)
      bytes -= size
    }
  }
}
