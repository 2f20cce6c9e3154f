import { existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Resource } from '../../sandbox/index.ts'
import { isLiving, startOf } from '../../support/index.ts'
import { type CgroupHost, listGroups, findCgroups } from './cgroup-host.ts'
import { groupMembers } from './cgroups.ts'
import type { SandboxRecord } from './records.ts'
import { type SandboxProcess, listSandboxProcesses } from './sandbox-processes.ts'
import { defaultStateDir } from './state-path.ts'
import { StateDirectory } from './state.ts'
import { firstUidOf } from './uids.ts'

/** Something that a sandbox of this engine holds on the machine. Its id is a pid or a path; a lock has the first of its 64 uids. */
export interface LocalResource extends Resource {
  readonly kind: 'process' | 'cgroup' | 'record' | 'corrupt-record' | 'directory' | 'uid-lock'
}

/** All resources, each with the facts that its removal needs. */
export interface FoundResources {
  readonly processes: readonly Found<SandboxProcess>[]
  readonly cgroups: readonly Found<{ readonly path: string }>[]
  readonly records: readonly Found<{ readonly id: string }>[]
  readonly corrupt: readonly Found<object>[]
  readonly directories: readonly Found<{ readonly path: string }>[]
  readonly locks: readonly Found<{ readonly slot: number }>[]
}

export type Found<T> = T & { readonly resource: LocalResource }

/** The owner of a sandbox and the uid that the sandbox holds. */
type Claim = Pick<LocalResource, 'owner' | 'uid'>

/** Longer than the time between the creation of a group and the first process in it. */
const FORMING_MS = 60_000
const UNCLAIMED = { sandbox: null, owner: 'unknown', uid: null } as const

/** Lists every resource of Sandglass, with the state of its owner. `[]` when clean. */
export async function listResources(stateDir: string = defaultStateDir()): Promise<LocalResource[]> {
  const found = await findResources(new StateDirectory(stateDir), findCgroups())
  return Object.values(found).flatMap((some: Found<object>[]) => some.map(({ resource }) => resource))
}

/**
 * Finds every resource of Sandglass. A record is written before the resources it names and removed after them. So the records are
 * read last: a resource that has no record then, and still exists, has no owner here.
 */
export async function findResources(state: StateDirectory, host: CgroupHost): Promise<FoundResources> {
  const processes = listSandboxProcesses()
  const groups = listGroups(host)
  const members = groups.flatMap(listMembers)
  const { records, corrupt } = state.records.readAll()
  const claims = await findClaims(state, records)
  const toResource = (kind: LocalResource['kind'], id: string, sandbox: string): LocalResource => {
    const { owner, uid } = claims.get(sandbox) ?? UNCLAIMED
    return { kind, id, sandbox, owner, uid }
  }
  // The mark of a process takes precedence over its group; a process in several groups is listed once.
  const byPid = new Map([...members, ...processes].map((process) => [process.pid, process]))
  const paths = [...records.flatMap(({ cgroups }) => cgroups), ...groups]
  return {
    processes: [...byPid.values()]
      .filter(({ pid, start }) => isLiving(pid, start))
      .map((process) => ({ ...process, resource: toResource('process', String(process.pid), process.sandbox) })),
    cgroups: [...new Set(paths)]
      .filter((path) => existsSync(path))
      .map((path) => ({ path, resource: disownIfEmpty(path, toResource('cgroup', path, basename(path))) })),
    records: records.map(({ id }) => ({ id, resource: toResource('record', state.records.path(id), id) })),
    corrupt: [...state.slots.listUnusable(), ...corrupt].map((path) => ({
      resource: { ...UNCLAIMED, kind: 'corrupt-record', id: path },
    })),
    directories: (await state.staging.listUnused(state.slots)).map((path) => ({
      path,
      resource: { ...UNCLAIMED, kind: 'directory', id: path, owner: 'gone' },
    })),
    locks: (await state.slots.list()).map(({ number, path, isHeld }) => ({
      slot: number,
      resource: {
        kind: 'uid-lock',
        id: path,
        sandbox: null,
        owner: isHeld ? 'alive' : 'gone',
        uid: uidOf(number, path),
      },
    })),
  }
}

async function findClaims(state: StateDirectory, records: readonly SandboxRecord[]): Promise<Map<string, Claim>> {
  const owners = new Map<string, boolean>()
  const claims = new Map<string, Claim>()
  for (const { id, uid, slot, owner } of records) {
    const isGone = owners.get(owner) ?? (await state.slots.isGone({ slot, owner }))
    owners.set(owner, isGone)
    claims.set(id, { owner: isGone ? 'gone' : 'alive', uid })
  }
  return claims
}

/** Lists the processes of a group. A process cannot hide from its group by changing its command line. */
function listMembers(group: string): SandboxProcess[] {
  return groupMembers(group).flatMap((pid) => {
    const start = startOf(pid)
    return start === undefined ? [] : [{ pid, start, sandbox: basename(group), isMarked: false }]
  })
}

/** A group without a record belongs to another state directory, unless it is empty and no longer new. */
function disownIfEmpty(path: string, resource: LocalResource): LocalResource {
  if (resource.owner !== 'unknown' || groupMembers(path).length > 0) return resource
  const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return ageMs < FORMING_MS ? resource : { ...resource, owner: 'gone' }
}

/** Returns the first uid of a slot. Only locks that root owns stand for uids. */
function uidOf(slot: number, path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.uid === 0 ? firstUidOf(slot) : null
}
