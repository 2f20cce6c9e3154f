import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const PREFIX = 'sandglass-test-run-'

/** Makes the directory of a test run. Its name has the pid of this process. */
export function makeRunDirectory(parent: string): string {
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
}

/**
 * Removes the directories of test runs that were killed. Each is renamed first: of several starts one gets it, and what is left of its
 * run can no longer write there.
 */
export function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [, pid] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? []
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    const taken = join(parent, `${PREFIX}${process.pid}-${name}`)
    try {
      renameSync(join(parent, name), taken)
    } catch {
      continue // another start has it, or it is another user's
    }
    rmSync(taken, { recursive: true, force: true })
  }
}
