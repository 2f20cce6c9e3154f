import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** Every program of a name on PATH, in the order of a shell, then those in `more` directories. */
export function programsNamed(name: string, more: readonly string[] = []): string[] {
  const directories = (process.env['PATH'] ?? '').split(delimiter).filter((directory) => isAbsolute(directory))
  return [...new Set([...directories, ...more].map((directory) => join(directory, name)).filter(isProgram))]
}

/** True if the path is a file that this process may execute. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
