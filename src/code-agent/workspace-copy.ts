import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SandglassError } from '../errors/index.ts'
import type { FilesInput } from '../executor/index.ts'
import type { Workspace } from '../options/index.ts'
import { formatPath, repositoryMadeOf } from '../support/index.ts'
import { listHostTree } from '../workspace/index.ts'

/** Copies a directory of the host into a workspace, and new and changed files back. */
export class WorkspaceCopy {
  readonly #directory: string
  #before: ReadonlyMap<string, string> = new Map()

  constructor(directory: string) {
    this.#directory = directory
  }

  /**
   * Copies the directory in, without names that begin with a dot: they often hold secrets.
   * @throws SandglassError as `ws.put` does, and for links that escape the directory.
   */
  async bring(ws: Workspace): Promise<void> {
    const { files, directories } = await listHostTree(this.#directory, undefined, false, isHidden)
    for (const path of directories) await ws.makeDirectory(path)
    const input: Record<string, FilesInput[string]> = {}
    for (const { path, source, isExecutable } of files)
      input[path] = { path: source, ...(isExecutable ? { mode: 0o755 } : {}) }
    await ws.put(input)
    this.#before = await states(ws)
  }

  /**
   * Copies new and changed files back, except for names that begin with a dot, which tools of the host may use as configuration. Files
   * that a script deleted stay on the host.
   * @returns the paths of the copied files.
   * @throws SandglassError as `ws.save` does; `path_refused` for a directory that would become a repository.
   */
  async takeBack(ws: Workspace): Promise<readonly string[]> {
    const now = await states(ws)
    const changed = [...now].filter(([path, state]) => this.#before.get(path) !== state).map(([path]) => path)
    const made = repositoryMadeOf(changed, (path) => existsSync(join(this.#directory, path)))
    if (made !== undefined)
      throw new SandglassError(
        'path_refused',
        `${formatPath(made)} is or would become a repository, whose files tools obey`,
      )
    const saved: string[] = []
    for (let at = 0; at < changed.length; at += MAX_GLOBS) {
      const globs = changed.slice(at, at + MAX_GLOBS).map(escapeGlob)
      for (const { path } of await ws.save(globs, this.#directory, { overwrite: true, ...BOUNDS })) saved.push(path)
    }
    return saved
  }
}

/** The maximum number of globs in one call. */
const MAX_GLOBS = 100
const BOUNDS = { maxFiles: 100_000, maxFileBytes: 2 ** 31, maxTotalBytes: 2 ** 31 }

/** Size and time of each file whose path has no name that begins with a dot. */
async function states(ws: Workspace): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for await (const { path, kind, size, modifiedAt } of ws.list()) {
    if (kind === 'file') found.set(path, `${size} ${modifiedAt.getTime()}`)
  }
  return found
}

function escapeGlob(path: string): string {
  return path.replace(/[*?[\]]/g, '[$&]')
}

function isHidden(path: string): boolean {
  return /(^|\/)\./.test(path)
}
