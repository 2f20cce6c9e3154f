import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Whether a uid that is in no group of the host can read a path (enter it, when it is a directory). */
export function canReach(path: string, uid: number): boolean {
  if (uid === process.getuid?.()) return canRead(path)
  try {
    const real = realpathSync(path)
    const own = statSync(real)
    const needed = own.isDirectory() ? 0o005 : 0o004
    if (!grants(own, uid, needed)) return false
    for (let at = dirname(real); ; at = dirname(at)) {
      if (!grants(statSync(at), uid, 0o001)) return false
      if (at === dirname(at)) return true
    }
  } catch {
    return false
  }
}

function grants(found: { mode: number; uid: number }, uid: number, bits: number): boolean {
  const mode = found.uid === uid ? found.mode >> 6 : found.mode
  return (mode & bits) === bits
}

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}
