import { createReadStream, createWriteStream } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { chmod, constants, copyFile, link, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { INSIDE } from '../sandbox/index.ts'
import { formatValue } from '../support/index.ts'
import { abortedError, invalid } from './failures.ts'

/** A file of the host in a workspace. */
export interface WorkspaceInput {
  /** Its absolute path inside. */
  readonly path: string
  /**
   * `linked`: it is the file itself, at once and of any size; later changes by the host are visible. `copied`: a copy on the disk
   * of the host, which takes no memory of the sandbox. `sent`: a file of the workspace, because its engine cannot show files of
   * the host.
   */
  readonly how: 'linked' | 'copied' | 'sent'
}

const NAME = /^[^/\0]{1,200}$/
const READABLE_BY_ALL = 0o004
const READ_ONLY = 0o444
const OWN = 0o600

/** @throws SandglassError `invalid_request` for a name that no file can have, and for a path that is not a regular file. */
export async function checkInput(
  name: unknown,
  path: unknown,
): Promise<{ readonly name: string; readonly source: string }> {
  if (typeof name !== 'string' || !NAME.test(name) || name.startsWith('.') || !name.isWellFormed())
    throw invalid('name', `${formatValue(name)} is not the name of a file: no "/", no "." at its beginning`)
  if (typeof path !== 'string') throw invalid('path', `${formatValue(path)} is not a string`)
  try {
    const source = await realpath(path)
    if ((await stat(source)).isFile()) return { name, source }
  } catch (error) {
    throw invalid('path', messageOf(error))
  }
  throw invalid('path', `${formatValue(path)} is not a regular file`)
}

/**
 * Shows a file of the host in the directory that a sandbox cannot write to.
 * @param signal its reason is the error, if that is a SandglassError.
 * @throws SandglassError `invalid_request` for a name that is taken, `no_space`, `workspace_io`, `aborted`
 */
export async function showInput(
  directory: string,
  name: string,
  source: string,
  signal: AbortSignal,
): Promise<WorkspaceInput> {
  if (signal.aborted) throw reasonOf(signal)
  const target = join(directory, name)
  const path = `${INSIDE.inputs}/${name}`
  // No input has such a name, and no sandbox may read it yet.
  const draft = join(directory, `.${randomUUID()}`)
  try {
    // The sandbox has another uid, and the mode of a link is that of the file itself.
    const { mode } = await stat(source)
    if ((mode & READABLE_BY_ALL) !== 0 && (await isLinked(source, target))) return { path, how: 'linked' }
    await copy(source, draft, signal)
    await chmod(draft, READ_ONLY)
    await moveTo(draft, target)
    return { path, how: 'copied' }
  } catch (error) {
    const code = errnoOf(error)
    if (signal.aborted) throw reasonOf(signal)
    if (code === 'EEXIST') throw takenError(name)
    throw new SandglassError(
      code === 'ENOSPC' || code === 'EDQUOT' ? 'no_space' : 'workspace_io',
      `${formatValue(source)} could not be shown to the workspace: ${messageOf(error)}`,
      { cause: error },
    )
  } finally {
    await rm(draft, { force: true }).catch(() => undefined)
  }
}

/** The error for a name that another input has. */
export function takenError(name: string): SandglassError {
  return invalid('name', `${formatValue(name)} is taken by another input`)
}

function reasonOf({ reason }: AbortSignal): SandglassError {
  return reason instanceof SandglassError ? reason : abortedError('the input')
}

/** Gives a draft its name. Never replaces a file, and leaves none if it fails. */
export async function moveTo(draft: string, target: string): Promise<void> {
  if (await isLinked(draft, target)) return
  await (await open(target, 'wx')).close()
  try {
    await rename(draft, target)
  } catch (error) {
    await rm(target, { force: true }).catch(() => undefined)
    throw error
  }
}

/** Shares the blocks of the file where the file system can do that. */
async function copy(source: string, target: string, signal: AbortSignal): Promise<void> {
  try {
    await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw error
    await pipeline(createReadStream(source), createWriteStream(target, { flags: 'wx', mode: OWN }), { signal })
  }
}

/** False if they are on two file systems, or this one has no links. */
async function isLinked(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw error
    return false
  }
}
