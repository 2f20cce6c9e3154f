import type { CoreV1Api } from '@kubernetes/client-node'
import { expect, test } from 'vitest'
import type { Cluster } from '../../../../src/engines/kubernetes/cluster.ts'
import { type ControlPlan, startControlPod } from '../../../../src/engines/kubernetes/control-pod.ts'
import { type ErrorCode, SandglassError } from '../../../../src/errors/index.ts'

const PLAN: ControlPlan = {
  image: 'python:3.12-slim',
  python: 'python3',
  runtimeClassName: undefined,
  placement: {},
  marks: { labels: {}, annotations: {}, ownerReferences: [], lease: 'sandglass-1' },
  program: '',
  timeoutMs: 1,
  signal: undefined,
}

/** Starts a control pod on a cluster that has none yet and answers its creation with this. Returns the error, and what is abandoned. */
async function startOn(create: () => Promise<unknown>): Promise<{ error: unknown; abandoned: readonly string[] }> {
  const missing = new SandglassError('sandbox_setup_failed', 'no such pod', { cause: { code: 404 } })
  const api = {
    createNamespacedPod: create,
    readNamespacedPod: () => Promise.resolve({ status: { phase: 'Pending' } }),
    deleteNamespacedPod: () => Promise.reject(missing),
  } as unknown as CoreV1Api
  const cluster = {
    namespace: 'sandglass',
    call: async (_, request) => request(api, undefined as never),
  } as Partial<Cluster> as Cluster
  const abandoned: string[] = []
  const error = await startControlPod(cluster, PLAN, (name) => void abandoned.push(name)).catch(
    (thrown: unknown) => thrown,
  )
  return { error, abandoned }
}

test.each<ErrorCode>(['aborted', 'kubernetes_unreachable'])(
  'a control pod whose creation ends as %s is removed later, because the request may still be served',
  async (code) => {
    const thrown = new SandglassError(code, 'no pod')
    const { error, abandoned } = await startOn(() => Promise.reject(thrown))
    expect(error).toBe(thrown)
    expect(abandoned).toEqual([expect.stringMatching(/^sandglass-control-/)])
  },
)

test('a control pod whose creation is refused leaves nothing to remove', async () => {
  const thrown = new SandglassError('kubernetes_refused', 'no pod')
  expect(await startOn(() => Promise.reject(thrown))).toEqual({ error: thrown, abandoned: [] })
})

test('the error for a control pod that does not run in time says so', async () => {
  const { error, abandoned } = await startOn(() => Promise.resolve({}))
  expect(error).toMatchObject({
    code: 'sandbox_setup_failed',
    message: 'a pod of the probe did not start within 1 ms: Pending; see its events',
  })
  expect(abandoned).toEqual([])
})
