import type { Dirent } from 'node:fs'
import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, mkdir, open, readdir, realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { messageOf, SandglassError } from '../errors/index.ts'
import { isAt, openFile } from '../executor/index.ts'
import { formatPath, formatValue } from '../support/index.ts'
import { abortedError, invalid } from './failures.ts'

/** A file below a directory of the host. */
interface TreeFile {
  /** Relative to the directory, with `/`. */
  readonly path: string
  /** Its real path. */
  readonly source: string
  readonly isExecutable: boolean
}

/** A directory of the host, listed. No link in it leads out. */
export interface HostTree {
  /** Sorted by the bytes of their paths. */
  readonly files: readonly TreeFile[]
  /** Directories, the outer ones first. */
  readonly directories: readonly string[]
}

const MAX_ENTRIES = 100_000
const ANY_EXECUTE = 0o111
const [READ_ONLY, READ_ONLY_EXECUTABLE] = [0o444, 0o555]
const DIRECTORY_MODE = 0o755

/**
 * Lists a directory of the host. A link to a file below it counts as that file.
 * @param noLinks true to refuse a path that leads through a link.
 * @param isLeftOut true for a path to skip, with everything below it and all links to it.
 * @throws SandglassError `invalid_request` for other links, for devices, sockets and FIFOs, and for more than 100,000 entries;
 * `aborted`
 */
export async function listHostTree(
  directory: string,
  signal?: AbortSignal,
  noLinks: boolean = false,
  isLeftOut: (path: string) => boolean = () => false,
): Promise<HostTree> {
  const root = await resolveDirectory(directory)
  if (noLinks && root !== directory) throw linkError(directory)
  const files: TreeFile[] = []
  const directories: string[] = []
  // The loop appends to the list that it iterates over.
  for (let index = -1; index < directories.length; index += 1) {
    if (signal?.aborted === true) throw abortedError('the directory')
    const at = directories[index] ?? ''
    for (const entry of await readEntries(join(root, at))) {
      const path = at === '' ? entry.name : `${at}/${entry.name}`
      if (isLeftOut(path)) continue
      if (files.length + directories.length === MAX_ENTRIES)
        throw invalid('path', `${formatValue(directory)} has more than ${MAX_ENTRIES} entries`)
      if (entry.isDirectory()) directories.push(path)
      else {
        const file = await fileAt(root, path)
        if (!isLeftOut(relative(root, file.source))) files.push(file)
      }
    }
  }
  return { files: files.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))), directories }
}

/**
 * Computes the SHA-256 over `PATH\0CONTENT\0` of each file below a directory of the host, in the order of the bytes of their
 * paths. A link to a file below it counts as that file; modes, times and empty directories do not count.
 * @throws SandglassError `invalid_request` for other links, for devices, sockets and FIFOs, for more than 100,000 entries, and
 * for a file that changes meanwhile; `aborted`
 */
export async function dirDigest(root: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<string> {
  const { files } = await listHostTree(root, signal)
  const hash = createHash('sha256')
  for (const file of files) for await (const _ of hashedFile(file, hash, signal));
  return hash.digest('hex')
}

/**
 * Copies a directory of the host, read-only, to a path that must not exist.
 * @returns the digest of what was copied, as {@link dirDigest} computes it.
 */
export async function copyTree({ files, directories }: HostTree, target: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  // Other users may not enter it before it is complete.
  await mkdir(target, { mode: 0o700 })
  for (const path of directories) await mkdir(join(target, path), { mode: DIRECTORY_MODE })
  for (const file of files) {
    await using copied = await open(join(target, file.path), 'wx', 0o600)
    for await (const piece of hashedFile(file, hash, signal)) await copied.write(piece)
    await copied.chmod(file.isExecutable ? READ_ONLY_EXECUTABLE : READ_ONLY)
  }
  // The umask of this process may have removed permissions.
  for (const path of [...directories, '']) await chmod(join(target, path), DIRECTORY_MODE)
  return hash.digest('hex')
}

/** Reads a file in pieces, and adds them to the digest of its directory. A piece is valid until the next one is requested. */
export async function* hashedFile(
  { path, source }: TreeFile,
  hash: Hash,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, void> {
  hash.update(`${path}\0`)
  for await (const piece of openFile({
    path,
    mode: READ_ONLY,
    source: { kind: 'host', hostPath: source, isReal: true },
  })) {
    if (signal?.aborted === true) throw abortedError('the directory')
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    hash.update(bytes)
    yield bytes
  }
  hash.update('\0')
}

/** The error for a path that must not lead through a link. */
export function linkError(path: string): SandglassError {
  return invalid('path', `${formatPath(path)} leads through a link; a directory may have been replaced meanwhile`)
}

async function resolveDirectory(path: string): Promise<string> {
  try {
    const real = await realpath(path)
    if ((await stat(real)).isDirectory()) return real
  } catch (error) {
    throw invalid('path', messageOf(error))
  }
  throw invalid('path', `${formatValue(path)} is not a directory`)
}

async function readEntries(directory: string): Promise<Dirent[]> {
  try {
    await using opened = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    if (!(await isAt(opened, directory))) throw linkError(directory)
    // Lists the directory that was opened, whatever is at its path now.
    const path = process.platform === 'linux' ? `/proc/self/fd/${opened.fd}` : directory
    return await readdir(path, { withFileTypes: true })
  } catch (error) {
    throw error instanceof SandglassError ? error : invalid('path', messageOf(error))
  }
}

async function fileAt(root: string, path: string): Promise<TreeFile> {
  const refuse = (problem: string): SandglassError => invalid('path', `${formatPath(path)} ${problem}`)
  try {
    const source = await realpath(join(root, path))
    const inside = relative(root, source)
    if (inside === '..' || inside.startsWith(`..${sep}`)) throw refuse('is a link that leads out of its directory')
    const found = await stat(source)
    if (found.isDirectory()) throw refuse('is a link to a directory')
    if (!found.isFile()) throw refuse('is neither a file nor a directory')
    return { path, source, isExecutable: (found.mode & ANY_EXECUTE) !== 0 }
  } catch (error) {
    throw error instanceof SandglassError ? error : refuse(`cannot be read: ${messageOf(error)}`)
  }
}
