import { randomUUID } from 'node:crypto'
import type { V1Pod } from '@kubernetes/client-node'
import { SandglassError } from '../../errors/index.ts'
import type { Cluster } from './cluster.ts'
import { isUncertain } from './explain.ts'
import { pollPod, removePod } from './pod.ts'
import type { OwnerMarks } from './owner.ts'
import { type Placement, REACH, reachCommand } from './pod-spec.ts'
import type { ReachingPod } from './reach.ts'

/** The port on which control pods listen. */
export const LISTEN_PORT = 7777
const CONTAINER = 'control'
const LIFETIME_SEC = 120

/** The parts of a control pod: as far as the network can tell, the same as a sandbox, but for the label that policies select. */
export interface ControlPlan {
  readonly image: string
  readonly python: string
  readonly runtimeClassName: string | undefined
  readonly placement: Placement
  readonly marks: OwnerMarks
  /** The text of harness/reach.py. */
  readonly program: string
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** A running pod that no policy for sandboxes isolates, and that listens. */
export interface ControlPod extends AsyncDisposable, ReachingPod {
  readonly addresses: readonly string[]
  readonly node: string
}

/**
 * Starts a control pod. It ends by itself after two minutes.
 * @throws SandglassError with the reason that Kubernetes gives.
 */
export async function startControlPod(
  cluster: Cluster,
  plan: ControlPlan,
  abandon: (name: string) => void,
): Promise<ControlPod> {
  const { namespace } = cluster
  const name = `sandglass-control-${randomUUID()}`
  const remove = async (): Promise<void> => {
    if (!(await removePod(cluster, name))) abandon(name)
  }
  try {
    const body = podOf(name, plan)
    await cluster.call('create a pod', (api) => api.createNamespacedPod({ namespace, body }), plan.signal)
    let pod: V1Pod | undefined
    const isRunning = (found: V1Pod | undefined): boolean => {
      pod = found
      if (found === undefined || ['Failed', 'Succeeded'].includes(found.status?.phase ?? '')) {
        throw new SandglassError('sandbox_setup_failed', `a pod of the probe ended: ${found?.status?.message ?? name}`)
      }
      return found.status?.phase === 'Running'
    }
    if (!(await pollPod(cluster, name, isRunning, plan.timeoutMs, plan.signal))) {
      const why = `a pod of the probe did not start within ${plan.timeoutMs} ms: ${pod?.status?.phase ?? 'Pending'}`
      throw new SandglassError('sandbox_setup_failed', `${why}; see its events`)
    }
    return {
      name,
      container: CONTAINER,
      command: reachCommand(plan.python),
      addresses: addressesOf(pod),
      node: pod?.spec?.nodeName ?? '',
      [Symbol.asyncDispose]: remove,
    }
  } catch (error) {
    await remove()
    // As in `startPod`: the creation may still be served.
    if (isUncertain(error)) abandon(name)
    throw error
  }
}

/** The addresses of a pod, of each version of IP. */
export function addressesOf(pod: V1Pod | undefined): readonly string[] {
  const { podIP, podIPs = [] } = pod?.status ?? {}
  return distinct([...podIPs.map(({ ip }) => ip), podIP])
}

/** The addresses of the node of a pod. */
export function nodeAddressesOf(pod: V1Pod | undefined): readonly string[] {
  const { hostIP, hostIPs = [] } = pod?.status ?? {}
  return distinct([...hostIPs.map(({ ip }) => ip), hostIP])
}

/** Takes out what is missing or there twice. */
export function distinct(addresses: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(addresses.filter((one): one is string => one !== undefined && one !== ''))]
}

function podOf(name: string, plan: ControlPlan): V1Pod {
  const { labels, annotations, ownerReferences } = plan.marks
  const requests = { cpu: '50m', memory: '64Mi', 'ephemeral-storage': '16Mi' }
  // The start of a Python takes a tenth of a second of processor time.
  const limits = { ...requests, cpu: '500m' }
  return {
    metadata: { name, labels: { ...labels }, annotations: { ...annotations }, ownerReferences: [...ownerReferences] },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 1,
      activeDeadlineSeconds: LIFETIME_SEC,
      ...plan.placement,
      ...(plan.runtimeClassName === undefined ? {} : { runtimeClassName: plan.runtimeClassName }),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65_534,
        runAsGroup: 65_534,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: CONTAINER,
          image: plan.image,
          command: [...reachCommand(plan.python), 'listen', String(LISTEN_PORT), String(LIFETIME_SEC)],
          env: [{ name: REACH, value: plan.program }],
          resources: { limits, requests },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  }
}
