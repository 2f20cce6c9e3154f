import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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
