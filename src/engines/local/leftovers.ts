import { readdirSync, readFileSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { existingGroups, findCgroups, groupMembers, removeGroup, type CgroupHost } from './cgroups.ts'
import { killMember } from './process-id.ts'
import { defaultStateDir, StateDirectory } from './state.ts'

/** One thing of this product on the machine: alive with its owner, or left over. */
export interface Remnant {
  readonly kind: 'process' | 'cgroup' | 'record' | 'corrupt-record' | 'directory'
  /** A pid or a path. */
  readonly id: string
  /** The sandbox it belongs to, when that is known. */
  readonly sandbox: string | null
  /** Whether the process that made it still lives. */
  readonly owner: 'alive' | 'gone' | 'unknown'
  /** The uid that it holds, when it holds one. */
  readonly uid: number | null
}

const RMDIR_TRIES = 60
/** Longer than a sandbox takes from its group to the first process in it. */
const FORMING_MS = 60_000

/** Removes what the sandboxes of dead owners left, quietly; an engine does it at its start. */
export async function collectLeftovers(state: StateDirectory, cgroups: CgroupHost): Promise<number> {
  let removed = 0
  for (const remnant of await remnants(state, cgroups)) {
    if (remnant.owner !== 'gone') continue
    removed += 1
    if (remnant.kind === 'process') killMember(Number(remnant.id), remnant.sandbox ?? '')
    if (remnant.kind === 'cgroup') await removeCgroups([remnant.id])
    if (remnant.kind === 'directory') await rm(remnant.id, { recursive: true, force: true })
    if (remnant.kind === 'record') state.removeRecord(basename(remnant.id, '.json'))
  }
  return removed
}

/** Everything of this product: processes, control groups, records, with who owns it. `[]` when clean. */
export async function listRemnants(stateDir: string = defaultStateDir()): Promise<Remnant[]> {
  return remnants(new StateDirectory(stateDir), findCgroups())
}

/** Removes what is left over, never what a living owner holds; resolves to what was removed. */
export async function pruneRemnants(stateDir: string = defaultStateDir()): Promise<Remnant[]> {
  const state = new StateDirectory(stateDir)
  const cgroups = findCgroups()
  const gone = (await remnants(state, cgroups)).filter((remnant) => remnant.owner === 'gone')
  await collectLeftovers(state, cgroups)
  return gone
}

async function remnants(state: StateDirectory, cgroups: CgroupHost): Promise<Remnant[]> {
  const { records, corrupt } = state.records()
  const found: Remnant[] = []
  const claimed = new Map<string, { owner: 'alive' | 'gone'; uid: number | null; id: string }>()
  const orphans = new Map<string, boolean>()
  for (const record of records) {
    if (!orphans.has(record.owner)) orphans.set(record.owner, await state.isOrphan(record))
    const owner = orphans.get(record.owner) === true ? 'gone' : 'alive'
    found.push({
      kind: 'record',
      id: `${state.path}/sandboxes/${record.id}.json`,
      sandbox: record.id,
      owner,
      uid: record.uid,
    })
    for (const path of record.cgroups) claimed.set(path, { owner, uid: record.uid, id: record.id })
  }
  for (const path of corrupt)
    found.push({ kind: 'corrupt-record', id: path, sandbox: null, owner: 'unknown', uid: null })
  for (const path of await state.unusedDirectories())
    found.push({ kind: 'directory', id: path, sandbox: null, owner: 'gone', uid: null })
  const members = new Map<number, Remnant>()
  for (const path of new Set([...claimed.keys(), ...existingGroups(cgroups)])) {
    const claim = claimed.get(path)
    // A group of another state directory has an owner that is not known here, unless nothing lives in it any more.
    const pids = groupMembers(path)
    const owner = claim?.owner ?? (pids.length === 0 && !isForming(path) ? 'gone' : 'unknown')
    found.push({ kind: 'cgroup', id: path, sandbox: claim?.id ?? basename(path), owner, uid: claim?.uid ?? null })
    for (const pid of pids)
      members.set(pid, {
        kind: 'process',
        id: String(pid),
        sandbox: claim?.id ?? basename(path),
        owner,
        uid: claim?.uid ?? null,
      })
  }
  for (const pid of harnessProcesses()) {
    if (!members.has(pid))
      members.set(pid, { kind: 'process', id: String(pid), sandbox: null, owner: 'unknown', uid: null })
  }
  return [...found, ...members.values()]
}

/** A sandbox that is being made has an empty group, and not yet a record that this process has seen. */
function isForming(group: string): boolean {
  return Date.now() - (statSync(group, { throwIfNoEntry: false })?.mtimeMs ?? 0) < FORMING_MS
}

/** Processes of a harness by their command line, for sandboxes without a control group. */
function harnessProcesses(): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'latin1')
      return /from sandglass_harness import start;/.test(command) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

/** Removes groups, waiting for the processes in them to be gone: at most 3 s. */
export async function removeCgroups(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    for (let tries = 0; tries < RMDIR_TRIES && !removeGroup(path); tries += 1) {
      for (const pid of groupMembers(path)) killMember(pid, path)
      await sleep(Math.min(2 ** tries, 50))
    }
  }
}
