import { chmodSync, closeSync, createWriteStream, linkSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { createHash, randomUUID } from 'node:crypto'
import { chmod, constants, copyFile, type FileHandle, link, mkdir, open, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { isAt, openFile, pathProblem } from '../executor/index.ts'
import { INSIDE } from '../sandbox/index.ts'
import { formatValue, makeDirectory } from '../support/index.ts'
import { abortedError, invalid } from './failures.ts'
import { copyTree, hashedFile, type HostTree, linkError, listHostTree } from './host-tree.ts'
import type { Link } from './link.ts'
import { Operation } from './operation.ts'
import { checkFilesInput, putFiles } from './put-files.ts'

/** A file or a directory of the host in a workspace. */
export interface WorkspaceInput {
  /** Its absolute path inside the sandbox. */
  readonly path: string
  /**
   * `linked`: the file itself, of any size; later changes by the host are visible. `copied`: a copy on the disk
   * of the host, which takes no memory of the sandbox. `sent`: a copy in the workspace, because its engine cannot mount files of
   * the host.
   */
  readonly how: 'linked' | 'copied' | 'sent'
  /** Of a directory: the SHA-256 over `PATH\0CONTENT\0` of its files, in the order of the bytes of their paths. */
  readonly sha256?: string
}

/** Options of {@link WorkspaceActivities.addInput}. */
export interface InputOptions {
  /** True to throw if scripts could change it, because of the engine (Docker). Default false. */
  readonly readOnly?: boolean
  /** Replaces an input of that name. Default false. */
  readonly replace?: boolean
  /** True to reject a path that leads through a link, also if the link appears while the input is added. Default false. */
  readonly noLinks?: boolean
  readonly signal?: AbortSignal
}

const MAX_NAME = 200
const MAX_NAME_PARTS = 10
const READABLE_BY_ALL = 0o004
const [READ_ONLY, READ_ONLY_EXECUTABLE] = [0o444, 0o555]
const DIRECTORY_MODE = 0o755
const PRIVATE_MODE = 0o600

/** A file or a directory of the host, checked. */
export interface CheckedInput {
  readonly name: string
  readonly source: string
  /** Undefined for a file. */
  readonly tree: HostTree | undefined
}

/**
 * @throws SandglassError `invalid_request` for a name that no file can have, for a path that is neither a file nor a directory,
 * and for a directory with links that lead out, with devices or with sockets.
 */
export async function checkInput(
  name: unknown,
  path: unknown,
  signal?: AbortSignal,
  noLinks: boolean = false,
): Promise<CheckedInput> {
  if (typeof name !== 'string' || !isName(name))
    throw invalid(
      'name',

      `${formatValue(name)} is not a valid name of an input: use a relative path of at most ${MAX_NAME_PARTS} parts, ` +
        'none of which begins with "."',
    )
  if (typeof path !== 'string') throw invalid('path', `${formatValue(path)} is not a string`)
  try {
    const source = await realpath(path)
    if (noLinks && source !== path) throw linkError(path)
    const found = await stat(source)
    if (found.isFile()) return { name, source, tree: undefined }
    if (found.isDirectory()) return { name, source, tree: await listHostTree(source, signal, true) }
  } catch (error) {
    throw error instanceof SandglassError ? error : invalid('path', messageOf(error))
  }
  throw invalid('path', `${formatValue(path)} is neither a regular file nor a directory`)
}

function isName(name: string): boolean {
  if (name.length > MAX_NAME || pathProblem(name) !== undefined) return false
  const parts = name.split('/')
  return parts.length <= MAX_NAME_PARTS && !parts.some((part) => part.startsWith('.'))
}

/**
 * Adds a file or a directory of the host to the directory that is mounted read-only in the sandbox.
 * @param signal its reason is the error, if that is a SandglassError.
 * @throws SandglassError `invalid_request` for a name that is in use, `no_space`, `workspace_io`, `aborted`
 */
export async function mountInput(
  directory: string,
  { name, source, tree }: CheckedInput,
  signal: AbortSignal,
  { replace = false }: { readonly replace?: boolean | undefined } = {},
): Promise<WorkspaceInput> {
  if (signal.aborted) throw reasonOf(signal)
  const target = join(directory, name)
  // No input can have this name, and no sandbox may read the directory yet.
  const privateDirectory = join(directory, `.${randomUUID()}`)
  const draft = join(privateDirectory, 'input')
  const replaced = join(directory, `.${randomUUID()}`)
  try {
    makeParents(directory, name)
    await mkdir(privateDirectory, { mode: 0o700 })
    const made = tree === undefined ? await makeDraft(source, draft, signal) : await makeTreeDraft(tree, draft, signal)
    const move = tree === undefined ? moveFile : moveDirectory
    if (replace) replaceBy(() => move(draft, target), target, replaced)
    else move(draft, target)
    return { path: `${INSIDE.inputs}/${name}`, ...made }
  } catch (error) {
    const code = errnoOf(error)
    if (signal.aborted) throw reasonOf(signal)
    if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'ENOTEMPTY') throw takenError(name)
    if (error instanceof SandglassError) throw error
    throw new SandglassError(
      code === 'ENOSPC' || code === 'EDQUOT' ? 'no_space' : 'workspace_io',
      `${formatValue(source)} could not be added to the workspace: ${messageOf(error)}`,
      { cause: error },
    )
  } finally {
    for (const left of [privateDirectory, replaced])
      await rm(left, { force: true, recursive: true }).catch(() => undefined)
  }
}

/** Copies an input into the workspace itself, for an engine that cannot mount it. */
export async function sendInput(
  link: Link,
  inside: string,
  { source, tree }: CheckedInput,
  signal: AbortSignal | undefined,
): Promise<{ how: 'sent'; sha256?: string }> {
  if (tree === undefined) {
    const stream = openFile({ path: inside, mode: READ_ONLY, source: { kind: 'host', hostPath: source, isReal: true } })
    await putFiles(link, await checkFilesInput({ [inside]: { stream, mode: READ_ONLY } }), signal)
    return { how: 'sent' }
  }
  for (const path of ['', ...tree.directories].map((below) => (below === '' ? inside : `${inside}/${below}`))) {
    const question = { type: 'file_make', path, mode: DIRECTORY_MODE } as const
    await new Operation(link, 'a directory could not be made', question, { signal }).awaitDone()
  }
  const hash = createHash('sha256')
  const files = tree.files.map((file) => [
    `${inside}/${file.path}`,
    { stream: hashedFile(file, hash, signal), mode: file.isExecutable ? READ_ONLY_EXECUTABLE : READ_ONLY },
  ])
  await putFiles(link, await checkFilesInput(Object.fromEntries(files)), signal)
  return { how: 'sent', sha256: hash.digest('hex') }
}

async function makeDraft(source: string, draft: string, signal: AbortSignal): Promise<{ how: 'linked' | 'copied' }> {
  // The sandbox has another uid, and the mode of a link is that of the file itself.
  await using file = await open(source, constants.O_RDONLY | constants.O_NONBLOCK)
  const found = await file.stat()
  if (!(await isAt(file, source)) || !found.isFile()) throw linkError(source)
  if ((found.mode & READABLE_BY_ALL) !== 0 && (await tryLink(source, draft))) {
    const { ino, dev } = await stat(draft)
    if (ino !== found.ino || dev !== found.dev) throw linkError(source)
    return { how: 'linked' }
  }
  await copy(file, draft, signal)
  await chmod(draft, READ_ONLY)
  return { how: 'copied' }
}

async function makeTreeDraft(
  tree: HostTree,
  draft: string,
  signal: AbortSignal,
): Promise<{ how: 'copied'; sha256: string }> {
  return { how: 'copied', sha256: await copyTree(tree, draft, signal) }
}

/** Makes the directories above an input. The sandbox can read them, whatever the umask. */
function makeParents(directory: string, name: string): void {
  for (let end = name.indexOf('/'); end !== -1; end = name.indexOf('/', end + 1)) {
    const made = join(directory, name.slice(0, end))
    if (makeDirectory(made).length > 0) chmodSync(made, DIRECTORY_MODE)
  }
}

/** Replaces an input, in one step: otherwise another call for its name could put the old one back in place of a new one. */
function replaceBy(move: () => void, target: string, replaced: string): void {
  let isPresent = true
  try {
    renameSync(target, replaced)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    isPresent = false
  }
  try {
    move()
  } catch (error) {
    if (isPresent) renameSync(replaced, target)
    throw error
  }
}

/** Moves a directory. Fails with EEXIST if the target exists; `rename` would replace an empty directory. */
function moveDirectory(draft: string, target: string): void {
  mkdirSync(target)
  renameSync(draft, target)
}

/** The error for an input that must be read-only where it cannot be. */
export function changeableError(engine: string): SandglassError {
  return new SandglassError(
    'limit_not_enforceable',
    `readOnly: the engine ${engine} cannot mount files of the host, and scripts can change a copy in the workspace, whatever its ` +
      'mode; use the engine local, or leave readOnly out',
  )
}

/** The error for a name that another input has. */
export function takenError(name: string): SandglassError {
  return invalid('name', `${formatValue(name)} is the name of another input; choose another name, or set replace: true`)
}

function reasonOf({ reason }: AbortSignal): SandglassError {
  return reason instanceof SandglassError ? reason : abortedError('the input')
}

/** Moves a file to its final name. Never replaces another file, and leaves none if it fails. */
export function moveFile(draft: string, target: string): void {
  try {
    linkSync(draft, target)
    return
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw error
  }
  // A file system without hard links.
  closeSync(openSync(target, 'wx'))
  try {
    renameSync(draft, target)
  } catch (error) {
    rmSync(target, { force: true })
    throw error
  }
}

/** Copies a file. Shares its blocks if the file system supports that. */
async function copy(source: FileHandle, target: string, signal: AbortSignal): Promise<void> {
  try {
    await copyFile(`/proc/self/fd/${source.fd}`, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw error
    await pipeline(
      source.createReadStream({ autoClose: false, start: 0 }),
      createWriteStream(target, { flags: 'wx', mode: PRIVATE_MODE }),
      { signal },
    )
  }
}

/** Makes a hard link. Resolves to false if the paths are on two file systems, or this one has no hard links. */
async function tryLink(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw error
    return false
  }
}
