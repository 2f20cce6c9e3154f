import { join } from 'node:path'
import { listRemnants, type Remnant } from '../../src/engines/local/index.ts'
import { sandboxProcesses } from '../../src/engines/local/sandbox-processes.ts'
import { descendantsOf, processOf } from '../../test/support/processes.ts'
import { described, filesLeft, mountsOf, type Place, present, type Remains } from './remains.ts'
import type { WatchedEngine } from './watched-engine.ts'

const NAMES: Readonly<Record<Remnant['kind'], string>> = {
  process: 'processes',
  cgroup: 'control groups',
  record: 'records',
  'corrupt-record': 'records',
  directory: 'files',
  'uid-lock': 'uid locks',
}

/** What sandboxes of the engine `local` left on this machine, as `sandglass ps` and /proc tell it. */
export async function localRemains(
  place: Place,
  engine: Pick<WatchedEngine, 'living' | 'ended'>,
  host: number = process.pid,
): Promise<Remains> {
  const stateDir = join(place.directory, 'state')
  const remnants = await listRemnants(stateDir)
  const left = remnants.filter((one) => isOurs(one, stateDir, engine) && isLeft(one, engine))
  const found: Record<string, string[]> = {
    processes: strangersBelow(host, engine),
    files: filesLeft(place, engine.living.keys()),
    mounts: mountsOf([place.directory, ...engine.ended.keys()]),
  }
  for (const { kind, id } of left) (found[NAMES[kind]] ??= []).push(id)
  return present({ ...found, processes: [...new Set(found['processes'])] })
}

/** The list holds sandboxes of other hosts and state directories, too: their groups may be abandoned meanwhile. */
function isOurs(one: Remnant, stateDir: string, { ended, living }: Pick<WatchedEngine, 'living' | 'ended'>): boolean {
  if (one.id.startsWith(join(stateDir, '/'))) return true
  return one.sandbox !== null && (ended.has(one.sandbox) || living.has(one.sandbox) || one.owner === 'alive')
}

function isLeft(one: Remnant, { living }: Pick<WatchedEngine, 'living'>): boolean {
  if (one.kind === 'uid-lock') return one.owner !== 'alive'
  return one.sandbox === null || !living.has(one.sandbox)
}

/** Processes below the host that are in no living sandbox. */
function strangersBelow(host: number, { living }: Pick<WatchedEngine, 'living'>): string[] {
  const known = new Map(sandboxProcesses().map(({ pid, sandbox }) => [pid, sandbox]))
  return descendantsOf(host)
    .filter((pid) => !living.has(known.get(pid) ?? '') && processOf(pid) !== undefined)
    .map((pid) => `${pid} ${described(pid)}`)
}

/** The process of a sandbox that is PID 1 inside. */
export function firstProcessOf(sandboxId: string): number | undefined {
  return sandboxProcesses()
    .filter(({ sandbox }) => sandbox === sandboxId)
    .map(({ pid }) => processOf(pid))
    .find((found) => found?.insidePid === 1)?.pid
}
