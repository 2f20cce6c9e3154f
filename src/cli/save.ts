import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, messageOf } from '../errors/index.ts'
import type { CollectedFile } from '../executor/index.ts'
import { isHiddenRepository, makeDirectory, repositoryMadeOf } from '../support/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'

/** The target of collected files and of pictures. */
export interface Saving {
  /** The real path of the directory. */
  readonly root: string
  /** True if existing files may be replaced. */
  readonly overwrite: boolean
}

/** A directory with one of these names in it is the root of a repository. */
const REPOSITORY_MARKS = ['.git', '.hg', '.svn', '.jj', '.bzr', '.fslckout']
const MAX_NAMED = 5

/**
 * Makes the directory for collected files.
 * @throws UsageError when it cannot be made, or is the root of a repository, where tools execute instructions in files.
 */
function prepareSaving(directory: string, overwrite: boolean): Saving {
  const root = makeRoot(directory)
  if (!overwrite && isRepository(root)) {
    throw new UsageError(
      'invalid_request',
      `--save ${directory}: it is the root of a repository; name a directory below it, or add --overwrite`,
    )
  }
  return { root, overwrite }
}

/**
 * Makes the target of `--save`; undefined without it.
 * @throws UsageError for `--overwrite` without `--save`, and as {@link prepareSaving} does.
 */
export function savingOf(given: Given): Saving | undefined {
  if (given.has('--overwrite') && !given.has('--save')) {
    throw new UsageError('invalid_request', '--overwrite needs --save DIR')
  }
  const directory = given.last('--save')
  return directory === undefined ? undefined : prepareSaving(directory, given.has('--overwrite'))
}

/** A warning for each file that was not saved. */
export function notSaved(problems: readonly string[]): { code: 'not_saved'; message: string; traceback: null }[] {
  return problems.map((message) => ({ code: 'not_saved', message, traceback: null }))
}

function makeRoot(directory: string): string {
  try {
    makeDirectory(directory)
    return realpathSync(directory)
  } catch (error) {
    throw new UsageError('invalid_request', `--save ${directory}: ${messageOf(error)}`, { cause: error })
  }
}

function isRepository(root: string): boolean {
  const has = (name: string): boolean => isThere(join(root, name))
  return REPOSITORY_MARKS.some(has) || isHiddenRepository(has)
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/**
 * Writes collected files below a directory. Their names come from a script: nothing outside is touched, and no link below
 * the directory is followed. Without `overwrite`, nothing is written if one of the files already exists, or if a directory is or
 * would become a repository; with it, such a file is replaced, not written through.
 * @returns the reason for each file that could not be saved.
 */
export function saveFiles(saving: Saving, files: readonly CollectedFile[]): string[] {
  const there = saving.overwrite ? [] : files.filter(({ path }) => isThereBelow(saving.root, path))
  if (there.length > 0) return [refusal(there)]
  const made = saving.overwrite ? undefined : repositoryOf(saving.root, files)
  if (made !== undefined) {
    const named = made === '' ? 'the directory' : JSON.stringify(made)
    return [
      `nothing was saved, because ${named} is or would become a repository, whose files tools obey; --overwrite allows it`,
    ]
  }
  const saved = new Set<string>()
  return files.flatMap((file) => {
    try {
      if (saved.has(file.path)) throw new Error('another file of this run has the same name')
      saved.add(file.path)
      saveFile(saving, file)
      return []
    } catch (error) {
      return [`${JSON.stringify(file.path)} was not saved: ${messageOf(error)}`]
    }
  })
}

function refusal(there: readonly CollectedFile[]): string {
  const named = there.slice(0, MAX_NAMED).map(({ path }) => JSON.stringify(path))
  const more = there.length > MAX_NAMED ? ` and ${there.length - MAX_NAMED} more` : ''
  return `nothing was saved, because ${named.join(', ')}${more} already ${there.length === 1 ? 'exists' : 'exist'}; --overwrite replaces existing files`
}

function repositoryOf(root: string, files: readonly CollectedFile[]): string | undefined {
  const paths = files.map(({ path }) => path)
  return repositoryMadeOf(paths, (path) => isThereBelow(root, path))
}

function isThereBelow(root: string, path: string): boolean {
  try {
    return isThere(join(root, ...partsOf(path)))
  } catch {
    return false // saveFile says why
  }
}

/** @throws Error for a path that leads out of its directory. */
function partsOf(path: string): string[] {
  const parts = path.split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    throw new Error('its path leads out of the directory')
  }
  return parts
}

function saveFile({ root, overwrite }: Saving, { path, content }: CollectedFile): void {
  const parts = partsOf(path)
  const name = parts.pop() ?? ''
  let folder = root
  for (const part of parts) {
    folder = join(folder, part)
    enter(folder)
  }
  const target = join(folder, name)
  if (lstatSync(target, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('a directory has its name')
  const temporary = join(folder, `.sandglass-${randomUUID()}`)
  try {
    writeFileSync(temporary, content, { flag: 'wx' })
    if (!overwrite && isThere(target)) throw new Error('it exists already')
    renameSync(temporary, target)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

function enter(folder: string): void {
  try {
    mkdirSync(folder)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    if (!lstatSync(folder).isDirectory())
      throw new Error(`${folder} is a link or a file, not a directory`, { cause: error })
  }
}
