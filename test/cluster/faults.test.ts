import { setTimeout as sleep } from 'node:timers/promises'
import type { V1ContainerStateTerminated } from '@kubernetes/client-node'
import { afterAll, describe, expect, test } from 'vitest'
import { kubernetesEngine } from '../../src/engines/kubernetes/index.ts'
import { createSandglass } from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { ApiProxy, throughProxy } from '../support/api-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'

const { skip, options, admin, config } = await requireCluster()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const BUSY = { status: 429, message: 'too many requests' }
const isCreate = (method = '', url = ''): boolean => method === 'POST' && /\/pods(\?|$)/.test(url)

describe.skipIf(skip)('a fault of the cluster', () => {
  afterAll(async () => expect(await podsOf(admin)).toEqual([]))

  test('a busy API server is asked again, after longer and longer pauses, and not without end', async () => {
    await using proxy = new ApiProxy(server())
    const engine = kubernetesEngine(await through(proxy))
    const times: number[] = []
    proxy.answer = ({ method, url }) => {
      if (!isCreate(method, url)) return undefined
      times.push(performance.now())
      return times.length < 3 ? BUSY : undefined
    }
    await (await engine.create(SPEC)).destroy()
    const [first = 0, second = 0, third = 0] = times
    expect(second - first).toBeGreaterThan(95)
    expect(third - second).toBeGreaterThan(295)

    times.length = 0
    proxy.answer = ({ method, url }) => {
      if (!isCreate(method, url)) return undefined
      times.push(performance.now())
      return { status: 503, message: 'etcd leader changed' }
    }
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code: 'kubernetes_unreachable',
      message: expect.stringContaining('etcd leader changed') as string,
      retryable: true,
    })
    expect(times).toHaveLength(5)
    await engine.close()
  })

  test('the API server restarts in mid-run: a lost sandbox, and the next run works', async () => {
    await using proxy = new ApiProxy(server())
    const sg = await createSandglass({ engine: 'kubernetes', kubernetes: await through(proxy), poolSize: 1 })
    try {
      const { sandbox } = await sg.run('pass')
      const running = sg.run('import time; time.sleep(50)')
      await proxy.stop()
      expect(await running).toMatchObject({ status: 'sandbox-lost', sandbox: { id: sandbox?.id } })
      await proxy.start()
      expect(await sg.run('emit_result(3)')).toMatchObject({ status: 'completed', finalData: 3 })
    } finally {
      await sg.close()
    }
  })

  // These wait for most of their time, so they run side by side.
  test.concurrent(
    'the store of the API server hangs: runs go on, a new sandbox is refused in time, and its pod goes without a further request',
    { timeout: 120_000 },
    async () => {
      await using proxy = new ApiProxy(server())
      const kubernetes = { ...(await through(proxy)), ...marked('hang'), apiTimeoutMs: 2000 }
      const sg = await createSandglass({ engine: 'kubernetes', kubernetes, poolSize: 1 })
      const engine = kubernetesEngine(kubernetes)
      try {
        await sg.run('pass')
        // The API server has done what it was asked, and its answer comes too late.
        proxy.release = ({ method, url }) => (isCreate(method, url) ? sleep(4000) : Promise.resolve())
        proxy.answer = ({ method }) => (method === 'DELETE' ? { status: 503, message: 'etcd hangs' } : undefined)
        const running = sg.run('import time; time.sleep(3); emit_result(4)')
        const started = performance.now()
        await expect(engine.create(SPEC)).rejects.toMatchObject({ code: 'kubernetes_unreachable', retryable: true })
        // The request, and what is done to remove the pod that it may have made.
        expect(performance.now() - started).toBeLessThan(2000 + 16_000)
        expect(await running).toMatchObject({ status: 'completed', finalData: 4 })
        expect(await podsMarked('hang')).toHaveLength(2)
        proxy.answer = () => undefined
        proxy.release = () => Promise.resolve()
        const problem = await eventually(async () => {
          const pods = await podsMarked('hang')
          return pods.length <= 1 ? undefined : `${pods.length} pods are there`
        }, 45_000)
        expect(problem).toBeUndefined()
      } finally {
        await sg.close()
        await engine.close()
      }
    },
  )

  test.concurrent(
    'a connection through which nothing comes any more is a lost sandbox within 30 s',
    { timeout: 90_000 },
    async () => {
      await using proxy = new ApiProxy(server())
      const sg = await createSandglass({ engine: 'kubernetes', kubernetes: await through(proxy), poolSize: 1 })
      try {
        await sg.run('pass')
        const running = sg.run('import time; time.sleep(80)', { limits: { executionTimeoutSec: 80 } })
        const started = performance.now()
        proxy.freeze()
        expect(await running).toMatchObject({ status: 'sandbox-lost' })
        expect(performance.now() - started).toBeLessThan(32_000)
        expect(await sg.run('emit_result(5)')).toMatchObject({ status: 'completed', finalData: 5 })
      } finally {
        await sg.close()
      }
    },
  )

  test.concurrent(
    'a pod to which nobody connects waits for the time of its start, and ends by itself',
    { timeout: 90_000 },
    async () => {
      await using proxy = new ApiProxy(server())
      const engine = kubernetesEngine({
        ...(await through(proxy)),
        ...marked('alone'),
        startTimeoutMs: 10_000,
        apiTimeoutMs: 2000,
      })
      proxy.answer = ({ method, url = '' }) =>
        url.includes('/exec?') || method === 'DELETE' ? { status: 503, message: 'etcd hangs' } : undefined
      await expect(engine.create(SPEC)).rejects.toMatchObject({ code: 'kubernetes_unreachable' })
      const [name = ''] = await podsMarked('alone')
      let ends: readonly (V1ContainerStateTerminated | undefined)[] = []
      const problem = await eventually(async () => {
        const { status } = await admin.readNamespacedPod({ name, namespace: NAMESPACE })
        ends = (status?.containerStatuses ?? []).map(({ state }) => state?.terminated)
        return ends.length === 2 && !ends.includes(undefined) ? undefined : JSON.stringify(status)
      }, 40_000)
      expect(problem).toBeUndefined()
      for (const end of ends) {
        const seconds = ((end?.finishedAt?.getTime() ?? 0) - (end?.startedAt?.getTime() ?? 0)) / 1000
        // The start, and 4.5 s in which the network may be tried again, in whole seconds.
        expect(seconds).toBeGreaterThanOrEqual(14)
        expect(seconds).toBeLessThan(20)
      }
      proxy.answer = () => undefined
      await engine.close()
      expect(await podsMarked('alone')).toEqual([])
    },
  )

  test('a pod that is evicted is a lost sandbox, and the next run works', async () => {
    const sg = await createSandglass({ engine: 'kubernetes', kubernetes: options, poolSize: 1 })
    try {
      const { sandbox } = await sg.run('pass')
      const name = sandbox?.id ?? ''
      const running = sg.run('import time; time.sleep(50)')
      await admin.createNamespacedPodEviction({
        name,
        namespace: NAMESPACE,
        body: { metadata: { name, namespace: NAMESPACE }, deleteOptions: { gracePeriodSeconds: 1 } },
      })
      expect(await running).toMatchObject({
        status: 'sandbox-lost',
        error: expect.stringContaining('Kubernetes: EvictionByEvictionAPI') as string,
        sandbox: { id: name },
      })
      expect(await sg.run('emit_result(6)')).toMatchObject({ status: 'completed', finalData: 6 })
    } finally {
      await sg.close()
    }
  })

  test('a pod that reaches its deadline is a lost sandbox, and the next run works', async () => {
    const sg = await createSandglass({ engine: 'kubernetes', kubernetes: options, poolSize: 1 })
    try {
      const { sandbox } = await sg.run('pass')
      const name = sandbox?.id ?? ''
      const running = sg.run('import time; time.sleep(50)')
      const body = [{ op: 'replace', path: '/spec/activeDeadlineSeconds', value: 1 }]
      await admin.patchNamespacedPod({ name, namespace: NAMESPACE, body })
      expect(await running).toMatchObject({
        status: 'sandbox-lost',
        error: expect.stringContaining('Kubernetes: DeadlineExceeded') as string,
        sandbox: { id: name },
      })
      expect(await sg.run('emit_result(7)')).toMatchObject({ status: 'completed', finalData: 7 })
    } finally {
      await sg.close()
    }
  })

  test('many sandboxes at once do not flood the API server', { timeout: 120_000 }, async () => {
    await using proxy = new ApiProxy(server())
    const engine = kubernetesEngine(await through(proxy))
    const sandboxes = await Promise.all(Array.from({ length: 6 }, () => engine.create(SPEC)))
    await Promise.all(sandboxes.map((one) => one.destroy()))
    await engine.close()
    const busiest = Math.max(
      ...proxy.requests.map(
        ({ atMs }) => proxy.requests.filter((one) => one.atMs >= atMs && one.atMs < atMs + 1000).length,
      ),
    )
    // Four that start, each read up to 20 times a second at first, and six that end.
    expect(busiest).toBeLessThan(100)
    expect(proxy.requests.length).toBeLessThan(6 * 60)
  })

  test('runs ask the API server for nothing', async () => {
    await using proxy = new ApiProxy(server())
    const sg = await createSandglass({ engine: 'kubernetes', kubernetes: await through(proxy), poolSize: 1 })
    try {
      await sg.run('pass')
      const before = proxy.requests.length
      for (let run = 0; run < 50; run += 1) expect(await sg.run('pass')).toMatchObject({ status: 'step-done' })
      // The host renews its lease, and looks for those of dead hosts.
      const kept = /^PATCH .*\/leases\/|^GET .*\/(pods|leases)\?/
      expect(proxy.requests.slice(before).filter(({ text }) => !kept.test(text))).toEqual([])
    } finally {
      await sg.close()
    }
  })
})

function server(): string {
  return config.getCurrentCluster()?.server ?? ''
}

function through(proxy: ApiProxy): Promise<typeof options> {
  return throughProxy(proxy, options, server())
}

/** What the pods of one test tolerate, by which it finds them beside those of others. */
function marked(test: string): Pick<typeof options, 'tolerations'> {
  return { tolerations: [{ key: `sandglass.dev/${test}`, operator: 'Exists' }] }
}

async function podsMarked(test: string): Promise<readonly string[]> {
  const { items } = await admin.listNamespacedPod({ namespace: NAMESPACE })
  return items
    .filter(({ spec }) => spec?.tolerations?.some(({ key }) => key === `sandglass.dev/${test}`))
    .map(({ metadata }) => metadata?.name ?? '')
}
