import type Docker from 'dockerode'
import type { ContainerRemnant } from './container-remnant.ts'
import type { Daemon } from './daemon.ts'
import { discard } from './discard.ts'
import { LABEL, ownerPid, ownerState } from './owner.ts'

/**
 * Every container of this product on the daemon, whoever made it.
 * @param now what the daemon's clock says, in milliseconds.
 * @throws SandglassError when the daemon cannot be asked.
 */
export async function listContainers(daemon: Daemon, now: number = Date.now()): Promise<ContainerRemnant[]> {
  const filters = { label: [LABEL.sandbox] }
  const found = await daemon.call('list containers', (abortSignal) =>
    daemon.docker.listContainers({ all: true, filters, abortSignal }),
  )
  return found.map((one) => remnantOf(one, now))
}

/**
 * Removes what nobody can need any more, never a container whose owner lives; gives back which.
 * @throws SandglassError when the daemon cannot be asked.
 */
export async function removeLeftovers(daemon: Daemon, now?: number): Promise<ContainerRemnant[]> {
  const left = (await listContainers(daemon, now)).filter(({ isLeftOver }) => isLeftOver)
  const removed = await Promise.all(left.map(async (one) => ((await discard(daemon, one.id)) ? one : undefined)))
  return removed.filter((one) => one !== undefined)
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
 * so long is of a host that died meanwhile, on this machine before it was started anew, or on another one.
 */
function isExpired({ State, Created }: Docker.ContainerInfo, now: number): boolean {
  return NOT_RUNNING.includes(State) && now - Created * 1000 > EXPIRED_MS
}
