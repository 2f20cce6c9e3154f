import { beforeAll, expect, test } from 'vitest'
import { kubernetesEngine } from '../../../../src/engines/kubernetes/index.ts'
import { SandboxPool } from '../../../../src/pool/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { FakeApiServer } from '../../../support/fake-api-server.ts'

// The client takes a quarter of a second to load.
beforeAll(async () => void (await Promise.all([import('@kubernetes/client-node'), import('ws')])))

const POD = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'a' },
  status: {
    phase: 'Pending',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/3 nodes are available: 3 Insufficient cpu.',
      },
    ],
  },
}

test('a checkout that ends before the start of a pod has the reason of the scheduler', async () => {
  await using server = await FakeApiServer.start()
  let isDeleted = false
  server.answer = ({ method, url = '' }) => {
    if (method === 'DELETE') isDeleted = true
    if (url.includes('/leases')) return { status: 403, body: { message: 'no leases' } }
    if (/\/pods\?/.test(url) && method === 'GET') return { status: 200, body: { kind: 'PodList', items: [] } }
    return isDeleted ? { status: 404, body: { message: 'gone' } } : { status: 200, body: POD }
  }
  const engine = kubernetesEngine({ kubeconfig: server.kubeconfig })
  const specs = { default: { limits: sandboxLimits(resolveLimits()) } }
  const pool = new SandboxPool({ engine, specs, poolSize: 1, maxOverflow: 0 })
  await expect(pool.checkout('default', { timeoutMs: 1_500 })).rejects.toMatchObject({
    code: 'pool_exhausted',
    message: expect.stringContaining(
      'a sandbox that starts waits: Pending; Unschedulable; 0/3 nodes are available: 3 Insufficient cpu.; ',
    ) as string,
  })
  await pool.close()
  await engine.close()
})
