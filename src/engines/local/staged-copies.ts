import { createHash, createHmac } from 'node:crypto'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, type Stats } from 'node:fs'
import { chmod, cp, lstat, readdir, readlink, realpath, stat, symlink } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import { HARNESS_DIR } from '../../sandbox/index.ts'
import { makeDirectory } from '../../support/index.ts'
import type { FoundPython } from './programs.ts'
import { canReach, grants } from './reach.ts'
import type { Slot } from './slots.ts'
import { type Staging, touch } from './staging.ts'

const run = promisify(execFile)

/**
 * Makes a copy of the harness that every sandbox can read, compiled for this Python and named by its content.
 */
export async function stageHarness(staging: Staging, slot: Slot, python: FoundPython): Promise<string> {
  const digest = hashContent([join(HARNESS_DIR, 'sandglass_harness'), join(HARNESS_DIR, 'etc')])
  const target = join(staging.publicPath, `harness-${python.version}-${digest}`)
  return staging.copy(slot, target, async (temporary) => {
    makeDirectory(temporary, { own: 0o755, above: 0o755 })
    for (const name of ['sandglass_harness', 'etc']) {
      await cp(join(HARNESS_DIR, name), join(temporary, name), {
        recursive: true,
        filter: (path) => !path.includes('__pycache__'),
      })
    }
    await makeReadable(temporary)
    const compile = ['-I', '-m', 'compileall', '-q', '--invalidation-mode', 'unchecked-hash']
    // Only speed depends on this: a Python that cannot compile ahead compiles at each start.
    await run(python.path, [...compile, join(temporary, 'sandglass_harness')], { cwd: '/' }).catch((error: unknown) => {
      if (shortageError(error, python.path) !== undefined) throw error // the next call retries and makes a complete copy
    })
    await makeReadable(temporary)
  })
}

/** Makes directories of the caller readable for sandboxes. The result is cached until the change time of the directory differs. */
export class DirectoryStage {
  readonly #staging: Staging
  readonly #slot: Slot
  readonly #known = new Map<string, { seen: string; path: Promise<string> }>()

  constructor(staging: Staging, slot: Slot) {
    this.#staging = staging
    this.#slot = slot
  }

  /**
   * Returns the directory itself if the uid can enter it, else a copy of the files that users other than its owner may read.
   * @throws SandglassError `packages_unreadable`.
   */
  async path(directory: string, option: string, uid: number): Promise<string> {
    try {
      const found = await stat(directory)
      if (!found.isDirectory()) throw new Error('it is not a directory')
      const key = `${option}\0${directory}`
      const seen = `${found.dev} ${found.ino} ${found.mode} ${found.ctimeMs}`
      const known = this.#known.get(key)
      const path = known?.seen === seen ? known.path : this.#stage(await realpath(directory), directory, option, uid)
      this.#known.set(key, { seen, path })
      path.catch(() => this.#known.delete(key))
      const usable = await path
      if (usable === directory) return usable
      if (existsSync(usable)) {
        await touch(usable)
        return usable
      }
      return await this.#stage(await realpath(directory), directory, option, uid) // the copy was removed
    } catch (error) {
      if (error instanceof SandglassError) throw error
      const shortage = shortageError(error, `${option}: ${directory} cannot be read`)
      if (shortage !== undefined) throw shortage
      throw new SandglassError('packages_unreadable', `${option}: ${directory} cannot be read: ${messageOf(error)}`, {
        cause: error,
      })
    }
  }

  async #stage(root: string, directory: string, option: string, uid: number): Promise<string> {
    await readdir(root)
    // A copy must not contain files that only the owner may read: scripts could not read them in place.
    if (canReach(root, uid)) return directory
    const all = (await listEntries(root)).filter(([, found]) => isReadable(found, uid))
    if (all.length === 0 && (await readdir(root)).length > 0) {
      throw new Error('no file in it may be read by users other than its owner (chmod -R o+rX)')
    }
    // Hashes names, sizes and times, not contents: package directories hold hundreds of megabytes.
    const hash = createHmac('sha256', this.#staging.privateKey()).update(root)
    for (const [path, { size, mtimeMs }] of all) hash.update(`${path}\0${size}\0${mtimeMs}\0`)
    const target = join(this.#staging.privatePath, `${option}-${hash.digest('hex').slice(0, 32)}`)
    return this.#staging.copy(this.#slot, target, async (temporary) => {
      await copyInside(root, temporary, uid)
      await makeReadable(temporary)
    })
  }
}

/** Copies files and directories that `uid` may read, and links that stay inside. */
async function copyInside(root: string, target: string, uid: number): Promise<void> {
  const links: [path: string, to: string][] = []
  await cp(root, target, {
    recursive: true,
    preserveTimestamps: true, // byte code is stale if the time of its source differs
    filter: async (from, to) => {
      const found = await lstat(from)
      if (!found.isSymbolicLink())
        return from === root || ((found.isDirectory() || found.isFile()) && isReadable(found, uid))
      const text = await readlink(from)
      const end = await realpath(from).catch(() => undefined)
      if (end !== undefined && end.startsWith(`${root}/`)) {
        links.push([to, isAbsolute(text) ? relative(dirname(from), end) : text])
      }
      return false
    },
  })
  for (const [path, to] of links) await symlink(to, path)
}

function isReadable(found: Stats, uid: number): boolean {
  return found.isSymbolicLink() || grants(found, uid, found.isDirectory() ? 0o005 : 0o004)
}

async function makeReadable(path: string): Promise<void> {
  const found = await lstat(path)
  if (found.isSymbolicLink()) return
  if (!found.isDirectory()) return chmod(path, (found.mode & 0o111) === 0 ? 0o644 : 0o755)
  await chmod(path, 0o755)
  for (const name of await readdir(path)) await makeReadable(join(path, name))
}

function hashContent(roots: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of roots.flatMap(listFiles))
    hash
      .update(`${path.slice(HARNESS_DIR.length)}\0`)
      .update(readFileSync(path))
      .update('\0')
  return hash.digest('hex').slice(0, 16)
}

/** Lists everything below a directory in a fixed order, without compiled files. */
async function listEntries(root: string): Promise<[path: string, found: Stats][]> {
  const all: [string, Stats][] = []
  for (const name of (await readdir(root)).toSorted()) {
    if (name === '__pycache__') continue
    const path = join(root, name)
    const found = await lstat(path)
    all.push([path, found])
    if (found.isDirectory()) all.push(...(await listEntries(path)))
  }
  return all
}

function listFiles(root: string): string[] {
  return readdirSync(root, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(root, entry.name)
      if (entry.isDirectory()) return entry.name === '__pycache__' ? [] : listFiles(path)
      return [path]
    })
}
