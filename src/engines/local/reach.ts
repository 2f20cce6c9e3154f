import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** True if a uid without groups on the host can read a path, or enter it if it is a directory. */
export function canReach(path: string, uid: number): boolean {
  return findObstacle(path, uid) === undefined
}

/** Returns the outermost directory on the way to a path that excludes a uid, else the path if it cannot be read. */
export function findObstacle(path: string, uid: number): string | undefined {
  if (uid === process.getuid?.()) return canRead(path) ? undefined : path
  try {
    const real = realpathSync(path)
    const closed = listAncestors(real).find((at) => !grants(statSync(at), uid, 0o001))
    if (closed !== undefined) return closed
    const own = statSync(real)
    return grants(own, uid, own.isDirectory() ? 0o005 : 0o004) ? undefined : real
  } catch {
    return path
  }
}

/** Returns the directories above a path, outermost first. */
function listAncestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [...listAncestors(parent), parent]
}

/** True if a mode grants these bits (given as those of others) to a uid without groups. */
export function grants(found: { mode: number; uid: number }, uid: number, bits: number): boolean {
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
