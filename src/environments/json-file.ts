import { randomUUID } from 'node:crypto'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The names in a directory, sorted; empty if it is missing. */
export async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch((): string[] => [])).toSorted()
}

/** The content of a JSON file; undefined if it is missing or damaged. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T
  } catch {
    return undefined
  }
}

/**
 * Writes a JSON file atomically: readers see either the old or the new content.
 * @param work a directory on the same file system, for the temporary file.
 */
export async function writeJson(path: string, value: unknown, work: string): Promise<void> {
  const temporary = join(work, randomUUID())
  try {
    await writeFile(temporary, JSON.stringify(value))
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
