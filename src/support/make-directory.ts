import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { formatPath } from './format-value.ts'

/** Modes of created directories; by default that of Node, 0777 minus the umask. */
export interface DirectoryModes {
  readonly own?: number
  /** The mode of missing parent directories. */
  readonly above?: number
}

/**
 * Creates a directory and its missing parents, one at a time: `mkdirSync` with `recursive` never returns on a file
 * system such as procfs, which reports each of them as missing.
 * @returns the created directories, the outermost first.
 * @throws Error that names the directory and the reason, with the `code` of the system call.
 */
export function makeDirectory(path: string, { own, above }: DirectoryModes = {}): readonly string[] {
  const missing: string[] = []
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = statOf(at)
    if (found?.isDirectory() === true) break
    if (found !== undefined) throw directoryError('ENOTDIR', `${formatPath(at)} is not a directory`)
    if (dirname(at) === at) throw directoryError('ENOENT', `there is no ${at}`)
    missing.unshift(at)
  }
  return missing.filter((one, index) => make(one, index === missing.length - 1 ? own : above))
}

/** False if another process created it first. */
function make(path: string, mode: number | undefined): boolean {
  try {
    mkdirSync(path, { mode })
    return true
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST' && statOf(path)?.isDirectory() === true) return false
    throw directoryError(code, `${formatPath(path)} cannot be created: ${code}`, error)
  }
}

/** The status of a path; also undefined below a file, so that the error names the file. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const code = codeOf(error)
    throw directoryError(code, `${formatPath(path)} cannot be inspected: ${code}`, error)
  }
}

function directoryError(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}

/** The errno name of a failed call, or else the thrown value. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
