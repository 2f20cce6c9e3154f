import type Docker from 'dockerode'
import { checkOptions } from './check-options.ts'
import { connect, type Daemon } from './daemon.ts'
import { fetchDaemonInfo, timeOf } from './daemon-info.ts'
import { discard, isUnknown } from './discard.ts'
import { type OwnerState, Semaphore } from '../../support/index.ts'
import type { DockerEngineOptions } from './options.ts'
import { LABEL, ownerPid, ownerState } from './owner.ts'

/** A container of Sandglass, in use or left by an owner that died. */
export interface ContainerResource {
  readonly id: string
  readonly name: string
  readonly state: string
  readonly owner: OwnerState
  readonly pid: number | null
  readonly created: string | null
  /** True if no living owner uses it. */
  readonly isOrphan: boolean
}

/** Maximum concurrent removals on one daemon. */
const CONCURRENCY = 4
const NOT_RUNNING = ['created', 'exited', 'dead']
const EXPIRED_MS = 3_600_000

/**
 * Lists every container of Sandglass on a daemon, of any owner.
 * @throws TypeError naming an option that is wrong, SandglassError when a request to the daemon fails.
 */
export async function listResources(options: DockerEngineOptions = {}): Promise<ContainerResource[]> {
  checkOptions(options)
  return listContainers(await connect(options))
}

/**
 * Removes the containers that no living owner uses, and returns them.
 * @throws TypeError naming an option that is wrong, SandglassError when a request to the daemon fails.
 */
export async function pruneOrphans(options: DockerEngineOptions = {}): Promise<ContainerResource[]> {
  checkOptions(options)
  return removeOrphans(await connect(options))
}

/**
 * Does the same as {@link listResources} on a connection. Ages are by the daemon's clock.
 * @throws SandglassError when a request to the daemon fails.
 */
export async function listContainers(daemon: Daemon): Promise<ContainerResource[]> {
  const now = timeOf(await fetchDaemonInfo(daemon))
  const filters = { label: [LABEL.sandbox] }
  const found = await daemon.call('list containers', (abortSignal) =>
    daemon.docker.listContainers({ all: true, filters, abortSignal }),
  )
  const semaphore = new Semaphore(CONCURRENCY)
  const present = await Promise.all(found.map((one) => semaphore.run(() => exists(daemon, one))))
  return found.filter((_one, index) => present[index]).map((one) => resourceOf(one, now))
}

/**
 * Does the same as {@link pruneOrphans} on a connection.
 * @throws SandglassError when a request to the daemon fails.
 */
export async function removeOrphans(daemon: Daemon): Promise<ContainerResource[]> {
  const orphans = (await listContainers(daemon)).filter(({ isOrphan }) => isOrphan)
  const semaphore = new Semaphore(CONCURRENCY)
  const removed = await Promise.all(
    orphans.map((one) => semaphore.run(async () => ((await discard(daemon, one.id)) ? one : undefined))),
  )
  return removed.filter((one) => one !== undefined)
}

/**
 * A daemon that was killed may remove a container at its next start while it reads its state. It then lists the container
 * as dead and without a name until the start after that, and answers every other request with "no such container".
 */
async function exists(daemon: Daemon, { Id, State }: Docker.ContainerInfo): Promise<boolean> {
  if (State !== 'dead') return true
  const container = daemon.docker.getContainer(Id)
  const inspected = daemon.call('inspect a container', (abortSignal) => container.inspect({ abortSignal }))
  return inspected.then(
    () => true,
    (error: unknown) => !isUnknown(error),
  )
}

function resourceOf(info: Docker.ContainerInfo, now: number): ContainerResource {
  const owner = ownerState(info.Labels)
  return {
    id: info.Id,
    name: (info.Names[0] ?? info.Id).replace(/^\//, ''),
    state: info.State,
    owner,
    pid: ownerPid(info.Labels),
    created: info.Labels[LABEL.created] ?? null,
    isOrphan: owner === 'dead' || (owner === 'unknown' && isExpired(info, now)),
  }
}

/**
 * A container of Sandglass runs at once or is removed, and a running one ends with its host. One that does neither for
 * an hour belongs to a host that died: on this machine before it was restarted, or on another one. Without the daemon's
 * clock nothing expires.
 */
function isExpired({ State, Created }: Docker.ContainerInfo, now: number): boolean {
  return NOT_RUNNING.includes(State) && now - Created * 1000 > EXPIRED_MS
}
