import { randomBytes } from 'node:crypto'
import type { V1Pod } from '@kubernetes/client-node'
import { type ErrorCode, SandglassError } from '../../errors/index.ts'
import { type Attached, SEAL_KEY_BYTES, unseal } from '../../sandbox/index.ts'
import type { Cluster } from './cluster.ts'
import { isUncertain, quote, statusOf } from './explain.ts'
import { ManagedPod, pollPod, removePod } from './pod.ts'
import { containerIn } from './pod-end.ts'
import { imagesOf } from './pod-directories.ts'
import { assertKept, explainNode } from './pod-features.ts'
import { podOf, type PodPlan, RELAY, relayCommand, SANDBOX } from './pod-spec.ts'
import { attach } from './relay-channel.ts'

/** The time in which a failed container is reported, which the relay's own error came before. */
const FAILURE_MS = 3000

/** The options of the pod to start. */
export interface PodStart {
  readonly plan: PodPlan
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** Gets what Kubernetes says of the pod while it does not run, whenever that changes. */
  readonly onWaiting: (why: string) => void
  /** Checks and completes the running pod, before anything of the sandbox begins; it throws. */
  readonly complete: (pod: V1Pod) => Promise<void>
  /** Called if the pod could not be removed now. */
  readonly abandon: () => void
}

/**
 * Creates a pod, waits until its containers run, brings the channel and sends the harness.
 * @throws SandglassError with the reason that Kubernetes gives; then nothing is left.
 */
export async function startPod(cluster: Cluster, start: PodStart): Promise<ManagedPod> {
  const { plan, signal, onWaiting, complete, abandon } = start
  let isMade = false
  try {
    await createPod(cluster, plan, signal)
    isMade = true
    const pod = await untilRunning(cluster, start)
    onWaiting('its pod runs')
    await complete(pod)
    const attached = attach(await cluster.exec(plan.name, RELAY, relayCommand(plan), signal))
    return new ManagedPod(cluster, plan.name, sendHarness(attached, plan), abandon)
  } catch (error) {
    if (!isMade && !isUncertain(error)) throw error
    // A request that was given up may still be served.
    if (!(await removePod(cluster, plan.name)) || isUncertain(error)) abandon()
    throw error
  }
}

/** Sends the harness, and the key of its seal, before any script exists. */
function sendHarness(attached: Attached, { programs: { harness }, gvisor, spec }: PodPlan): Attached {
  const key = gvisor ? randomBytes(SEAL_KEY_BYTES) : undefined
  const bytes = key === undefined ? harness : Buffer.concat([harness, key])
  void attached.channel.send(bytes).catch(() => undefined) // the end of the connection says more
  return key === undefined ? attached : unseal(attached, key, spec.activities)
}

async function createPod(cluster: Cluster, plan: PodPlan, signal: AbortSignal | undefined): Promise<void> {
  const { namespace } = cluster
  const body = podOf(plan)
  try {
    await cluster.call('create a pod', (api) => api.createNamespacedPod({ namespace, body }), signal)
  } catch (error) {
    // A request that was repeated had been served: the name is nobody else's.
    if (!(error instanceof SandglassError && statusOf(error.cause) === 409 && isConflictOfName(error))) throw error
  }
}

function isConflictOfName(error: SandglassError): boolean {
  return error.message.includes('already exists')
}

async function untilRunning(cluster: Cluster, { plan, timeoutMs, signal, onWaiting }: PodStart): Promise<V1Pod> {
  const { name } = plan
  let last: V1Pod = {}
  let told = ''
  const isRunning = (pod: V1Pod | undefined): boolean => {
    if (pod === undefined)
      throw new SandglassError('kubernetes_refused', `the pod ${name} was deleted while it started`)
    last = pod
    assertKept(pod, plan)
    assertStarting(pod, plan)
    if ([SANDBOX, RELAY].every((one) => containerIn(pod, one)?.state?.running !== undefined)) return true
    const words = describe(pod)
    if (words !== told) onWaiting((told = words))
    return false
  }
  if (await pollPod(cluster, name, isRunning, timeoutMs, signal)) return last
  const why = `the pod did not start within ${timeoutMs} ms: ${describe(last)}`
  const remedy = 'see the events of the pod, or raise kubernetes.startTimeoutMs'
  throw isUnschedulable(last)
    ? new SandglassError('kubernetes_refused', `${why}; ${remedy}`)
    : new SandglassError('sandbox_setup_failed', `${why}; ${remedy}${explainNode(plan)}`)
}

/** Reasons of a waiting container after which it will not start: pattern, code, remedy. */
const WAITING: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [
    /^(ErrImage|ImagePull|InvalidImageName|ImageInspectError|RegistryUnavailable)/,
    'image_missing',
    'check its name, and that the nodes may pull it',
  ],
  [/^(CreateContainer|RunContainer|StartError)/, 'sandbox_setup_failed', 'see the events of the pod'],
]

/** Throws if the pod can not start any more. */
function assertStarting(pod: V1Pod, plan: PodPlan): void {
  const { image } = plan
  for (const { name, state } of pod.status?.containerStatuses ?? []) {
    const { reason = '', message = '' } = state?.waiting ?? {}
    const known = WAITING.find(([pattern]) => pattern.test(reason))
    if (known !== undefined) {
      const [, code, remedy] = known
      const which = code === 'image_missing' ? missingImage(plan, message) : image
      const more = code === 'image_missing' ? '' : explainNode(plan)
      throw new SandglassError(code, `the image ${which}: ${quote(`${reason}: ${message}`)}; ${remedy}${more}`)
    }
    if (state?.terminated !== undefined) throw endedError(name, image, state.terminated)
  }
  if (pod.status?.phase === 'Failed')
    throw new SandglassError('sandbox_setup_failed', `the pod failed: ${describe(pod)}`)
}

/** The image that Kubernetes names: that of the containers, or of a volume. */
function missingImage({ image, directories }: PodPlan, message: string): string {
  const [named = image] = [image, ...imagesOf(directories)]
    .filter((one) => message.includes(one))
    .toSorted((a, b) => b.length - a.length)
  return named
}

function endedError(
  name: string,
  image: string,
  { exitCode, reason = '', message = '' }: { exitCode: number; reason?: string; message?: string },
): SandglassError {
  const isPython = /executable file not found|no such file/.test(message)
  return new SandglassError(
    isPython ? 'python_missing' : 'harness_start_failed',
    `the container ${name} of the image ${image} ended with exit code ${exitCode}: ${quote(`${reason} ${message}`)}` +
      (isPython ? '; choose an image with Python 3.10 or later, or set the option kubernetes.python' : ''),
  )
}

/** Reads why a pod whose channel ended before it was ready failed; undefined if its node does not report it soon. */
export async function findFailure(cluster: Cluster, { name, image }: PodPlan): Promise<SandglassError | undefined> {
  let found: SandglassError | undefined
  const isFailed = (pod: V1Pod | undefined): boolean => {
    const ended = pod === undefined ? undefined : containerIn(pod, SANDBOX)?.state?.terminated
    if (ended !== undefined) found = endedError(SANDBOX, image, ended)
    return pod === undefined || ended !== undefined
  }
  await pollPod(cluster, name, isFailed, FAILURE_MS).catch(() => undefined)
  return found
}

function isUnschedulable(pod: V1Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'PodScheduled' && status === 'False') ?? false
}

/** Describes a pod that does not run in the words of Kubernetes. */
function describe(pod: V1Pod): string {
  const { phase = 'Pending', reason = '', message = '', conditions = [], containerStatuses = [] } = pod.status ?? {}
  const waiting = containerStatuses.flatMap(({ state }) => [state?.waiting?.reason, state?.waiting?.message])
  const refused = conditions.filter(({ status }) => status === 'False').flatMap((one) => [one.reason, one.message])
  const words = [reason, message, ...refused, ...waiting].filter((text) => text !== undefined && text !== '')
  return quote([phase, ...new Set(words)].join('; '))
}
