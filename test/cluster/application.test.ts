import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request, type RequestOptions } from 'node:https'
import { AppsV1Api, CoordinationV1Api, type V1Pod } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import type { ExecutionResult } from '../../src/index.ts'
import { importApplicationImage } from '../support/application-image.ts'
import { eventually } from '../support/eventually.ts'
import { applyManifest, NAMESPACE, requireCluster } from '../support/kubernetes-cluster.ts'
import { connectPods } from '../support/service-network.ts'

const { skip, options, admin, config } = await requireCluster()
/** The names in the manifest application.yaml. */
const NAME = 'sandglass-app'
const IMAGE = 'sandglass-app:1'
const PORT = 8080
/** A container that ended is started again after 10, 20 and 40 s. */
const READY_MS = 180_000
/** Kubernetes deletes what belonged to a pod soon after it. */
const COLLECTED_MS = 30_000
const [IMPORT, BRIDGE] = ['IMPORT', 'BRIDGE'].map((name) => process.env[`SANDGLASS_TEST_KUBERNETES_${name}`] ?? '') as [
  string,
  string,
]
if (IMPORT === '')
  console.warn(
    'skipped: replicas of an application: SANDGLASS_TEST_KUBERNETES_IMPORT is no command that takes an image',
  )

describe.skipIf(skip || IMPORT === '')('an application in the cluster', () => {
  test(
    'serves runs in three replicas, and one that is killed takes its sandboxes along and costs the others nothing',
    { timeout: 600_000 },
    async () => {
      importApplicationImage(IMAGE, IMPORT)
      await using network = BRIDGE === '' ? undefined : await connectPods(BRIDGE, config, `${NAME}-`)
      expect(BRIDGE === '').toBe(network === undefined)
      // The network of the cluster may enforce no policy.
      const data = {
        SANDBOXES: '1',
        SANDBOX_IMAGE: options.image ?? '',
        ...(options.rootOnlyDir === undefined ? {} : { SANDBOX_ROOT_ONLY_DIR: options.rootOnlyDir }),
        SANDBOX_CPU_REQUEST: '0.05',
        SANDBOX_NETWORK: 'open',
      }
      await admin.createNamespacedConfigMap({ namespace: NAMESPACE, body: { metadata: { name: NAME }, data } })
      try {
        await applyManifest(config, 'application.yaml')
        const replicas = await untilReady(3)
        const first = await Promise.all(replicas.map((replica) => run(replica, 'emit_result(6 * 7)')))
        expect(first.map(({ status, finalData }) => [status, finalData])).toEqual(replicas.map(() => ['completed', 42]))
        const sandboxes = first.map(({ sandbox }) => sandbox?.id ?? '')
        expect(await ownersOf(sandboxes)).toEqual(replicas)
        expect(new Set((await leasesOf(replicas)).map(({ owner }) => owner))).toEqual(new Set(replicas))

        const [victim = '', ...others] = replicas
        const lost = run(victim, 'import time; time.sleep(60)').then(
          ({ status }) => status,
          () => 'no answer',
        )
        const going = others.map((replica) => run(replica, 'import time; time.sleep(10); emit_result(1)'))
        await admin.deleteNamespacedPod({ name: victim, namespace: NAMESPACE, gracePeriodSeconds: 0 })
        const problem = await eventually(async () => {
          const left = [...(await sandboxesOf([victim])), ...(await leasesOf([victim]))]
          return left.length === 0 ? undefined : JSON.stringify(left)
        }, COLLECTED_MS)
        expect(problem).toBeUndefined()
        // The sandbox or its replica ends first.
        expect(['sandbox-lost', 'no answer']).toContain(await lost)
        expect(await Promise.all(going)).toMatchObject(
          sandboxes.slice(1).map((id) => ({ status: 'completed', finalData: 1, sandbox: { id } })),
        )
        const again = await untilReady(3)
        expect(again).toEqual(expect.arrayContaining(others))
        const replacement = again.filter((replica) => !replicas.includes(replica))
        expect(await Promise.all(replacement.map((replica) => run(replica, 'emit_result(2)')))).toMatchObject([
          { status: 'completed', finalData: 2 },
        ])
      } finally {
        await removeApplication()
      }
      const left = await eventually(async () => {
        const pods = await podsOf(`app=${NAME}`)
        const found = [...pods.map(nameOf), ...(await sandboxesOf()), ...(await leasesOf())]
        return found.length === 0 ? undefined : JSON.stringify(found)
      }, READY_MS)
      expect(left).toBeUndefined()
    },
  )
})

function nameOf({ metadata }: V1Pod): string {
  return metadata?.name ?? ''
}

async function podsOf(labelSelector: string): Promise<readonly V1Pod[]> {
  return (await admin.listNamespacedPod({ namespace: NAMESPACE, labelSelector })).items
}

async function untilReady(count: number): Promise<readonly string[]> {
  let ready: readonly string[] = []
  const problem = await eventually(async () => {
    const pods = await podsOf(`app=${NAME}`)
    const isReady = ({ metadata, status }: V1Pod): boolean =>
      metadata?.deletionTimestamp === undefined &&
      status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    ready = pods.filter(isReady).map(nameOf).toSorted()
    return ready.length === count ? undefined : JSON.stringify(pods.map(({ status }) => status?.containerStatuses))
  }, READY_MS)
  if (problem !== undefined) throw new Error(`${problem}\n${await lastWords()}`)
  return ready
}

/** The ends of the logs of all replicas. */
async function lastWords(): Promise<string> {
  const names = (await podsOf(`app=${NAME}`)).map(nameOf)
  const logs = names.flatMap((name) =>
    [false, true].map((previous) =>
      admin.readNamespacedPodLog({ name, namespace: NAMESPACE, previous, tailLines: 20 }).catch(() => ''),
    ),
  )
  return (await Promise.all(logs)).join('\n')
}

/** Has a replica run a script, by the API server, which reaches pods wherever the test runs. */
async function run(replica: string, script: string): Promise<ExecutionResult> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${replica}:${PORT}/proxy/run`
  const settings: RequestOptions = { method: 'POST', agent: false }
  await config.applyToHTTPSOptions(settings)
  const sent = request(new URL(path, config.getCurrentCluster()?.server), settings)
  sent.end(script)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const text = String(Buffer.concat(await response.toArray()))
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${text}`)
  return JSON.parse(text) as ExecutionResult
}

async function ownersOf(sandboxes: readonly string[]): Promise<readonly string[]> {
  const pods = await Promise.all(sandboxes.map((name) => admin.readNamespacedPod({ name, namespace: NAMESPACE })))
  return pods.map(({ metadata }) => metadata?.ownerReferences?.[0]?.name ?? '')
}

/** The pods of sandboxes of these replicas, or of all. */
async function sandboxesOf(replicas?: readonly string[]): Promise<readonly string[]> {
  const pods = await podsOf('app.kubernetes.io/managed-by=sandglass')
  return pods.filter(({ metadata }) => belongs(metadata, replicas)).map(nameOf)
}

async function leasesOf(replicas?: readonly string[]): Promise<readonly { name: string; owner: string }[]> {
  const { items } = await config.makeApiClient(CoordinationV1Api).listNamespacedLease({ namespace: NAMESPACE })
  return items
    .filter(({ metadata }) => belongs(metadata, replicas))
    .map(({ metadata }) => ({ name: metadata?.name ?? '', owner: metadata?.ownerReferences?.[0]?.name ?? '' }))
}

function belongs(metadata: V1Pod['metadata'], replicas: readonly string[] | undefined): boolean {
  const owner = metadata?.ownerReferences?.[0]?.name ?? ''
  return replicas === undefined ? owner.startsWith(`${NAME}-`) : replicas.includes(owner)
}

async function removeApplication(): Promise<void> {
  const named = { name: NAME, namespace: NAMESPACE }
  await config.makeApiClient(AppsV1Api).deleteNamespacedDeployment(named)
  await admin.deleteNamespacedService(named)
  await admin.deleteNamespacedConfigMap(named)
}
