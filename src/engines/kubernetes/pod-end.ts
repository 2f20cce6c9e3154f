import type { V1ContainerStateTerminated, V1ContainerStatus, V1Pod } from '@kubernetes/client-node'
import { quote } from './explain.ts'
import { SANDBOX } from './pod-spec.ts'

/** Reasons of ended containers that say no more than their exit codes. */
const PLAIN = ['Completed', 'Error']

/** The end of a sandbox, as far as the API server tells. */
export interface PodEnd {
  /** True if its node reports that it ended, or its pod is gone. */
  readonly isOver: boolean
  /** The end of its container, if its node reports it. */
  readonly terminated: V1ContainerStateTerminated | undefined
  /** Why its pod ended, in the words of Kubernetes; empty if it gives no reason. */
  readonly why: string
}

/** Before anything was read. */
export const NOT_READ: PodEnd = { isOver: false, terminated: undefined, why: '' }

/** The status of one container of a pod. */
export function containerIn(pod: V1Pod, name: string): V1ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find((one) => one.name === name)
}

/** Reads the end of a sandbox from its pod; of one that is gone, from what was read before. */
export function endOf(pod: V1Pod | undefined, before: PodEnd): PodEnd {
  if (pod === undefined) return { ...before, isOver: true, why: before.why || DELETED }
  const terminated = containerIn(pod, SANDBOX)?.state?.terminated
  return { isOver: terminated !== undefined, terminated, why: whyEnded(pod) }
}

/** True if gVisor's kernel, with all containers of the pod, was killed for memory: no container has an exit code of its own then. */
export function isEndOfKernel({ reason, exitCode }: V1ContainerStateTerminated): boolean {
  return reason === 'OOMKilled' && exitCode === 128
}

const DELETED = 'the pod was deleted'
/** A node ends the containers of a deleted pod within this time. */
const OVERDUE_MS = 15_000
/** The reasons that a node gives for a pod that is not ready: a gate, or a container that others have added. */
const NODE_REASONS = ['ReadinessGatesNotReady', 'ContainersNotReady']

/**
 * Why the sandbox of a pod must be given up although its connection stays, by the clock of the API server: its node does not report,
 * or does not end a pod that is deleted. Undefined for a pod that is as it should be.
 */
export function whyLost(pod: V1Pod | undefined, nowMs: number): string | undefined {
  if (pod === undefined) return DELETED
  const { metadata, spec, status } = pod
  const goneMs = metadata?.deletionTimestamp?.getTime() ?? Number.POSITIVE_INFINITY
  if (nowMs > goneMs + OVERDUE_MS) return whyEnded(pod)
  // Kubernetes says so of the pods of a node that has not reported for 40 or 50 s. With a reason, the node itself says it.
  const isSilent = status?.conditions?.some(
    ({ type, status: held, reason = '' }) => type === 'Ready' && held !== 'True' && !NODE_REASONS.includes(reason),
  )
  if (isSilent !== true && status?.phase !== 'Unknown') return undefined
  return whyEnded(pod) || `the node ${spec?.nodeName ?? ''} does not report`
}

function whyEnded({ metadata, status = {} }: V1Pod): string {
  const { reason, message, conditions = [], containerStatuses = [] } = status
  const disruption = conditions.find((one) => one.type === 'DisruptionTarget' && one.status === 'True')
  const containers = containerStatuses.flatMap(({ name, state }) => {
    const why = state?.terminated?.reason ?? ''
    return name === SANDBOX || why === '' || PLAIN.includes(why) ? [] : [`the container ${name}: ${why}`]
  })
  const words = [
    textOf(reason, message),
    disruption === undefined ? '' : textOf(disruption.reason, disruption.message),
    ...containers,
    metadata?.deletionTimestamp === undefined ? '' : DELETED,
  ]
  return quote([...new Set(words.filter((one) => one !== ''))].join('; '))
}

function textOf(...words: readonly (string | undefined)[]): string {
  return words.filter((one) => one !== undefined && one !== '').join(': ')
}
