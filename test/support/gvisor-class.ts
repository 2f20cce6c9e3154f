import { type KubeConfig, NodeV1Api } from '@kubernetes/client-node'
import type { KubernetesEngineOptions } from '../../src/engines/kubernetes/index.ts'

/**
 * Returns the name of a RuntimeClass of the cluster whose handler is gVisor's. Prints the reason if there is none, or pods of the tests
 * ask for user namespaces, with which gVisor does not start.
 */
export async function findGvisorClass(
  config: KubeConfig,
  { hostUsers }: KubernetesEngineOptions,
): Promise<string | undefined> {
  if (hostUsers === false) {
    console.warn(
      'skipped: pods on gVisor: gVisor starts in no pod with a user namespace (SANDGLASS_TEST_KUBERNETES_HOST_USERS)',
    )
    return undefined
  }
  const { items } = await config.makeApiClient(NodeV1Api).listRuntimeClass()
  const found = items.find(({ handler }) => handler === 'runsc')?.metadata?.name
  if (found === undefined) console.warn('skipped: the cluster has no RuntimeClass with the handler runsc')
  return found
}

/** A RuntimeClass of a test. */
export interface NamedClass extends AsyncDisposable {
  readonly runtimeClassName: string
}

/** Gives a handler another name, until it is disposed of. */
export async function nameHandler(config: KubeConfig, name: string, handler: string): Promise<NamedClass> {
  const api = config.makeApiClient(NodeV1Api)
  await api.createRuntimeClass({ body: { metadata: { name }, handler } })
  return { runtimeClassName: name, [Symbol.asyncDispose]: async () => void (await api.deleteRuntimeClass({ name })) }
}
