import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CoreV1Api, KubeConfig, type V1Role } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { kubernetesEngine, kubernetesModule } from '../../src/engines/kubernetes/index.ts'
import { ApiProxy, throughProxy } from '../support/api-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { MANIFESTS, NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'

const { skip, options, admin, config } = await requireCluster()
/** What newer API servers ask for in the place of `get`. */
const ELSEWHERE = 'create pods/exec'
const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' }

describe.skipIf(skip)('the account of the tests', () => {
  test.each(['sandglass.yaml', 'tenant.yaml'])(
    'has in %s exactly the rights that the engine uses',
    async (manifest) => {
      const used = await usedRights()
      expect([...used, ELSEWHERE].toSorted()).toEqual(rightsIn(manifest).toSorted())
    },
  )

  test('is that of the manifest, in a namespace that takes restricted pods alone', async () => {
    const own = new KubeConfig()
    own.loadFromFile(options.kubeconfig)
    const { sub } = JSON.parse(
      Buffer.from(own.getCurrentUser()?.token?.split('.')[1] ?? '', 'base64url').toString(),
    ) as { readonly sub: string }
    expect(sub).toBe(`system:serviceaccount:${NAMESPACE}:sandglass`)
    const body = {
      metadata: { generateName: 'unrestricted-' },
      spec: { containers: [{ name: 'one', image: options.image ?? 'python:3.12-slim' }] },
    }
    await expect(
      own.makeApiClient(CoreV1Api).createNamespacedPod({ namespace: NAMESPACE, body }),
    ).rejects.toMatchObject({
      code: 403,
      body: expect.stringContaining('violates PodSecurity \\"restricted') as string,
    })
    expect(await podsOf(admin)).toEqual([])
  })
})

let found: readonly string[] | undefined

/** Does with an engine all that it can do, and returns the rights that its requests need. */
async function usedRights(): Promise<readonly string[]> {
  if (found !== undefined) return found
  const server = config.getCurrentCluster()?.server ?? ''
  await using proxy = new ApiProxy(server)
  const through = await throughProxy(proxy, options, server)
  const engine = kubernetesEngine(through)
  expect(await engine.report()).toMatchObject({ usable: true })
  await kubernetesModule.pruneOrphans?.(through)
  // The lease is renewed after 10 s.
  const renewed = await eventually(
    () => (proxy.requests.filter(({ text }) => text.startsWith('PATCH')).length > 1 ? undefined : 'no renewal'),
    15_000,
  )
  expect(renewed).toBeUndefined()
  await engine.close()
  // Every account may read the version of the server.
  const asked = proxy.requests.filter(({ text }) => text !== 'GET /version')
  return (found = [...new Set(asked.map(({ text }) => rightOf(text)))])
}

/** The right that a request needs, as `VERB RESOURCE`. */
function rightOf(text: string): string {
  const [method = '', url = ''] = text.split(' ')
  const [resource = '', name, part] = new URL(url, 'http://localhost').pathname
    .replace(/^.*\/namespaces\/[^/]+\//, '')
    .split('/')
  const verb = VERBS[method] ?? (name === undefined ? 'list' : 'get')
  return `${verb} ${part === undefined ? resource : `${resource}/${part}`}`
}

function rightsIn(manifest: string): readonly string[] {
  const documents = parseAllDocuments(readFileSync(join(MANIFESTS, manifest), 'utf8')).map(
    (one) => one.toJS() as V1Role,
  )
  const role = documents.find(({ kind }) => kind === 'Role')
  return (role?.rules ?? []).flatMap(({ resources = [], verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  )
}
