import type Docker from 'dockerode'
import type { ContainerRemnant } from './container-remnant.ts'
import type { Daemon } from './daemon.ts'
import { discard, isUnknown } from './discard.ts'
import { Gate } from './gate.ts'
import { introduced, timeOf } from './introduction.ts'
import { LABEL, ownerPid, ownerState } from './owner.ts'

/** Removals that a daemon is asked for at the same time. */
const AT_A_TIME = 4

/**
 * Every container of this product on the daemon, whoever made it. Ages are by the daemon's clock.
 * @throws SandglassError when the daemon cannot be asked.
 */
export async function listContainers(daemon: Daemon): Promise<ContainerRemnant[]> {
  const now = timeOf(await introduced(daemon))
  const filters = { label: [LABEL.sandbox] }
  const found = await daemon.call('list containers', (abortSignal) =>
    daemon.docker.listContainers({ all: true, filters, abortSignal }),
  )
  const gate = new Gate(AT_A_TIME)
  const there = await Promise.all(found.map((one) => gate.pass(() => exists(daemon, one))))
  return found.filter((_one, index) => there[index]).map((one) => remnantOf(one, now))
}

/**
 * Removes what nobody can need any more, never a container whose owner lives; gives back which.
 * @throws SandglassError when the daemon cannot be asked.
 */
export async function removeLeftovers(daemon: Daemon): Promise<ContainerRemnant[]> {
  const left = (await listContainers(daemon)).filter(({ isLeftOver }) => isLeftOver)
  const gate = new Gate(AT_A_TIME)
  const removed = await Promise.all(
    left.map((one) => gate.pass(async () => ((await discard(daemon, one.id)) ? one : undefined))),
  )
  return removed.filter((one) => one !== undefined)
}

/**
 * A daemon that was killed and starts anew may remove a container while it reads what there was. It then goes on listing it
 * as dead, without a name, until its next start; to every other question it says that there is no such container.
 */
async function exists(daemon: Daemon, { Id, State }: Docker.ContainerInfo): Promise<boolean> {
  if (State !== 'dead') return true
  const container = daemon.docker.getContainer(Id)
  const asked = daemon.call('look at a container', (abortSignal) => container.inspect({ abortSignal }))
  return asked.then(
    () => true,
    (error: unknown) => !isUnknown(error),
  )
}

function remnantOf(info: Docker.ContainerInfo, now: number): ContainerRemnant {
  const owner = ownerState(info.Labels)
  return {
    id: info.Id,
    name: (info.Names[0] ?? info.Id).replace(/^\//, ''),
    state: info.State,
    owner,
    pid: ownerPid(info.Labels),
    created: info.Labels[LABEL.created] ?? null,
    isLeftOver: owner === 'dead' || (owner === 'unknown' && isExpired(info, now)),
  }
}

const NOT_RUNNING = ['created', 'exited', 'dead']
const EXPIRED_MS = 3_600_000

/**
 * A container of ours runs at once or is removed, and one that runs ends by itself with its host. One that does neither for
 * so long is of a host that died meanwhile, on this machine before it was started anew, or on another one. By a clock that
 * is not told, nothing is.
 */
function isExpired({ State, Created }: Docker.ContainerInfo, now: number): boolean {
  return NOT_RUNNING.includes(State) && now - Created * 1000 > EXPIRED_MS
}
