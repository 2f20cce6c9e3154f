import { readdirSync, readFileSync } from 'node:fs'
import { shortageError } from '../../errors/index.ts'

const CLOSE_ON_EXEC = 0o2000000

/**
 * Finds the descriptors above the standard ones that a child of this process would inherit: those that were open when this
 * process was started. Node's own have the close-on-exec flag. Returns none where the system has no /proc.
 */
export function findInheritedDescriptors(): number[] {
  let names: string[]
  try {
    names = readdirSync('/proc/self/fdinfo')
  } catch (error) {
    const shortage = shortageError(error, 'the descriptors of this process cannot be listed')
    if (shortage !== undefined) throw shortage // unlisted descriptors would be inherited
    return []
  }
  return names.map(Number).filter((fd) => fd > 2 && (flagsOf(fd) & CLOSE_ON_EXEC) === 0)
}

function flagsOf(fd: number): number {
  try {
    return Number.parseInt(/^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '', 8)
  } catch {
    return CLOSE_ON_EXEC // the descriptor of the listing itself is closed by now
  }
}
