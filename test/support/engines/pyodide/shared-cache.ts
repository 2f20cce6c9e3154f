import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runDirectory } from '../../run-directory.ts'

/** A directory for Pyodide's snapshot; removed when its scope ends, unless other test files use it. */
export interface CacheDirectory extends Disposable {
  readonly path: string
}

/** The cache directory of this test run: the first engine that needs the snapshot makes it, for all test files. */
export function sharedCache(): CacheDirectory {
  const path = runDirectory('pyodide')
  return path === undefined ? emptyCache() : { path, [Symbol.dispose]: () => {} }
}

/** A private cache directory for a test, with the snapshot of {@link sharedCache} if there is one. */
export function copyOfCache(): CacheDirectory {
  const cache = emptyCache()
  const shared = runDirectory('pyodide')
  const snapshots =
    shared === undefined ? [] : readdirSync(shared).filter((name) => /^pyodide-[\da-f]{16}\.snapshot$/.test(name))
  for (const name of snapshots) copyFileSync(join(shared ?? '', name), join(cache.path, name))
  return cache
}

/** A private cache directory for a test, without a snapshot. */
export function emptyCache(): CacheDirectory {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-pyodide-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
