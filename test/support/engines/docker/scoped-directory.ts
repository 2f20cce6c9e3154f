import { chmodSync, mkdtempSync, rmSync } from 'node:fs'

/** A new directory that all users can enter, removed when the `using` scope ends. */
export function scopedDirectory(): { readonly path: string } & Disposable {
  const path = mkdtempSync('/tmp/sandglass-docker-')
  chmodSync(path, 0o755)
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
