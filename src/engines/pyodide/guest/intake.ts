import type { FileNode, FileSystem } from './emscripten.ts'

const REASONS: Readonly<Record<number, string>> = {
  2: 'Permission denied',
  20: 'File exists',
  31: 'Is a directory',
  37: 'File name too long',
  51: 'No space left on device',
  54: 'Not a directory',
}

/** Puts the files of the next run into the workspace, before the script runs. */
export class Intake {
  readonly #FS: FileSystem
  readonly #workspace: string

  constructor(FS: FileSystem, workspace: string) {
    this.#FS = FS
    this.#workspace = workspace
  }

  /** The first chunk that could not be written: the run must not start. */
  problem: { readonly path: string; readonly reason: string } | undefined

  /** Writes a chunk of a file. */
  put(path: string, mode: number, offset: number, content: Uint8Array): void {
    if (this.problem !== undefined) return
    const parts = path.split('/')
    if (path.length > 4096 || path.includes('\0') || parts.some((part) => ['', '.', '..'].includes(part))) {
      this.problem = { path, reason: 'it is not a plain path below the workspace' }
      return
    }
    try {
      this.#write(parts, mode, offset, content)
    } catch (error) {
      const { errno } = error as { errno?: unknown }
      const reason = typeof errno === 'number' ? (REASONS[errno] ?? `error ${errno}`) : 'it could not be written'
      this.problem = { path, reason }
    }
  }

  /** Removes all files. */
  wipe(): void {
    this.problem = undefined
    this.#empty(this.#workspace, this.#FS.lookupPath(this.#workspace).node)
  }

  #write(parts: readonly string[], mode: number, offset: number, content: Uint8Array): void {
    const FS = this.#FS
    const path = `${this.#workspace}/${parts.join('/')}`
    if (offset === 0) {
      let at = this.#workspace
      for (const part of parts.slice(0, -1)) {
        at += `/${part}`
        if (!exists(FS, at)) FS.mkdir(at, 0o755)
      }
    } else {
      FS.chmod(path, 0o600)
    }
    const stream = FS.open(path, offset === 0 ? 'w' : 'a', 0o600)
    try {
      for (let at = 0; at < content.length;) at += FS.write(stream, content, at, content.length - at)
    } finally {
      FS.close(stream)
    }
    FS.chmod(path, mode)
  }

  #empty(path: string, directory: FileNode): void {
    for (const [name, node] of Object.entries(directory.contents as Record<string, FileNode>)) {
      const child = `${path}/${name}`
      if (!this.#FS.isDir(node.mode)) {
        this.#FS.unlink(child)
        continue
      }
      this.#empty(child, node)
      this.#FS.rmdir(child)
    }
  }
}

function exists(FS: FileSystem, path: string): boolean {
  try {
    FS.lookupPath(path)
    return true
  } catch {
    return false
  }
}
