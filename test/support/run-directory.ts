import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A directory that all test files of this run share; undefined outside of a test run. */
export function runDirectory(name: string): string | undefined {
  const root = process.env['SANDGLASS_TEST_RUN']
  if (root === undefined || root === '') return undefined
  const directory = join(root, name)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}

/**
 * Returns the JSON value of `key`, which the first caller in this run computes. A probe of an engine takes seconds, and its result
 * is the same for each file.
 */
export async function oncePerRun<T>(key: readonly unknown[], find: () => Promise<T>): Promise<T> {
  const directory = runDirectory('found')
  if (directory === undefined) return find()
  const path = join(directory, `${createHash('sha256').update(JSON.stringify(key)).digest('hex')}.json`)
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch {
    const found = await find()
    // Atomic, because another worker may read at the same time.
    writeFileSync(`${path}.${process.pid}`, JSON.stringify(found))
    renameSync(`${path}.${process.pid}`, path)
    return found
  }
}
