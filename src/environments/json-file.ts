import { randomUUID } from 'node:crypto'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The names in a directory, in order; none where it is missing. */
export async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch((): string[] => [])).toSorted()
}

/** The content of a JSON file; undefined where it is missing or damaged. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T
  } catch {
    return undefined
  }
}

/**
 * Writes a JSON file: readers see the old content or the new one.
 * @param work a directory on the same file system, for the file while it is written.
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
