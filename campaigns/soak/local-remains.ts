import { join } from 'node:path'
import { listResources, type LocalResource } from '../../src/engines/local/index.ts'
import { listSandboxProcesses } from '../../src/engines/local/sandbox-processes.ts'
import { descendantsOf, processOf } from '../../test/support/processes.ts'
import { describeProcess, filesLeft, mountsOf, type Place, withoutEmpty, type Remains } from './remains.ts'
import type { WatchedEngine } from './watched-engine.ts'

const NAMES: Readonly<Record<LocalResource['kind'], string>> = {
  process: 'processes',
  cgroup: 'control groups',
  record: 'records',
  'corrupt-record': 'records',
  directory: 'files',
  'uid-lock': 'uid locks',
}

/** The resources that sandboxes of the engine `local` left on this machine, from the list of `sandglass ps` and from /proc. */
export async function localRemains(
  place: Place,
  engine: Pick<WatchedEngine, 'living' | 'ended'>,
  host: number = process.pid,
): Promise<Remains> {
  const stateDir = join(place.directory, 'state')
  const resources = await listResources(stateDir)
  const left = resources.filter((one) => isOurs(one, stateDir, engine) && isLeft(one, engine))
  const found: Record<string, string[]> = {
    processes: unknownProcessesBelow(host, engine),
    files: filesLeft(place, engine.living.keys()),
    mounts: mountsOf([place.directory, ...engine.ended.keys()]),
  }
  for (const { kind, id } of left) (found[NAMES[kind]] ??= []).push(id)
  return withoutEmpty({ ...found, processes: [...new Set(found['processes'])] })
}

/** Ignores sandboxes of other hosts and state directories, which the list also contains. */
function isOurs(
  one: LocalResource,
  stateDir: string,
  { ended, living }: Pick<WatchedEngine, 'living' | 'ended'>,
): boolean {
  if (one.id.startsWith(join(stateDir, '/'))) return true
  return one.sandbox !== null && (ended.has(one.sandbox) || living.has(one.sandbox) || one.owner === 'alive')
}

function isLeft(one: LocalResource, { living }: Pick<WatchedEngine, 'living'>): boolean {
  if (one.kind === 'uid-lock') return one.owner !== 'alive'
  return one.sandbox === null || !living.has(one.sandbox)
}

/** Processes below the host that are in no living sandbox. */
function unknownProcessesBelow(host: number, { living }: Pick<WatchedEngine, 'living'>): string[] {
  const known = new Map(listSandboxProcesses().map(({ pid, sandbox }) => [pid, sandbox]))
  return descendantsOf(host)
    .filter((pid) => !living.has(known.get(pid) ?? '') && processOf(pid) !== undefined)
    .map((pid) => `${pid} ${describeProcess(pid)}`)
}

/** The process that is PID 1 inside a sandbox. */
export function firstProcessOf(sandboxId: string): number | undefined {
  return listSandboxProcesses()
    .filter(({ sandbox }) => sandbox === sandboxId)
    .map(({ pid }) => processOf(pid))
    .find((found) => found?.insidePid === 1)?.pid
}
