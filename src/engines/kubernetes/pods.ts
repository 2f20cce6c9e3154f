import type { V1Pod } from '@kubernetes/client-node'
import { type OwnerState, Semaphore } from '../../support/index.ts'
import type { Cluster } from './cluster.ts'
import { listLeases, type LeaseResource, removeLease } from './lease.ts'
import { leaseOf, MANAGED, ownerStateOf } from './owner.ts'
import { removePod } from './pod.ts'

/** A pod of Sandglass, in use or left by an owner that died. */
export interface PodResource {
  readonly name: string
  readonly owner: OwnerState
  /** True if no living owner uses it. */
  readonly isOrphan: boolean
}

const CONCURRENCY = 4
/** Phases in which no container of a pod runs or will run. */
const OVER = ['Succeeded', 'Failed']
/** A host deletes an ended pod at once. One without a lease that stays for this time belongs to a host that died, on whatever machine. */
const EXPIRED_MS = 600_000

/** The pods and the leases of Sandglass in a namespace, of any owner. */
export interface ClusterResources {
  readonly pods: readonly PodResource[]
  readonly leases: readonly LeaseResource[]
}

/** Lists what Sandglass has in the namespace. @throws SandglassError when a request fails. */
export async function listResources(cluster: Cluster): Promise<ClusterResources> {
  const { namespace } = cluster
  const labelSelector = MANAGED.join('=')
  const { items } = await cluster.call('list pods', (api) => api.listNamespacedPod({ namespace, labelSelector }))
  const leases = await listLeases(cluster)
  const states = new Map(leases.map(({ name, owner }) => [name, owner]))
  return { pods: items.map((pod) => resourceOf(pod, states, cluster.clock.now())), leases }
}

/**
 * Removes the pods that no living owner uses, then the leases of dead owners, and returns them.
 * @throws SandglassError when they cannot be listed.
 */
export async function removeOrphans(cluster: Cluster): Promise<ClusterResources> {
  const { pods, leases } = await listResources(cluster)
  const orphans = pods.filter(({ isOrphan }) => isOrphan)
  const semaphore = new Semaphore(CONCURRENCY)
  const removed = await Promise.all(
    orphans.map((one) => semaphore.run(async () => ((await removePod(cluster, one.name)) ? one : undefined))),
  )
  const gone = removed.filter((one) => one !== undefined)
  // A pod that stays needs its lease: without it, nobody knows soon that its owner died.
  if (gone.length < orphans.length) return { pods: gone, leases: [] }
  const ended: LeaseResource[] = []
  for (const lease of leases.filter(({ owner }) => owner === 'dead')) {
    if (await removeLease(cluster, lease.name)) ended.push(lease)
  }
  return { pods: gone, leases: ended }
}

function resourceOf(pod: V1Pod, leases: ReadonlyMap<string, OwnerState>, nowMs: number): PodResource {
  const annotations = pod.metadata?.annotations
  const seen = ownerStateOf(annotations)
  const owner = seen === 'unknown' ? (leases.get(leaseOf(annotations) ?? '') ?? seen) : seen
  return {
    name: pod.metadata?.name ?? '',
    owner,
    isOrphan: owner === 'dead' || (owner === 'unknown' && isExpired(pod, nowMs)),
  }
}

/** True if a pod ended long ago, by the times that its node reported, or was made then, and the clock of the API server. */
function isExpired({ metadata, status }: V1Pod, nowMs: number): boolean {
  if (!OVER.includes(status?.phase ?? '')) return false
  const ends = (status?.containerStatuses ?? []).map(({ state }) => state?.terminated?.finishedAt?.getTime() ?? 0)
  const end = Math.max(metadata?.creationTimestamp?.getTime() ?? 0, ...ends)
  return nowMs - end > EXPIRED_MS
}
