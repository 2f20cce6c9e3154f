import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kubernetesEngine } from '../../src/engines/kubernetes/index.ts'
import type { SandboxEngine } from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { eventually } from '../support/eventually.ts'
import { applyManifest, requireCluster } from '../support/kubernetes-cluster.ts'

const { skip, options, admin, config } = await requireCluster()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
/** The first one is that of the manifest tenant.yaml. */
const TENANTS = ['tenant-a', 'tenant-b'] as const

describe.skipIf(skip)('tenants in namespaces of their own', () => {
  const engines = TENANTS.map((namespace) => kubernetesEngine({ ...options, namespace })) as [
    SandboxEngine,
    SandboxEngine,
  ]

  beforeAll(async () => {
    for (const tenant of TENANTS) {
      await applyManifest(config, 'tenant.yaml', (text) => text.replaceAll(TENANTS[0], tenant))
    }
  })

  afterAll(async () => {
    await Promise.all(engines.map((engine) => engine.close()))
    for (const namespace of TENANTS) {
      expect((await admin.listNamespacedPod({ namespace })).items.map(({ metadata }) => metadata?.name)).toEqual([])
      await admin.deleteNamespace({ name: namespace })
    }
  })

  test('what one has used up is refused to it with the reason, and left to the other', async () => {
    const [engine, other] = engines
    await limitPods(TENANTS[0], '1')
    await using first = await engine.create(SPEC)
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code: 'kubernetes_refused',
      message: expect.stringMatching(
        /exceeded quota: tenant, requested: pods=1, used: pods=1, limited: pods=1/,
      ) as string,
      retryable: true,
    })
    await using elsewhere = await other.create(SPEC)
    expect(elsewhere.id).not.toBe(first.id)
    await limitPods(TENANTS[0], '2')
    await using second = await engine.create(SPEC)
    expect(second.id).not.toBe(first.id)
  })

  test('a sandbox that is larger than any may be is refused with the reason', async () => {
    const limits = { ...SPEC.limits, memoryBytes: 2 ** 31 }
    await expect(engines[1].create({ limits })).rejects.toMatchObject({
      code: 'kubernetes_refused',
      message: expect.stringContaining('maximum memory usage per Container is 1Gi') as string,
    })
  })
})

/** Changes how many pods a tenant may have, and waits until that is in force. */
async function limitPods(namespace: string, pods: string): Promise<void> {
  const body = [{ op: 'replace', path: '/spec/hard/pods', value: pods }]
  await admin.patchNamespacedResourceQuota({ name: 'tenant', namespace, body })
  const problem = await eventually(async () => {
    const { status } = await admin.readNamespacedResourceQuota({ name: 'tenant', namespace })
    return status?.hard?.['pods'] === pods ? undefined : JSON.stringify(status)
  }, 10_000)
  expect(problem).toBeUndefined()
}
