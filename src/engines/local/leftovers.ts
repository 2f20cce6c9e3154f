import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLiving } from '../../support/index.ts'
import { type CgroupHost, findCgroups } from './cgroup-host.ts'
import { groupMembers, removeGroup } from './cgroups.ts'
import { killMember } from './process-id.ts'
import { lookAround, type Remnant } from './remnants.ts'
import { killProcesses } from './sandbox-processes.ts'
import { defaultStateDir, StateDirectory } from './state.ts'

const RMDIR_TRIES = 60

/** Removes what is left over, never what a living owner holds; resolves to what was removed. */
export function pruneRemnants(stateDir: string = defaultStateDir()): Promise<Remnant[]> {
  return collectLeftovers(new StateDirectory(stateDir), findCgroups())
}

/** The same for an engine, which does it at its start. */
export async function collectLeftovers(state: StateDirectory, host: CgroupHost): Promise<Remnant[]> {
  const found = await lookAround(state, host)
  const processes = found.processes.filter(isLeftOver)
  await killProcesses(processes)
  const cgroups = found.cgroups.filter(isLeftOver)
  await removeCgroups(cgroups.map(({ path }) => path))
  const directories = found.directories.filter(isLeftOver)
  for (const { path } of directories) await rm(path, { recursive: true, force: true })
  const locks = await cleared(state, found.locks.filter(isLeftOver))

  const still = [
    ...processes.filter(({ pid, start }) => isLiving(pid, start)),
    ...cgroups.filter(({ path }) => existsSync(path)),
  ]
  // The record goes last: it tells the next one whose the rest is.
  const kept = new Set(still.map(({ remnant }) => remnant.sandbox))
  const records = found.records.filter(isLeftOver).filter(({ id }) => !kept.has(id))
  for (const { id } of records) state.removeRecord(id)
  return [...processes, ...cgroups, ...directories, ...locks, ...records]
    .filter((one) => !still.some(({ remnant }) => remnant === one.remnant))
    .map(({ remnant }) => remnant)
}

function isLeftOver({ remnant }: { readonly remnant: Remnant }): boolean {
  return remnant.owner === 'gone'
}

async function cleared<T extends { readonly slot: number }>(state: StateDirectory, locks: readonly T[]): Promise<T[]> {
  const free = await Promise.all(locks.map(({ slot }) => state.clearSlot(slot)))
  return locks.filter((_, index) => free[index])
}

/** Removes groups, waiting for the processes in them to be gone: at most 3 s each. Those that are still there then. */
export async function removeCgroups(paths: readonly string[]): Promise<string[]> {
  const kept: string[] = []
  for (const path of paths) if (!(await hasGone(path))) kept.push(path)
  return kept
}

async function hasGone(path: string): Promise<boolean> {
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
    // No descriptor left to look with: it is tried again.
  }
}
