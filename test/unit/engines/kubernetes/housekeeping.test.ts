import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SandglassError } from '../../../../src/errors/index.ts'
import type { Cluster } from '../../../../src/engines/kubernetes/cluster.ts'
import { Housekeeping } from '../../../../src/engines/kubernetes/housekeeping.ts'
import { ownerMarks } from '../../../../src/engines/kubernetes/owner.ts'
import { ServerClock } from '../../../../src/engines/kubernetes/server-clock.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A cluster whose API server answers nothing, and the number of requests to delete pods that wait in it. */
function silentCluster(): { readonly cluster: Cluster; readonly waiting: () => number } {
  const waiting = new Set<object>()
  const cluster: Cluster = {
    server: 'https://localhost',
    context: 'x',
    namespace: 'default',
    timeoutMs: 10_000,
    clock: new ServerClock(),
    exec: () => Promise.reject(new Error('unused')),
    call: (what, _, signal) =>
      new Promise((_resolve, reject) => {
        const request = {}
        if (what === 'delete a pod') waiting.add(request)
        const end = (): void => {
          waiting.delete(request)
          reject(new SandglassError('kubernetes_unreachable', what))
        }
        setTimeout(end, 10_000)
        signal?.addEventListener('abort', end, { once: true })
      }),
  }
  return { cluster, waiting: () => waiting.size }
}

test('closing an engine does not wait for each pod that an API server without answers should remove', async () => {
  const { cluster, waiting } = silentCluster()
  const housekeeping = new Housekeeping(cluster, ownerMarks([]))
  for (let pod = 0; pod < 10; pod += 1) housekeeping.abandon(`pod-${pod}`)
  let isClosed = false
  const closing = housekeeping.close().then(() => (isClosed = true))
  await vi.advanceTimersByTimeAsync(1000)
  expect(waiting()).toBe(4)
  await vi.advanceTimersByTimeAsync(13_900)
  expect(isClosed).toBe(false)
  await vi.advanceTimersByTimeAsync(200)
  expect(isClosed).toBe(true)
  expect(waiting()).toBe(0)
  await closing
})
