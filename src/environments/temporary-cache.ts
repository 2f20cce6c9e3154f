import { lstatSync, readdirSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Resource } from '../sandbox/index.ts'
import { isLiving, pidNamespace, startOf } from '../support/index.ts'

const PREFIX = 'sandglass-executor-'
/** The pid and the start time of the owner, the number of its pid namespace, and a unique suffix. */
const NAME = /^sandglass-executor-(\d+)-(\d+)-(\d+)-\w+$/

/** Makes a temporary directory for the packages of this process alone. Its name identifies the process. */
export async function makeTemporaryCache(): Promise<string> {
  const owner = [process.pid, startOf(process.pid) ?? 0, pidNamespace() || 0].join('-')
  const path = await mkdtemp(join(tmpdir(), `${PREFIX}${owner}-`))
  // Sandboxes with another uid must be able to read the packages.
  await chmod(path, 0o755)
  return path
}

/** The temporary caches that killed processes of this user and this pid namespace left behind. */
export function orphanedCaches(): readonly Resource[] {
  const namespace = pidNamespace()
  return namesIn(tmpdir()).flatMap((name) => {
    const [, pid, start, ofNamespace] = NAME.exec(name) ?? []
    if (pid === undefined || ofNamespace !== namespace || start === '0' || isLiving(Number(pid), start)) return []
    const path = join(tmpdir(), name)
    // Anybody can make a directory or a link of this name.
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) return []
    return [{ kind: 'directory', id: path, sandbox: null, owner: 'gone', uid: null }]
  })
}

/** Removes {@link orphanedCaches}. Returns the removed ones; the others stay listed. */
export async function pruneCaches(): Promise<readonly Resource[]> {
  const removed: Resource[] = []
  for (const orphan of orphanedCaches()) {
    try {
      await rm(orphan.id, { recursive: true, force: true })
      removed.push(orphan)
    } catch {
      continue
    }
  }
  return removed
}

/** The names in a directory; empty if it cannot be read, for example because the directory in TMPDIR does not exist. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
