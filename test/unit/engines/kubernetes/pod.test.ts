import type { V1Pod } from '@kubernetes/client-node'
import { beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../../../src/engines/kubernetes/cluster.ts'
import { ManagedPod } from '../../../../src/engines/kubernetes/pod.ts'
import { FakeApiServer } from '../../../support/fake-api-server.ts'

// The client takes a quarter of a second to load.
beforeAll(async () => void (await import('@kubernetes/client-node')))

const KILLED = { terminated: { exitCode: 137, reason: 'Error' } }
const RUNNING = { running: {} }

function podWith(status: object, sandbox: object = KILLED, metadata: object = {}): object {
  const containerStatuses = [{ name: 'sandbox', state: sandbox }]
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'a', ...metadata },
    status: { containerStatuses, ...status },
  }
}

/** An answer that ends the reading of a pod. */
const REFUSED = { message: 'bad request', code: 400 }

/** A pod whose connection ends at once, and what the API server says of it then, one answer after the other; at last, it is gone. */
async function lose(server: FakeApiServer, ...answers: readonly object[]): Promise<ManagedPod> {
  const waiting = [...answers]
  server.answer = ({ method }) => {
    if (method === 'DELETE') return { status: 200, body: podWith({}) }
    const body = waiting.shift()
    if (body === REFUSED) return { status: 400, body }
    return body === undefined ? { status: 404, body: { message: 'not found', code: 404 } } : { status: 200, body }
  }
  const cluster = await connect({ kubeconfig: server.kubeconfig })
  const channel = { receive: () => Promise.resolve(null), send: () => Promise.resolve(), close: () => undefined }
  const attached = { channel, lastOutput: () => 'last words', ended: Promise.resolve() }
  return new ManagedPod(cluster, 'a', attached, () => undefined)
}

const DISRUPTED = {
  conditions: [
    { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' },
    { type: 'Ready', status: 'False', reason: 'ContainersNotReady' },
  ],
} satisfies V1Pod['status']

describe('the end of a lost sandbox', () => {
  test.each([
    [
      'evicted by its node',
      [podWith({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' })],
      'Kubernetes: Evicted: The node was low on resource: memory.; last words',
    ],
    [
      'evicted by a request',
      [podWith(DISRUPTED, KILLED, { deletionTimestamp: '2030-01-01T00:00:00Z' })],
      'Kubernetes: EvictionByEvictionAPI: Eviction API: evicting; the pod was deleted; last words',
    ],
    [
      'at the deadline of its pod',
      [
        podWith({
          reason: 'DeadlineExceeded',
          message: 'Pod was active on the node longer than the specified deadline',
        }),
      ],
      'Kubernetes: DeadlineExceeded: Pod was active on the node longer than the specified deadline; last words',
    ],
    [
      'whose second container ran out of memory',
      [
        podWith({
          containerStatuses: [
            { name: 'sandbox', state: KILLED },
            { name: 'relay', state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } },
          ],
        }),
      ],
      'Kubernetes: the container relay: OOMKilled; last words',
    ],
    ['of which Kubernetes tells nothing', [podWith({})], 'last words'],
  ])('%s has the reason of Kubernetes', async (_, answers, message) => {
    await using server = await FakeApiServer.start()
    const pod = await lose(server, ...answers)
    expect(await pod.closed).toEqual({ cause: 'signal', exitCode: null, signal: 'SIGKILL', by: 'unknown', message })
    expect(await pod.removed).toBe(true)
  })

  test.each([
    ['before it was read', [], 'Kubernetes: the pod was deleted; last words'],
    [
      'after it was disrupted',
      [podWith(DISRUPTED, RUNNING)],
      'Kubernetes: EvictionByEvictionAPI: Eviction API: evicting; last words',
    ],
  ])('whose pod went %s says so', async (_, answers, message) => {
    await using server = await FakeApiServer.start()
    const pod = await lose(server, ...answers)
    expect(await pod.closed).toEqual({ cause: 'channel-closed', exitCode: null, signal: null, by: 'unknown', message })
  })

  const outOfMemory = { terminated: { exitCode: 128, reason: 'OOMKilled' } }
  test.each([
    ['in time', [podWith({}, outOfMemory)], 'memory-limit'],
    ['while the pod is deleted', [REFUSED, podWith({}, RUNNING), podWith({}, outOfMemory)], 'memory-limit'],
    // By the deletion, or of a script.
    ['and another end while the pod is deleted', [REFUSED, podWith({}, KILLED)], 'channel-closed'],
    [
      'and the death of a script',
      [REFUSED, podWith({}, { terminated: { exitCode: 137, reason: 'OOMKilled' } })],
      'channel-closed',
    ],
  ])('of the kernel of gVisor is told from others: it is reported %s', async (_, answers, cause) => {
    await using server = await FakeApiServer.start()
    const pod = await lose(server, ...answers)
    const isKernel = cause === 'memory-limit'
    expect(await pod.closed).toMatchObject({
      cause,
      exitCode: null,
      signal: isKernel ? 'SIGKILL' : null,
      by: isKernel ? 'kernel' : 'unknown',
    })
  })

  test('is told as soon as its node reports it, before the object of its pod is gone', async () => {
    await using server = await FakeApiServer.start()
    const ended = podWith({ reason: 'Evicted' })
    const pod = await lose(server, podWith({}, RUNNING), ended, ended, ended, ended)
    let isRemoved = false
    void pod.removed.then(() => (isRemoved = true))
    expect(await pod.closed).toMatchObject({ message: 'Kubernetes: Evicted; last words' })
    expect(isRemoved).toBe(false)
    await pod.kill()
    expect(isRemoved).toBe(true)
  })
})
