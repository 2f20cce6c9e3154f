import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errnoOf, messageOf } from '../errors/index.ts'
import { shownPath } from './unusable.ts'

/**
 * Makes a directory and what is missing above it, one at a time: `mkdirSync` with `recursive` never returns where a file
 * system says of each of them that there is no such file, as procfs does.
 * @param mode of the directory itself, where it is made; what lies above it is not ours to shut.
 * @throws Error that says which one cannot be made, and why.
 */
export function makeDirectory(path: string, mode?: number): void {
  const missing: string[] = []
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = statOf(at)
    if (found?.isDirectory() === true) break
    if (found !== undefined) throw new Error(`${shownPath(at)} is a file, no directory`)
    if (dirname(at) === at) throw new Error(`there is no ${at}`)
    missing.unshift(at)
  }
  for (const [index, one] of missing.entries()) make(one, index === missing.length - 1 ? mode : undefined)
}

function make(path: string, mode: number | undefined): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Another process may have been faster.
    if (errnoOf(error) === 'EEXIST' && statOf(path)?.isDirectory() === true) return
    throw new Error(`${shownPath(path)} cannot be made: ${errnoOf(error) ?? messageOf(error)}`, { cause: error })
  }
}

/** What is there; undefined also below a file, so that the file is what gets named. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new Error(`${shownPath(path)} cannot be looked at: ${errnoOf(error) ?? messageOf(error)}`, { cause: error })
  }
}
