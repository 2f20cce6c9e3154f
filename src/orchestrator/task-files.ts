import type { CollectedFile } from '../executor/index.ts'

/** Files and bytes of one task, as for one run. Older files make room. */
const MAX_FILES = 100
const MAX_BYTES = 64 * 1024 * 1024

/** The files that the scripts of a task left, the newest of each path. */
export class TaskFiles {
  #files = new Map<string, CollectedFile>()

  get all(): readonly CollectedFile[] {
    return [...this.#files.values()]
  }

  /** Keeps those of one script, in place of all earlier ones. */
  replace(files: readonly CollectedFile[]): void {
    this.#files = new Map()
    this.add(files)
  }

  /** Keeps them beside those of earlier scripts. */
  add(files: readonly CollectedFile[]): void {
    for (const file of files) {
      // The newest is last.
      this.#files.delete(file.path)
      this.#files.set(file.path, file)
    }
    let bytes = this.all.reduce((sum, { size }) => sum + size, 0)
    for (const [path, { size }] of this.#files) {
      if (this.#files.size <= MAX_FILES && bytes <= MAX_BYTES) return
      this.#files.delete(path)
      bytes -= size
    }
  }
}
