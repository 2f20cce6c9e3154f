import { beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, connect } from '../../../../src/engines/kubernetes/cluster.ts'
import { removePod } from '../../../../src/engines/kubernetes/pod.ts'
import { FakeApiServer } from '../../../support/fake-api-server.ts'

// The client takes a quarter of a second to load.
beforeAll(async () => void (await Promise.all([import('@kubernetes/client-node'), import('ws')])))

const MISSING = { status: 404, body: { kind: 'Status', status: 'Failure', message: 'not found', code: 404 } } as const
const BUSY = { status: 429, body: { kind: 'Status', message: 'too many requests', code: 429 } } as const
const FOUND = { status: 200, body: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' } } } as const

function readPod(cluster: Cluster): Promise<unknown> {
  return cluster.call('read a pod', (api) => api.readNamespacedPod({ name: 'a', namespace: 'default' }))
}

describe('the requests of one engine', () => {
  test('are at most 100 in a second, also while 40 pods end at once', async () => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig })
    const goneAt = new Map<string, number>()
    server.answer = ({ method, url = '' }) => {
      const name = url.split('/pods/')[1]?.split('?')[0] ?? ''
      if (method === 'DELETE') goneAt.set(name, performance.now() + 700)
      return performance.now() >= (goneAt.get(name) ?? 0) ? MISSING : FOUND
    }
    const removed = await Promise.all(Array.from({ length: 40 }, (_, place) => removePod(cluster, `pod-${place}`)))
    expect(removed).toEqual(Array.from({ length: 40 }, () => true))
    expect(server.busiestSecond()).toBeLessThanOrEqual(100)
  })

  test('wait for their turn without a claim on the time of the server, and no longer than their caller', async () => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig, apiTimeoutMs: 100 })
    const answers = Promise.all(Array.from({ length: 60 }, () => cluster.call('wait', () => Promise.resolve(1))))
    const given = new AbortController()
    let wasSent = false
    const last = cluster.call('wait', () => Promise.resolve((wasSent = true)), given.signal)
    given.abort()
    await expect(last).rejects.toMatchObject({ code: 'aborted' })
    expect(await answers).toHaveLength(60)
    expect(wasSent).toBe(false)
  })
})

test('the error for a server that does not answer says what to check and which option to raise', async () => {
  await using server = await FakeApiServer.start()
  const cluster = await connect({ kubeconfig: server.kubeconfig, apiTimeoutMs: 20 })
  const { promise: never } = Promise.withResolvers()
  await expect(cluster.call('read a pod', () => never)).rejects.toMatchObject({
    code: 'kubernetes_unreachable',
    message:
      `the API server at ${server.address} did not answer within 20 ms to the request to read a pod; ` +
      'check that the cluster answers (kubectl version), or raise kubernetes.apiTimeoutMs',
  })
})

describe('a busy server', () => {
  test('is asked again for the start of a program, after longer and longer pauses', async () => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig })
    server.answer = () => [BUSY, { status: 503 }, MISSING][server.requests.length - 1] ?? MISSING
    await expect(cluster.exec('a', 'relay', ['true'])).rejects.toMatchObject({
      code: 'sandbox_setup_failed',
      message: 'Kubernetes could not start a program in a pod: not found',
    })
    const [first = 0, second = 0, third = 0, ...more] = server.requests.map(({ atMs }) => atMs)
    expect(second - first).toBeGreaterThan(95)
    expect(third - second).toBeGreaterThan(295)
    expect(more).toEqual([])
  })

  test('is not asked again before the time that it named, neither for an object nor for a program', async () => {
    const asks = [readPod, (cluster: Cluster) => cluster.exec('a', 'relay', ['true'])]
    const pauses = asks.map(async (ask) => {
      await using server = await FakeApiServer.start()
      const cluster = await connect({ kubeconfig: server.kubeconfig })
      server.answer = () => (server.requests.length === 1 ? { ...BUSY, headers: { 'retry-after': '1' } } : MISSING)
      await expect(ask(cluster)).rejects.toMatchObject({ message: expect.stringMatching(/not found$/) as string })
      const [first = 0, second = 0] = server.requests.map(({ atMs }) => atMs)
      return second - first
    })
    expect(Math.min(...(await Promise.all(pauses)))).toBeGreaterThan(990)
  })

  test('that names a time beyond the limit is not waited for', async () => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig })
    server.answer = () => ({ ...BUSY, headers: { 'retry-after': '3600' } })
    await expect(readPod(cluster)).rejects.toMatchObject({ code: 'kubernetes_unreachable' })
    expect(server.requests).toHaveLength(1)
  })
})

describe('credentials that the server does not know', () => {
  const UNKNOWN = { status: 401, body: { kind: 'Status', message: 'Unauthorized', reason: 'Unauthorized', code: 401 } }

  test.each([
    ['an object', readPod],
    ['a program', (cluster: Cluster) => cluster.exec('a', 'relay', ['true'])],
  ])('are told with the remedy, when asking for %s', async (_, ask) => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig })
    server.answer = () => UNKNOWN
    const error = await ask(cluster).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'kubernetes_permission',
      message:
        `the API server at ${server.address} does not accept the credentials of the context x: ` +
        'the token or certificate is invalid or expired; renew it in the kubeconfig, which is read again after each refusal',
    })
    expect(server.requests).toHaveLength(2)
  })

  test('are read again, so a token that was renewed on the disk serves', async () => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig })
    server.answer = ({ headers }) => (headers.authorization === 'Bearer second' ? FOUND : UNKNOWN)
    server.writeConfig('second')
    expect(await readPod(cluster)).toMatchObject({ metadata: { name: 'a' } })
    expect(await readPod(cluster)).toMatchObject({ metadata: { name: 'a' } })
    expect(server.requests).toHaveLength(3)
  })

  test('of another server are never sent to this one', async () => {
    await using server = await FakeApiServer.start()
    const cluster = await connect({ kubeconfig: server.kubeconfig })
    const tokens: (string | undefined)[] = []
    server.answer = ({ headers }) => {
      tokens.push(headers.authorization)
      return UNKNOWN
    }
    server.writeConfig('of another', 'http://127.0.0.1:1')
    await expect(readPod(cluster)).rejects.toMatchObject({ code: 'kubernetes_permission' })
    expect(tokens).toEqual(['Bearer first'])
  })
})
