import type { V1Pod } from '@kubernetes/client-node'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Cluster } from '../../../../src/engines/kubernetes/cluster.ts'
import { Housekeeping } from '../../../../src/engines/kubernetes/housekeeping.ts'
import { ownerMarks } from '../../../../src/engines/kubernetes/owner.ts'
import { ManagedPod } from '../../../../src/engines/kubernetes/pod.ts'
import { ServerClock } from '../../../../src/engines/kubernetes/server-clock.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const STATES = ['sandbox', 'relay'].map((name) => ({ name, state: { running: {} } }))

function podWith(ready: 'True' | 'False', more: { metadata?: object; phase?: string; reason?: string } = {}): V1Pod {
  const { metadata, phase = 'Running', reason } = more
  const conditions = [{ type: 'Ready', status: ready, reason }]
  return {
    metadata: { name: 'a', ...metadata },
    spec: { nodeName: 'node-7', containers: [] },
    status: { phase, conditions, containerStatuses: STATES },
  } as unknown as V1Pod
}

/** An engine with one sandbox, whose node runs nothing any more while the API server answers. */
class Cut {
  pods: V1Pod[] = [podWith('True')]
  readonly asked: string[] = []
  #heard: (piece: Uint8Array) => void = () => undefined
  readonly #ended = Promise.withResolvers<void>()
  readonly cluster: Cluster = {
    server: 'https://localhost',
    context: 'x',
    namespace: 'default',
    timeoutMs: 10_000,
    clock: new ServerClock(),
    exec: () => Promise.reject(new Error('unused')),
    call: (what) => {
      this.asked.push(what)
      if (what === 'list pods') return Promise.resolve({ items: this.pods } as never)
      if (what === 'list leases') return Promise.resolve({ items: [] } as never)
      if (what === 'read a pod') return Promise.resolve(this.pods[0] as never)
      return Promise.resolve({} as never)
    },
  }
  readonly pod = new ManagedPod(
    this.cluster,
    'a',
    {
      channel: {
        receive: () =>
          new Promise((resolve) => {
            this.#heard = resolve
          }),
        send: () => Promise.resolve(),
        close: () => this.#ended.resolve(),
      },
      lastOutput: () => '',
      ended: this.#ended.promise,
    },
    () => undefined,
  )
  readonly housekeeping = new Housekeeping(this.cluster, ownerMarks([]))
  message: string | undefined

  constructor() {
    this.housekeeping.watch(this.pod)
    void this.pod.closed.then(({ cause, message }) => (this.message = `${cause}: ${message ?? ''}`))
  }

  say(): void {
    this.#heard(new Uint8Array(1))
  }
}

describe('a sandbox whose connection is silent', () => {
  const NODE = 'channel-closed: Kubernetes: the node node-7 does not report'
  test.each([
    ['its node does not report', podWith('False'), NODE],
    ['the state of its pod is unknown', podWith('True', { phase: 'Unknown' }), NODE],
    [
      'its pod was deleted, and its node does not end it',
      podWith('True', { metadata: { deletionTimestamp: new Date(Date.now() - 60_000) } }),
      'channel-closed: Kubernetes: the pod was deleted',
    ],
    ['its pod is gone', undefined, 'channel-closed: Kubernetes: the pod was deleted'],
  ])('is lost when %s', async (_, pod, message) => {
    const cut = new Cut()
    void cut.pod.channel.receive()
    await vi.advanceTimersByTimeAsync(35_000)
    expect(cut.message).toBeUndefined()
    cut.pods = pod === undefined ? [] : [pod]
    await vi.advanceTimersByTimeAsync(20_000)
    expect(cut.message).toBe(message)
  })

  test.each([
    ['its node reports it', podWith('True')],
    ['another condition of its pod does not hold', podWith('False', { reason: 'ReadinessGatesNotReady' })],
    ['a container that others added is not ready', podWith('False', { reason: 'ContainersNotReady' })],
    ['its pod is being deleted', podWith('True', { metadata: { deletionTimestamp: new Date(Date.now() + 600_000) } })],
  ])('stays when %s', async (_, pod) => {
    const cut = new Cut()
    cut.pods = [pod]
    await vi.advanceTimersByTimeAsync(120_000)
    expect(cut.message).toBeUndefined()
    expect(cut.asked.filter((what) => what === 'read a pod')).toEqual([])
  })

  test('stays if it spoke within 30 s, whatever its node reports', async () => {
    const cut = new Cut()
    cut.pods = [podWith('False')]
    for (let times = 0; times < 12; times += 1) {
      void cut.pod.channel.receive()
      await vi.advanceTimersByTimeAsync(10_000)
      cut.say()
    }
    expect(cut.message).toBeUndefined()
  })

  test('that an unreachable node does not end is asked for once each time, not without pause', async () => {
    const cut = new Cut()
    cut.housekeeping.abandon('a')
    await vi.advanceTimersByTimeAsync(60_500)
    expect(cut.asked.filter((what) => what === 'delete a pod')).toHaveLength(3)
    expect(cut.asked.filter((what) => what === 'read a pod')).toEqual([])
  })
})
