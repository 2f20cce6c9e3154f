import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxRecord } from '../../../../src/engines/local/records.ts'

/** A new directory that the uids of sandboxes can enter. Not below a home directory. */
export function openDirectory(name = 'state'): string {
  const path = mkdtempSync(join(tmpdir(), `sandglass-${name}-`))
  chmodSync(path, 0o755)
  return path
}

/** The same, removed when the `using` scope ends. */
export function scopedDirectory(name?: string): { readonly path: string } & Disposable {
  const path = openDirectory(name)
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** The records of the sandboxes in a state directory. */
export function recordsIn(stateDir: string): SandboxRecord[] {
  const directory = join(stateDir, 'sandboxes')
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(directory, name), 'utf8')) as SandboxRecord)
}
