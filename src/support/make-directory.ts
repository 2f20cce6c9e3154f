import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { shownPath } from './shown-path.ts'

/** Modes of directories that are made; Node's own, 0777 without the umask, where none is given. */
export interface DirectoryModes {
  readonly own?: number
  /** Of what is missing above it. */
  readonly above?: number
}

/**
 * Makes a directory and what is missing above it, one at a time: `mkdirSync` with `recursive` never returns where a file
 * system says of each of them that there is no such file, as procfs does.
 * @returns what it made, the outermost first.
 * @throws Error that says which one cannot be made, and why, with the `code` of the system call.
 */
export function makeDirectory(path: string, { own, above }: DirectoryModes = {}): readonly string[] {
  const missing: string[] = []
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = statOf(at)
    if (found?.isDirectory() === true) break
    if (found !== undefined) throw unmade('ENOTDIR', `${shownPath(at)} is a file, no directory`)
    if (dirname(at) === at) throw unmade('ENOENT', `there is no ${at}`)
    missing.unshift(at)
  }
  return missing.filter((one, index) => make(one, index === missing.length - 1 ? own : above))
}

/** False where another process was faster. */
function make(path: string, mode: number | undefined): boolean {
  try {
    mkdirSync(path, { mode })
    return true
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST' && statOf(path)?.isDirectory() === true) return false
    throw unmade(code, `${shownPath(path)} cannot be made: ${code}`, error)
  }
}

/** What is there; undefined also below a file, so that the file is what gets named. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const code = codeOf(error)
    throw unmade(code, `${shownPath(path)} cannot be looked at: ${code}`, error)
  }
}

function unmade(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}

/** The errno name of a failed call, or whatever was thrown in its place. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
