import type { V1Pod } from '@kubernetes/client-node'
import { SandglassError } from '../../errors/index.ts'
import type { ReadyFrame } from '../../protocol/index.ts'
import { imagesOf } from './pod-directories.ts'
import type { PodPlan } from './pod-spec.ts'

/**
 * Messages about fields of a pod that not every cluster has. An API server without them drops the fields and says nothing; a node
 * without them says it in events, which the account may not read.
 */
const USER_NAMESPACES = 'kubernetes.hostUsers: false needs'
const IMAGE_VOLUMES = 'kubernetes.volumeImages needs'

/** @throws SandglassError `feature_unavailable` if the API server dropped a field of a pod that it made. */
export function assertKept({ spec }: V1Pod, { placement, directories }: PodPlan): void {
  if (placement.hostUsers === false && spec?.hostUsers !== false) {
    throw new SandglassError(
      'feature_unavailable',
      `the API server leaves out hostUsers: ${USER_NAMESPACES} Kubernetes 1.33, or the feature gate UserNamespacesSupport`,
    )
  }
  const kept = spec?.volumes?.filter(({ image }) => image !== undefined).length ?? 0
  if (kept < imagesOf(directories).length) {
    throw new SandglassError(
      'feature_unavailable',
      `the API server leaves out volumes[].image: ${IMAGE_VOLUMES} Kubernetes 1.35, or from 1.31 on the feature gate ImageVolume`,
    )
  }
}

/** @throws SandglassError `feature_unavailable` if a pod that asked for a user namespace shows none from within. */
export function assertUserNamespace({ checks }: ReadyFrame, { placement }: PodPlan): void {
  if (placement.hostUsers !== false || checks['user_namespace'] === true) return
  throw new SandglassError(
    'feature_unavailable',
    `the pod shows no user namespace: ${USER_NAMESPACES} a kubelet and a runtime that make one; gVisor shows none`,
  )
}

/** Names what a node needs for the fields of a pod that it did not start; an empty text without such fields. */
export function explainNode({ placement, directories }: PodPlan): string {
  return [
    ...(placement.hostUsers === false
      ? [`${USER_NAMESPACES} containerd 2.0 with runc 1.2, or CRI-O 1.25, Linux 6.3 and a kubelet of 1.33 on the nodes`]
      : []),
    ...(imagesOf(directories).length > 0
      ? [
          `${IMAGE_VOLUMES} containerd 2.1 or CRI-O 1.31 on the nodes, and the feature gate ImageVolume of their kubelets`,
        ]
      : []),
  ]
    .map((one) => `; ${one}`)
    .join('')
}
