import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** An interpreter that can run the harness. */
export interface Python {
  /** The program that shims and links resolve to. */
  readonly executable: string
  /** `3.11.2` */
  readonly version: string
}

const NAMES: readonly string[] = ['python3', ...[10, 11, 12, 13, 14, 15].map((minor) => `python3.${minor}`)]
const PROBE = `import json, sys
print(json.dumps([sys.executable, "%d.%d.%d" % sys.version_info[:3], sys.version_info[:2] >= (3, 10)]))`

/** Every Python >= 3.10 of this machine, one per version, oldest first. */
export function findPythons(): Python[] {
  const found = new Map<string, Python>()
  for (const candidate of candidates()) {
    const python = probe(candidate)
    if (python !== undefined && !found.has(python.version)) found.set(python.version, python)
  }
  return [...found.values()].toSorted((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))
}

function candidates(): string[] {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/bin', '/usr/local/bin']
  const named = folders.filter((folder) => folder !== '').flatMap((folder) => NAMES.map((name) => join(folder, name)))
  return [...new Set([...named, ...pyenvPythons()])].filter((path) => existsSync(path))
}

function pyenvPythons(): string[] {
  const versions = join(homedir(), '.pyenv', 'versions')
  return existsSync(versions) ? readdirSync(versions).map((name) => join(versions, name, 'bin', 'python3')) : []
}

function probe(path: string): Python | undefined {
  // A pyenv shim of a version that is not selected exits with an error, and is skipped.
  const run = spawnSync(path, ['-I', '-c', PROBE], {
    encoding: 'utf8',
    timeout: 30_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  if (run.status !== 0) return undefined
  const [executable, version, recent] = JSON.parse(run.stdout) as [string, string, boolean]
  return recent ? { executable, version } : undefined
}
