import type { V1Pod } from '@kubernetes/client-node'
import { type OwnerState, Semaphore } from '../../support/index.ts'
import type { Cluster } from './cluster.ts'
import { listLeases, type LeaseResource, removeLease } from './lease.ts'
import { leaseOf, ownerStateOf, SELECTOR } from './owner.ts'
import { removePod } from './pod.ts'

/** A pod of Sandglass, in use or left by an owner that died. */
export interface PodResource {
  readonly name: string
  readonly owner: OwnerState
  /** The name of its lease. */
  readonly lease: string | undefined
  /** True if no living owner uses it, and nobody deletes it yet. */
  readonly isOrphan: boolean
}

const CONCURRENCY = 4
/** Phases in which no container of a pod runs or will run. */
const OVER = ['Succeeded', 'Failed']
/**
 * A lease that ended this long ago is not that of a host which is stopped, or which the API server did not hear for a while: its
 * sandboxes have ended by themselves after five minutes at the latest (`UNANSWERED_WHILE_SENDING` of relay-channel.ts, and `STUCK_SEC`
 * of harness/relay.py). Before, only ended pods are removed by the lease.
 */
const ABANDONED_MS = 360_000
/** A host deletes an ended pod at once. One without a lease that stays for this time belongs to a host that died, on whatever machine. */
const EXPIRED_MS = 600_000

/** The pods and the leases of Sandglass in a namespace, of any owner. */
export interface ClusterResources {
  readonly pods: readonly PodResource[]
  readonly leases: readonly LeaseResource[]
}

/**
 * Lists what Sandglass has in the namespace.
 * @param onPods gets the pods themselves.
 * @throws SandglassError when a request fails.
 */
export async function listResources(
  cluster: Cluster,
  onPods: (pods: readonly V1Pod[]) => void = () => undefined,
): Promise<ClusterResources> {
  const { namespace } = cluster
  const labelSelector = SELECTOR
  const { items } = await cluster.call('list pods', (api) => api.listNamespacedPod({ namespace, labelSelector }))
  onPods(items)
  const leases = await listLeases(cluster)
  return { pods: items.map((pod) => podResourceOf(pod, leases, cluster.clock.now())), leases }
}

/**
 * Removes the pods that no living owner uses, then the leases of dead owners, and returns them.
 * @throws SandglassError when they cannot be listed.
 */
export async function removeOrphans(
  cluster: Cluster,
  onPods?: (pods: readonly V1Pod[]) => void,
): Promise<ClusterResources> {
  const { pods, leases } = await listResources(cluster, onPods)
  const orphans = pods.filter(({ isOrphan }) => isOrphan)
  const semaphore = new Semaphore(CONCURRENCY)
  const removed = await Promise.all(
    orphans.map((one) => semaphore.run(async () => ((await removePod(cluster, one.name)) ? one : undefined))),
  )
  const gone = removed.filter((one) => one !== undefined)
  // A pod that stays needs its lease: without it, nobody knows soon that its owner died.
  const needed = new Set(pods.filter((one) => !gone.includes(one)).map(({ lease }) => lease))
  const ended: LeaseResource[] = []
  for (const lease of leases.filter(({ name, owner }) => owner === 'dead' && !needed.has(name))) {
    if (await removeLease(cluster, lease.name)) ended.push(lease)
  }
  return { pods: gone, leases: ended }
}

/** The state of a pod: what this machine sees of the process of its owner, else by its lease, else by how long ago it ended. */
export function podResourceOf(pod: V1Pod, leases: readonly LeaseResource[], nowMs: number): PodResource {
  const { name = '', annotations, deletionTimestamp } = pod.metadata ?? {}
  const seen = ownerStateOf(annotations)
  const lease = leases.find((one) => one.name === leaseOf(annotations))
  const owner = seen === 'unknown' ? (lease?.owner ?? seen) : seen
  const isLeft =
    seen === 'dead' ||
    (owner === 'dead' && (isOver(pod) || (lease?.endedMs ?? 0) > ABANDONED_MS)) ||
    (owner === 'unknown' && isExpired(pod, nowMs))
  return { name, owner, lease: leaseOf(annotations), isOrphan: isLeft && deletionTimestamp === undefined }
}

function isOver({ status }: V1Pod): boolean {
  return OVER.includes(status?.phase ?? '')
}

/** True if a pod ended long ago, by the times that its node reported, or was made then, and the clock of the API server. */
function isExpired(pod: V1Pod, nowMs: number): boolean {
  if (!isOver(pod)) return false
  const { metadata, status } = pod
  const ends = (status?.containerStatuses ?? []).map(({ state }) => state?.terminated?.finishedAt?.getTime() ?? 0)
  const end = Math.max(metadata?.creationTimestamp?.getTime() ?? 0, ...ends)
  return nowMs - end > EXPIRED_MS
}
