import type { V1Lease, V1Pod } from '@kubernetes/client-node'
import { V1MicroTime } from '@kubernetes/client-node'
import { describe, expect, test, vi } from 'vitest'
import { SandglassError } from '../../../../src/errors/index.ts'
import type { Cluster } from '../../../../src/engines/kubernetes/cluster.ts'
import { leaseResourceOf } from '../../../../src/engines/kubernetes/lease.ts'
import { findOwnPod, ownerMarks } from '../../../../src/engines/kubernetes/owner.ts'
import { podResourceOf } from '../../../../src/engines/kubernetes/pods.ts'
import { ServerClock } from '../../../../src/engines/kubernetes/server-clock.ts'

const RENEWED_MS = Date.parse('2030-01-01T00:00:00Z')
/** The marks of a process of another machine. */
const ELSEWHERE = {
  'sandglass.dev/owner': '1:2:3',
  'sandglass.dev/boot-id': 'another',
  'sandglass.dev/lease': 'its-lease',
}

function lease(annotations: Record<string, string>, renewTime = new V1MicroTime(RENEWED_MS)): V1Lease {
  return { metadata: { name: 'its-lease', annotations }, spec: { renewTime, leaseDurationSeconds: 30 } }
}

describe('the holder of a lease', () => {
  test('lives until its lease ends, if its process cannot be seen', () => {
    const ownerAt = (one: V1Lease, afterMs: number): string => leaseResourceOf(one, RENEWED_MS + afterMs).owner
    expect(ownerAt(lease(ELSEWHERE), 30_000)).toBe('alive')
    expect(ownerAt(lease(ELSEWHERE), 30_001)).toBe('dead')
    const text = lease(ELSEWHERE, '2030-01-01T00:00:00.000000Z' as unknown as V1MicroTime)
    expect(ownerAt(text, 30_001)).toBe('dead')
  })

  test('lives while its process does, if that can be seen', () => {
    expect(leaseResourceOf(lease(ownerMarks([]).annotations), RENEWED_MS + 1e9).owner).toBe('alive')
  })
})

describe('a pod of a host on another machine', () => {
  const LONG_MS = 30_000 + 360_000
  test.each([
    ['runs, and the lease is renewed', 'Running', 30_000, false],
    // The host may be stopped, or the API server may refuse its renewals: its runs go on.
    ['runs, and the lease has just ended', 'Running', 30_001, false],
    ['runs, and the lease ended a while ago', 'Running', LONG_MS, false],
    ['runs, and the lease ended longer ago than a sandbox lives without its host', 'Running', LONG_MS + 1, true],
    ['waits, and the lease has just ended', 'Pending', 30_001, false],
    ['has ended, and the lease is renewed', 'Failed', 30_000, false],
    ['has ended, and the lease has, too', 'Succeeded', 30_001, true],
  ])('%s', (_, phase, afterMs, isOrphan) => {
    const pod: V1Pod = { metadata: { name: 'a-pod', annotations: ELSEWHERE }, status: { phase } }
    const nowMs = RENEWED_MS + afterMs
    const leases = [leaseResourceOf(lease(ELSEWHERE), nowMs)]
    expect(podResourceOf(pod, leases, nowMs)).toMatchObject({ name: 'a-pod', lease: 'its-lease', isOrphan })
  })

  test('is left to whoever deletes it already', () => {
    const metadata = { name: 'a-pod', annotations: ELSEWHERE, deletionTimestamp: new Date(RENEWED_MS) }
    const leases = [leaseResourceOf(lease(ELSEWHERE), RENEWED_MS + 30_001)]
    const pod = podResourceOf({ metadata, status: { phase: 'Failed' } }, leases, RENEWED_MS + 30_001)
    expect(pod).toMatchObject({ owner: 'dead', isOrphan: false })
  })

  test('is left by nobody without a lease, unless it ended ten minutes ago', () => {
    const metadata = { name: 'a-pod', annotations: ELSEWHERE, creationTimestamp: new Date(RENEWED_MS) }
    const orphans = [600_000, 600_001].map((afterMs) =>
      ['Running', 'Failed'].map(
        (phase) => podResourceOf({ metadata, status: { phase } }, [], RENEWED_MS + afterMs).isOrphan,
      ),
    )
    expect(orphans).toEqual([
      [false, false],
      [false, true],
    ])
  })
})

describe('the pod of this process', () => {
  const OWNER = { apiVersion: 'v1', kind: 'Pod', name: 'app-1', uid: 'u-1' }
  const missing = new SandglassError('sandbox_setup_failed', 'there is no such pod', { cause: { code: 404 } })
  test.each([
    ['owns what is in its own namespace', 'here', () => Promise.resolve({ metadata: { uid: 'u-1' } }), [OWNER]],
    // Kubernetes would delete the pods at once.
    ['is none in another namespace', 'elsewhere', () => Promise.resolve({ metadata: { uid: 'u-1' } }), []],
    ['is none in another cluster, which has one of its name', 'here', () => Promise.resolve({ metadata: {} }), []],
    ['is none in another cluster', 'here', () => Promise.reject(missing), []],
  ])('%s', async (_, namespace, read, expected) => {
    vi.stubEnv('SANDGLASS_POD_NAME', 'app-1')
    vi.stubEnv('SANDGLASS_POD_UID', 'u-1')
    vi.stubEnv('SANDGLASS_POD_NAMESPACE', 'here')
    const cluster = { namespace, call: read } as unknown as Cluster
    const owners = await findOwnPod(cluster)
    expect(owners).toEqual(expected)
    expect(ownerMarks(owners).ownerReferences).toEqual(expected)
  })

  test.each(['kubernetes_unreachable', 'kubernetes_permission'] as const)(
    'is not taken for none after %s',
    async (code) => {
      vi.stubEnv('SANDGLASS_POD_NAME', 'app-1')
      vi.stubEnv('SANDGLASS_POD_UID', 'u-1')
      vi.stubEnv('SANDGLASS_POD_NAMESPACE', 'here')
      const call = (): Promise<never> => Promise.reject(new SandglassError(code, 'no answer'))
      const cluster = { namespace: 'here', call } as unknown as Cluster
      await expect(findOwnPod(cluster)).rejects.toMatchObject({ code })
    },
  )
})

test('the clock of a server is that of its last answer, whatever the clock of this machine says', () => {
  const clock = new ServerClock()
  expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1000)
  clock.note('Tue, 01 Jan 2030 00:00:00 GMT')
  expect(clock.now() - RENEWED_MS).toBeGreaterThan(499)
  expect(clock.now() - RENEWED_MS).toBeLessThan(1500)
  clock.note('no date')
  expect(clock.now() - RENEWED_MS).toBeLessThan(1500)
})
