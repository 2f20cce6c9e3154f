import { randomUUID } from 'node:crypto'
import type { V1OwnerReference } from '@kubernetes/client-node'
import { markOfThisProcess, type OwnerState, stateOf } from '../../support/index.ts'
import type { Cluster } from './cluster.ts'
import { isMissing } from './explain.ts'

/** The label of every pod of Sandglass, by which they are found. */
export const MANAGED: readonly [name: string, value: string] = ['app.kubernetes.io/managed-by', 'sandglass']
/** The label by which NetworkPolicies select the pods of sandboxes. */
export const ISOLATED: Readonly<Record<string, string>> = { 'sandglass.dev/network': 'none' }
const ENGINE_LABEL = 'sandglass.dev/engine'
/** Selects all that engines made. An application that uses Sandglass may give its own pods the first label. */
export const SELECTOR: string = `${MANAGED.join('=')},${ENGINE_LABEL}`
/** Labels have no colon, so the owner is an annotation. */
const OWNER = 'sandglass.dev/owner'
const BOOT_ID = 'sandglass.dev/boot-id'

/** The lease of the engine that made a pod. */
const LEASE = 'sandglass.dev/lease'

/** The marks of all that one engine makes in a cluster. */
export interface OwnerMarks {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly ownerReferences: readonly V1OwnerReference[]
  /** The name of its lease. */
  readonly lease: string
}

/**
 * Makes the marks of one engine: this process, the boot id of its machine, an id of the engine, and the pod in which this process
 * runs, if it is known: Kubernetes then deletes what has the marks after that pod.
 */
export function ownerMarks(ownerReferences: readonly V1OwnerReference[]): OwnerMarks {
  const { owner, bootId } = markOfThisProcess()
  const id = randomUUID()
  const lease = `sandglass-${id}`
  return {
    labels: { [MANAGED[0]]: MANAGED[1], [ENGINE_LABEL]: id },
    annotations: { [OWNER]: owner, [BOOT_ID]: bootId, [LEASE]: lease },
    ownerReferences,
    lease,
  }
}

/**
 * Finds the pod of this process, by what the downward API of Kubernetes put into its environment. It must exist in the namespace of
 * the sandboxes: Kubernetes deletes at once whatever names an owner that does not.
 * @throws SandglassError `kubernetes_unreachable`, `kubernetes_permission`
 */
export async function findOwnPod(cluster: Cluster): Promise<readonly V1OwnerReference[]> {
  const [name = '', uid = '', own] = ['NAME', 'UID', 'NAMESPACE'].map((part) => process.env[`SANDGLASS_POD_${part}`])
  const { namespace } = cluster
  if (name === '' || uid === '' || own !== namespace) return []
  try {
    // The environment may be that of a pod of another cluster.
    const { metadata } = await cluster.call('read a pod', (api) => api.readNamespacedPod({ name, namespace }))
    return metadata?.uid === uid ? [{ apiVersion: 'v1', kind: 'Pod', name, uid }] : []
  } catch (error) {
    if (isMissing(error)) return []
    throw error // nobody would know whether the next sandboxes have an owner
  }
}

/** The lease that the annotations of a pod name. */
export function leaseOf(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  return annotations[LEASE]
}

/** The state of the owner of a pod: unknown on another machine. */
export function ownerStateOf(annotations: Readonly<Record<string, string>> = {}): OwnerState {
  return stateOf({ owner: annotations[OWNER], bootId: annotations[BOOT_ID] })
}
