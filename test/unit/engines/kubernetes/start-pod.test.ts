import type { CoreV1Api, V1Pod, V1PodSpec, V1PodStatus } from '@kubernetes/client-node'
import { expect, test } from 'vitest'
import type { Cluster } from '../../../../src/engines/kubernetes/cluster.ts'
import { assertUserNamespace } from '../../../../src/engines/kubernetes/pod-features.ts'
import type { PodPlan } from '../../../../src/engines/kubernetes/pod-spec.ts'
import { startPod } from '../../../../src/engines/kubernetes/start-pod.ts'
import { SandglassError } from '../../../../src/errors/index.ts'
import type { ReadyFrame } from '../../../../src/protocol/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'

const PLAN: PodPlan = {
  name: 'sandglass-1',
  image: 'python:3.12-slim',
  python: 'python3',
  runtimeClassName: undefined,
  placement: { hostUsers: false },
  rootOnlyDir: '/root',
  cpuRequest: undefined,
  spec: { limits: sandboxLimits(resolveLimits()) },
  directories: [{ name: 'packages', path: '/packages', image: 'registry.example/envs/python:3', subPath: '' }],
  uid: 20_000,
  marks: { labels: {}, annotations: {}, ownerReferences: [], lease: 'sandglass-1' },
  programs: { sandbox: '', reach: '', relay: '', unpack: '', harness: new Uint8Array() },
  gvisor: false,
  startSec: 60,
}

interface Waited {
  readonly timeoutMs?: number
  /** The answer to the second time that the pod is read, in place of the pod. */
  readonly refusal?: Error
}

/** Starts a pod on a cluster that changes its spec, and shows this status then. Returns the error. */
async function startOn(
  change: (spec: V1PodSpec) => void,
  status: V1PodStatus,
  { timeoutMs = 1, refusal }: Waited = {},
): Promise<unknown> {
  let pod: V1Pod | undefined
  let reads = 0
  const api = {
    createNamespacedPod({ body }: { body: V1Pod }) {
      pod = body
      pod.status = status
      if (pod.spec !== undefined) change(pod.spec)
      return Promise.resolve(pod)
    },
    readNamespacedPod() {
      reads += 1
      if (reads === 2 && refusal !== undefined) return Promise.reject(refusal)
      if (pod !== undefined) return Promise.resolve(pod)
      const cause = Object.assign(new Error('no such pod'), { code: 404 })
      return Promise.reject(new SandglassError('sandbox_setup_failed', 'no such pod', { cause }))
    },
    deleteNamespacedPod() {
      pod = undefined
      return Promise.resolve({})
    },
  } as Partial<CoreV1Api> as CoreV1Api
  const cluster = {
    namespace: 'sandglass',
    call: async (_, request) => request(api, undefined as never),
  } as Partial<Cluster> as Cluster
  const started = startPod(cluster, {
    plan: PLAN,
    timeoutMs,
    signal: undefined,
    complete: async () => undefined,
    abandon: () => undefined,
    onWaiting: () => undefined,
  })
  const error = await started.catch((thrown: unknown) => thrown)
  expect(pod).toBeUndefined()
  return error
}

const waiting = (reason: string, message: string): V1PodStatus => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'True' }],
  containerStatuses: [
    { name: 'sandbox', image: '', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason, message } } },
  ],
})

test.each([
  [
    'hostUsers',
    (spec: V1PodSpec) => void delete spec.hostUsers,
    /^the API server leaves out hostUsers: .*Kubernetes 1\.33, or the feature gate UserNamespacesSupport$/,
  ],
  [
    'volumes[].image',
    (spec: V1PodSpec) => void (spec.volumes = spec.volumes?.filter(({ image }) => image === undefined) ?? []),
    /^the API server leaves out volumes\[\]\.image: .*Kubernetes 1\.35, or .* the feature gate ImageVolume$/,
  ],
])('a pod whose %s the API server drops is removed at once', async (_, drop, message) => {
  expect(await startOn(drop, { phase: 'Pending' })).toMatchObject({
    code: 'feature_unavailable',
    message: expect.stringMatching(message) as string,
  })
})

test.each([
  [
    'image_missing',
    waiting('ErrImagePull', 'failed to pull image "registry.example/envs/python:3": not found'),
    /^the image registry\.example\/envs\/python:3: ErrImagePull: failed to pull .*; check its name/,
  ],
  [
    'image_missing',
    waiting('ImagePullBackOff', 'Back-off pulling image "docker.io/library/python:3.12-slim"'),
    /^the image python:3\.12-slim: ImagePullBackOff: Back-off pulling .*; check its name/,
  ],
  [
    'sandbox_setup_failed',
    waiting('CreateContainerError', 'failed to mkdir ""'),
    /^the image python:3\.12-slim: CreateContainerError: failed to mkdir "".*volumeImages needs containerd 2\.1/,
  ],
  [
    'sandbox_setup_failed',
    waiting('ContainerCreating', ''),
    /^the pod did not start within 1 ms: Pending; ContainerCreating; see the events of the pod, or raise kubernetes\.startTimeoutMs; kubernetes\.hostUsers: false needs containerd 2\.0 with runc 1\.2.*; kubernetes\.volumeImages needs/,
  ],
])('%s names the image, and what the node must have', async (code, status, message) => {
  expect(await startOn(() => undefined, status)).toMatchObject({
    code,
    message: expect.stringMatching(message) as string,
  })
})

test('a pod that cannot be read any more fails with the reason of the API server, not with the time that is left', async () => {
  const cause = Object.assign(new Error('the proxy is gone'), { code: 410 })
  const refusal = new SandglassError('sandbox_setup_failed', 'Kubernetes could not read a pod: gone', { cause })
  expect(await startOn(() => undefined, { phase: 'Pending' }, { timeoutMs: 60_000, refusal })).toBe(refusal)
})

test('a pod in the user namespace of its node is refused if it asked for one of its own', () => {
  const ready = (user_namespace: boolean | null): ReadyFrame =>
    ({ checks: { user_namespace } }) as unknown as ReadyFrame
  assertUserNamespace(ready(true), PLAN)
  assertUserNamespace(ready(false), { ...PLAN, placement: {} })
  for (const seen of [false, null]) {
    expect(() => assertUserNamespace(ready(seen), PLAN)).toThrow(
      expect.objectContaining({ code: 'feature_unavailable' }) as Error,
    )
  }
})
