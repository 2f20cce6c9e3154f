import { existsSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isLiving, startOf } from '../../support/index.ts'
import { type CgroupHost, existingGroups, findCgroups } from './cgroup-host.ts'
import { groupMembers } from './cgroups.ts'
import { type SandboxProcess, sandboxProcesses } from './sandbox-processes.ts'
import type { SandboxRecord } from './sandbox-record.ts'
import { defaultStateDir, StateDirectory } from './state.ts'
import { firstUidOf } from './uids.ts'

/** One thing of this product on the machine: alive with its owner, or left over. */
export interface Remnant {
  readonly kind: 'process' | 'cgroup' | 'record' | 'corrupt-record' | 'directory' | 'uid-lock'
  /** A pid or a path. */
  readonly id: string
  /** The sandbox it belongs to, when that is known. */
  readonly sandbox: string | null
  /** Whether the process that made it still lives; unknown when this state directory has no record of it. */
  readonly owner: 'alive' | 'gone' | 'unknown'
  /** The uid that it holds, when it holds one; of a lock, the first of its 64. */
  readonly uid: number | null
}

/** Everything that was found, with what it takes to remove it. */
export interface Remnants {
  readonly processes: readonly Found<SandboxProcess>[]
  readonly cgroups: readonly Found<{ readonly path: string }>[]
  readonly records: readonly Found<{ readonly id: string }>[]
  readonly corrupt: readonly Found<object>[]
  readonly directories: readonly Found<{ readonly path: string }>[]
  readonly locks: readonly Found<{ readonly slot: number }>[]
}

export type Found<T> = T & { readonly remnant: Remnant }

/** Longer than a sandbox of any state directory takes from its group to the first process in it. */
const FORMING_MS = 60_000

/** Everything of this product, with who owns it. `[]` when clean. */
export async function listRemnants(stateDir: string = defaultStateDir()): Promise<Remnant[]> {
  return Object.values(await lookAround(new StateDirectory(stateDir), findCgroups())).flatMap(
    (found: Found<object>[]) => found.map(({ remnant }) => remnant),
  )
}

/**
 * A record is written before anything it names, and removed after it. So the records are read last, and what has none
 * then and is still there really has none.
 */
export async function lookAround(state: StateDirectory, host: CgroupHost): Promise<Remnants> {
  const processes = sandboxProcesses()
  const groups = existingGroups(host)
  const members = groups.flatMap(membersOf)
  const { records, corrupt } = state.records()
  const claims = await claimsOf(state, records)
  const remnant = (kind: Remnant['kind'], id: string, sandbox: string): Remnant => {
    const { owner, uid } = claims.get(sandbox) ?? { owner: 'unknown', uid: null }
    return { kind, id, sandbox, owner, uid }
  }
  // Of a process that is in a group and bears the mark, what the mark says; and one entry for all its groups.
  const byPid = new Map([...members, ...processes].map((process) => [process.pid, process]))
  const claimed = records.flatMap(({ cgroups }) => cgroups).filter((path) => existsSync(path))
  return {
    processes: [...byPid.values()]
      .filter(({ pid, start }) => isLiving(pid, start))
      .map((process) => ({ ...process, remnant: remnant('process', String(process.pid), process.sandbox) })),
    cgroups: [...new Set([...claimed, ...groups])]
      .filter((path) => existsSync(path))
      .map((path) => ({ path, remnant: abandoned(path, remnant('cgroup', path, basename(path))) })),
    records: records.map(({ id }) => ({
      id,
      remnant: remnant('record', join(state.path, 'sandboxes', `${id}.json`), id),
    })),
    corrupt: corrupt.map((path) => ({ remnant: { ...NOBODYS, kind: 'corrupt-record', id: path } })),
    directories: (await state.unusedDirectories()).map((path) => ({
      path,
      remnant: { ...NOBODYS, kind: 'directory', id: path, owner: 'gone' },
    })),
    locks: (await state.namedSlots()).map(({ number, path, isHeld }) => ({
      slot: number,
      remnant: {
        kind: 'uid-lock',
        id: path,
        sandbox: null,
        owner: isHeld ? 'alive' : 'gone',
        uid: uidOf(number, path),
      },
    })),
  }
}

const NOBODYS = { sandbox: null, owner: 'unknown', uid: null } as const

async function claimsOf(
  state: StateDirectory,
  records: readonly SandboxRecord[],
): Promise<Map<string, Pick<Remnant, 'owner' | 'uid'>>> {
  const owners = new Map<string, boolean>()
  const claims = new Map<string, Pick<Remnant, 'owner' | 'uid'>>()
  for (const { id, uid, slot, owner } of records) {
    const isGone = owners.get(owner) ?? (await state.isOrphan({ slot, owner }))
    owners.set(owner, isGone)
    claims.set(id, { owner: isGone ? 'gone' : 'alive', uid })
  }
  return claims
}

/** Processes of a group, which cannot hide from it behind a command line. */
function membersOf(group: string): SandboxProcess[] {
  return groupMembers(group).flatMap((pid) => {
    const start = startOf(pid)
    return start === undefined ? [] : [{ pid, start, sandbox: basename(group), isMarked: false }]
  })
}

/** A group without a record is one of another state directory, unless nothing lives in it any more. */
function abandoned(path: string, remnant: Remnant): Remnant {
  if (remnant.owner !== 'unknown' || groupMembers(path).length > 0) return remnant
  const since = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return since < FORMING_MS ? remnant : { ...remnant, owner: 'gone' }
}

/** Root's locks alone go with uids. */
function uidOf(slot: number, path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.uid === 0 ? firstUidOf(slot) : null
}
