import { chmodSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'

/** A new directory that the uids of sandboxes can enter: not below /root, and with mode 755. */
export function openDirectory(name: string): string {
  const path = mkdtempSync(join('/tmp', `sandglass-${name}-`))
  chmodSync(path, 0o755)
  return path
}
