import type { V1Pod } from '@kubernetes/client-node'
import { type OwnerState, Semaphore } from '../../support/index.ts'
import type { Cluster } from './cluster.ts'
import { MANAGED, ownerStateOf } from './owner.ts'
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
/** A host deletes an ended pod at once. One that stays for this time belongs to a host that died, on whatever machine. */
const EXPIRED_MS = 600_000

/** Lists the pods of Sandglass in the namespace, of any owner. @throws SandglassError when the request fails. */
export async function listPods(cluster: Cluster): Promise<readonly PodResource[]> {
  const { namespace } = cluster
  const labelSelector = MANAGED.join('=')
  const { items } = await cluster.call('list pods', (api) => api.listNamespacedPod({ namespace, labelSelector }))
  return items.map(resourceOf)
}

/** Removes the pods that no living owner uses, and returns them. @throws SandglassError when the pods cannot be listed. */
export async function removeOrphans(cluster: Cluster): Promise<readonly PodResource[]> {
  const orphans = (await listPods(cluster)).filter(({ isOrphan }) => isOrphan)
  const semaphore = new Semaphore(CONCURRENCY)
  const removed = await Promise.all(
    orphans.map((one) => semaphore.run(async () => ((await removePod(cluster, one.name)) ? one : undefined))),
  )
  return removed.filter((one) => one !== undefined)
}

function resourceOf(pod: V1Pod): PodResource {
  const owner = ownerStateOf(pod.metadata?.annotations)
  return {
    name: pod.metadata?.name ?? '',
    owner,
    isOrphan: owner === 'dead' || (owner === 'unknown' && isExpired(pod)),
  }
}

/** True if a pod ended long ago, by the times that its node reported, or was made then, and the clock of this machine. */
function isExpired({ metadata, status }: V1Pod): boolean {
  if (!OVER.includes(status?.phase ?? '')) return false
  const ends = (status?.containerStatuses ?? []).map(({ state }) => state?.terminated?.finishedAt?.getTime() ?? 0)
  const end = Math.max(metadata?.creationTimestamp?.getTime() ?? 0, ...ends)
  return Date.now() - end > EXPIRED_MS
}
