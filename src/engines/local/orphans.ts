import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLiving } from '../../support/index.ts'
import { type CgroupHost, findCgroups } from './cgroup-host.ts'
import { groupMembers, removeGroup } from './cgroups.ts'
import { killMember } from './process-id.ts'
import { findResources, type LocalResource } from './resources.ts'
import { killProcesses } from './sandbox-processes.ts'
import { defaultStateDir } from './state-path.ts'
import { StateDirectory } from './state.ts'

const RMDIR_TRIES = 60
const RETRY_MS = 1000

/** Removes the resources of dead owners, never those of a living one; resolves to what it removed. */
export function pruneOrphans(stateDir: string = defaultStateDir()): Promise<LocalResource[]> {
  return removeOrphans(new StateDirectory(stateDir), findCgroups())
}

/** Does the same for a given state directory, when an engine starts. */
export async function removeOrphans(state: StateDirectory, host: CgroupHost): Promise<LocalResource[]> {
  const found = await findResources(state, host)
  const processes = found.processes.filter(isOrphan)
  await killProcesses(processes)
  const cgroups = found.cgroups.filter(isOrphan)
  await removeCgroups(cgroups.map(({ path }) => path))
  const directories = found.directories.filter(isOrphan)
  for (const { path } of directories) await rm(path, { recursive: true, force: true })
  const locks = await clearSlots(state, found.locks.filter(isOrphan))

  const kept = [
    ...processes.filter(({ pid, start }) => isLiving(pid, start)),
    ...cgroups.filter(({ path }) => existsSync(path)),
  ]
  // The record is removed last: it names the owner of the other resources to the next host.
  const keptSandboxes = new Set(kept.map(({ resource }) => resource.sandbox))
  const records = found.records.filter(isOrphan).filter(({ id }) => !keptSandboxes.has(id))
  for (const { id } of records) state.records.remove(id)
  return [...processes, ...cgroups, ...directories, ...locks, ...records]
    .filter((one) => !kept.some(({ resource }) => resource === one.resource))
    .map(({ resource }) => resource)
}

/**
 * Removes the groups of sandboxes that ended. On an overloaded machine, the kernel may take longer to end the processes of
 * a group than the timeout, and a record cannot be removed from a file system that became read-only. Such a removal is
 * retried; the record and the uid stay in use until then.
 */
export class OrphanRetry {
  #orphans: Orphan[] = []
  #timer: NodeJS.Timeout | undefined
  #trying: Promise<void> = Promise.resolve()

  /**
   * Removes the groups of a sandbox, waiting for at most 3 s each, and calls `release` when they are gone. If a group remains
   * or `release` throws, both are tried again later.
   */
  async remove(paths: readonly string[], release: () => void): Promise<void> {
    const kept = await removeCgroups(paths)
    if (kept.length === 0 && succeeds(release)) return
    this.#orphans.push({ paths: kept, release })
    this.#timer ??= setTimeout(() => {
      this.#trying = this.#retry()
    }, RETRY_MS).unref()
  }

  /** Retries one last time. The next start finds the remaining groups by their records. */
  async close(): Promise<void> {
    await this.#trying
    await this.#retry()
    clearTimeout(this.#timer)
  }

  async #retry(): Promise<void> {
    this.#timer = undefined
    const orphans = this.#orphans
    this.#orphans = []
    for (const { paths, release } of orphans) await this.remove(paths, release)
  }
}

/** The groups of a sandbox that ended, and the callback for when they are gone. */
interface Orphan {
  readonly paths: readonly string[]
  readonly release: () => void
}

function succeeds(release: () => void): boolean {
  try {
    release()
    return true
  } catch {
    return false // a rejection that nobody handles would end the host's process
  }
}

function isOrphan({ resource }: { readonly resource: LocalResource }): boolean {
  return resource.owner === 'gone'
}

async function clearSlots<T extends { readonly slot: number }>(
  state: StateDirectory,
  locks: readonly T[],
): Promise<T[]> {
  const free = await Promise.all(locks.map(({ slot }) => state.slots.clear(slot)))
  return locks.filter((_, index) => free[index])
}

/** Removes groups, waiting for at most 3 s until the processes in each are gone; resolves to those that remain. */
async function removeCgroups(paths: readonly string[]): Promise<string[]> {
  const kept: string[] = []
  for (const path of paths) if (!(await removeCgroup(path))) kept.push(path)
  return kept
}

async function removeCgroup(path: string): Promise<boolean> {
  for (let tries = 0; tries < RMDIR_TRIES; tries += 1) {
    if (removeGroup(path)) return true
    killMembers(path)
    await sleep(Math.min(2 ** tries, 50))
  }
  return removeGroup(path)
}

function killMembers(group: string): void {
  try {
    for (const pid of groupMembers(group)) killMember(pid, group)
  } catch {
    // No descriptor is left to read the group: the caller retries.
  }
}
