import type { V1Lease } from '@kubernetes/client-node'
import { V1MicroTime } from '@kubernetes/client-node'
import { describe, expect, test, vi } from 'vitest'
import { holderStateOf } from '../../../../src/engines/kubernetes/lease.ts'
import { ownerMarks } from '../../../../src/engines/kubernetes/owner.ts'
import { ServerClock } from '../../../../src/engines/kubernetes/server-clock.ts'

const RENEWED_MS = Date.parse('2030-01-01T00:00:00Z')

function lease(annotations: Record<string, string>, renewTime = new V1MicroTime(RENEWED_MS)): V1Lease {
  return { metadata: { annotations }, spec: { renewTime, leaseDurationSeconds: 30 } }
}

describe('the holder of a lease', () => {
  test('lives until its lease ends, if its process cannot be seen', () => {
    const marks = { 'sandglass.dev/owner': '1:2:3', 'sandglass.dev/boot-id': 'another' }
    const elsewhere = lease(marks)
    expect(holderStateOf(elsewhere, RENEWED_MS + 30_000)).toBe('alive')
    expect(holderStateOf(elsewhere, RENEWED_MS + 30_001)).toBe('dead')
    const text = lease(marks, '2030-01-01T00:00:00.000000Z' as unknown as V1MicroTime)
    expect(holderStateOf(text, RENEWED_MS + 30_001)).toBe('dead')
  })

  test('lives while its process does, if that can be seen', () => {
    expect(holderStateOf(lease(ownerMarks('here').annotations), RENEWED_MS + 1e9)).toBe('alive')
  })
})

describe('the pod of this process', () => {
  test.each([
    ['here', [{ apiVersion: 'v1', kind: 'Pod', name: 'app-1', uid: 'u-1' }]],
    // An owner in another namespace would be none, and Kubernetes would delete the pods at once.
    ['elsewhere', []],
  ])('owns what is in its own namespace: %s', (namespace, expected) => {
    vi.stubEnv('SANDGLASS_POD_NAME', 'app-1')
    vi.stubEnv('SANDGLASS_POD_UID', 'u-1')
    vi.stubEnv('SANDGLASS_POD_NAMESPACE', 'here')
    expect(ownerMarks(namespace).ownerReferences).toEqual(expected)
  })
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
