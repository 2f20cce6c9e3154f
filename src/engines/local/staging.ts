import { createHash, randomUUID } from 'node:crypto'
import { execFile } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { messageOf, SandglassError } from '../../errors/index.ts'
import type { FoundPython } from './programs.ts'
import { canReach } from './reach.ts'
import { stateError, type StateDirectory } from './state.ts'

const run = promisify(execFile)
const HARNESS = fileURLToPath(new URL('../../../harness', import.meta.url))

/**
 * A copy of the harness that every sandbox can read, compiled once for this Python, named by its content. Concurrent
 * first use is safe: the last step is a rename.
 */
export async function stageHarness(state: StateDirectory, python: FoundPython): Promise<string> {
  const digest = contentDigest([join(HARNESS, 'sandglass_harness'), join(HARNESS, 'etc')])
  return staged(state, `harness-${python.version}-${digest}`, async (target) => {
    mkdirSync(target, { recursive: true, mode: 0o755 })
    for (const name of ['sandglass_harness', 'etc']) {
      cpSync(join(HARNESS, name), join(target, name), {
        recursive: true,
        filter: (path) => !path.includes('__pycache__'),
      })
    }
    openForReading(target)
    const compile = ['-I', '-m', 'compileall', '-q', '--invalidation-mode', 'unchecked-hash']
    // Only speed depends on it: a Python that cannot compile ahead compiles at each start.
    await run(python.path, [...compile, join(target, 'sandglass_harness')], { cwd: '/' }).catch(() => undefined)
    openForReading(target)
  })
}

/**
 * A directory of the caller as the sandbox can read it: itself where the uid can enter it, else a copy.
 * @throws SandglassError `packages_unreadable`.
 */
export async function stageDirectory(
  state: StateDirectory,
  directory: string,
  option: string,
  uid: number,
): Promise<string> {
  try {
    if (!lstatSync(directory, { throwIfNoEntry: true }).isDirectory() && !existsSync(join(directory, '.'))) {
      throw new Error('it is no directory')
    }
    readdirSync(directory)
    if (canReach(directory, uid)) return directory
    return await staged(state, `${option}-${listingDigest(directory)}`, async (target) => {
      cpSync(directory, target, { recursive: true, dereference: true })
      openForReading(target)
    })
  } catch (error) {
    if (error instanceof SandglassError) throw error
    throw new SandglassError('packages_unreadable', `${option}: ${directory} cannot be read: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

async function staged(state: StateDirectory, name: string, fill: (target: string) => Promise<void>): Promise<string> {
  const target = join(state.stagedPath, name)
  if (existsSync(target)) return target
  const temporary = join(state.stagedPath, `.${randomUUID()}`)
  try {
    await fill(temporary)
    renameSync(temporary, target)
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true })
    if (existsSync(target)) return target
    throw stateError(state.path, error)
  }
  return target
}

function openForReading(path: string): void {
  const found = lstatSync(path)
  if (found.isSymbolicLink()) return
  if (!found.isDirectory()) return chmodSync(path, (found.mode & 0o111) === 0 ? 0o644 : 0o755)
  chmodSync(path, 0o755)
  for (const name of readdirSync(path)) openForReading(join(path, name))
}

function contentDigest(roots: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of roots.flatMap(files))
    hash
      .update(`${path.slice(HARNESS.length)}\0`)
      .update(readFileSync(path))
      .update('\0')
  return hash.digest('hex').slice(0, 16)
}

/** Names, sizes and times stand for contents: package directories hold hundreds of megabytes. */
function listingDigest(root: string): string {
  const hash = createHash('sha256').update(root)
  for (const path of files(root)) {
    const { size, mtimeMs } = lstatSync(path)
    hash.update(`${path}\0${size}\0${mtimeMs}\0`)
  }
  return hash.digest('hex').slice(0, 16)
}

function files(root: string): string[] {
  return readdirSync(root, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(root, entry.name)
      if (entry.isDirectory()) return entry.name === '__pycache__' ? [] : files(path)
      return [path]
    })
}
