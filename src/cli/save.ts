import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, messageOf } from '../errors/index.ts'
import type { CollectedFile } from '../executor/index.ts'
import { makeDirectory } from '../support/index.ts'
import { UsageError } from './failure.ts'

/**
 * Makes the directory that takes collected files; its real path.
 * @throws UsageError when it cannot be.
 */
export function prepareSaving(directory: string): string {
  try {
    makeDirectory(directory)
    return realpathSync(directory)
  } catch (error) {
    throw new UsageError('invalid_request', `--save ${directory}: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Writes collected files below a directory. Their names come from a script: nothing outside is touched, no link below
 * it is followed, and a file that was there is replaced, not written through.
 * @returns why each file that could not be saved was not.
 */
export function saveFiles(root: string, files: readonly CollectedFile[]): string[] {
  const saved = new Set<string>()
  return files.flatMap((file) => {
    try {
      if (saved.has(file.path)) throw new Error('another file of this run has the same name')
      saved.add(file.path)
      saveFile(root, file)
      return []
    } catch (error) {
      return [`${JSON.stringify(file.path)} was not saved: ${messageOf(error)}`]
    }
  })
}

function saveFile(root: string, { path, content }: CollectedFile): void {
  const parts = path.split('/')
  const name = parts.pop() ?? ''
  if ([...parts, name].some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    throw new Error('its path leads out of the directory')
  }
  let folder = root
  for (const part of parts) {
    folder = join(folder, part)
    enter(folder)
  }
  const target = join(folder, name)
  if (lstatSync(target, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new Error('a directory is in its place')
  const temporary = join(folder, `.sandglass-${randomUUID()}`)
  try {
    writeFileSync(temporary, content, { flag: 'wx' })
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
