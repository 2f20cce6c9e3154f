import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CoreV1Api, KubeConfig, KubernetesObjectApi, type KubernetesObject } from '@kubernetes/client-node'
import { parseAllDocuments } from 'yaml'
import type { KubernetesEngineOptions } from '../../src/engines/kubernetes/index.ts'
import { skipFor } from './required.ts'
import { runDirectory } from './run-directory.ts'

/** The directory of the manifests. */
export const MANIFESTS: string = resolve(import.meta.dirname, '../../deploy/kubernetes')
/** The names in the manifest sandglass.yaml. */
export const NAMESPACE = 'sandglass'
const ACCOUNT = 'sandglass'

/** The cluster of the tests, if there is one. */
export interface TestedCluster {
  /** `describe.skipIf(skip)`. */
  readonly skip: boolean
  /** Options of the engine: an account with the Role of the manifest, in its namespace, whose Pod Security level is restricted. */
  readonly options: KubernetesEngineOptions & { readonly kubeconfig: string }
  /** The API with the rights of SANDGLASS_TEST_KUBECONFIG. */
  readonly admin: CoreV1Api
  /** The configuration of SANDGLASS_TEST_KUBECONFIG. */
  readonly config: KubeConfig
}

/**
 * Applies the manifest to the cluster of SANDGLASS_TEST_KUBECONFIG, as it is. Without one it prints the reason; where
 * SANDGLASS_TEST_REQUIRE names `kubernetes`, it throws instead. SANDGLASS_TEST_KUBERNETES_IMAGE names an image that the nodes have;
 * with SANDGLASS_TEST_KUBERNETES_HOST_USERS=false, pods ask for user namespaces. SANDGLASS_TEST_KUBERNETES_ROOT_ONLY_DIR names
 * another directory that only root may enter, for an image whose /root is open: without it, each engine first starts a pod that fails.
 */
export async function requireCluster(): Promise<TestedCluster> {
  const path = process.env['SANDGLASS_TEST_KUBECONFIG'] ?? ''
  const config = new KubeConfig()
  if (path === '') {
    skipFor('kubernetes', 'SANDGLASS_TEST_KUBECONFIG names no cluster')
    return { skip: true, options: { kubeconfig: '' }, admin: undefined as unknown as CoreV1Api, config }
  }
  config.loadFromFile(path)
  const admin = config.makeApiClient(CoreV1Api)
  await applyManifest(config, 'sandglass.yaml')
  const image = process.env['SANDGLASS_TEST_KUBERNETES_IMAGE'] ?? ''
  const kubeconfig = await configOfAccount(config, admin)
  // A test may hold several sandboxes, and a node for tests may have two CPUs.
  const isMapped = process.env['SANDGLASS_TEST_KUBERNETES_HOST_USERS'] === 'false'
  const rootOnlyDir = process.env['SANDGLASS_TEST_KUBERNETES_ROOT_ONLY_DIR'] ?? ''
  const more = {
    ...(image === '' ? {} : { image }),
    ...(isMapped ? { hostUsers: false } : {}),
    ...(rootOnlyDir === '' ? {} : { rootOnlyDir }),
  }
  return { skip: false, options: { kubeconfig, cpuRequest: 0.05, ...more }, admin, config }
}

/** A second kubeconfig of the account, for a test that needs another server or token. */
export function changedConfig(kubeconfig: string, change: (text: string) => string): string {
  return writeConfig(change(readFileSync(kubeconfig, 'utf8')))
}

/** Changes the text of a kubeconfig so that its server may be any: one without TLS, or one whose certificate is not valid yet. */
export function trustAnyServer(text: string): string {
  return text
    .replace(/"certificate-authority[^,}]*",?/, '')
    .replace('"insecure-skip-tls-verify":false', '"insecure-skip-tls-verify":true')
}

/** It goes with the directory of the test run. */
function writeConfig(text: string): string {
  const path = join(runDirectory('kubeconfigs') ?? '', `${randomUUID()}.json`)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

/** Creates or updates what a manifest of deploy/kubernetes has: as it is, or with other names. */
export async function applyManifest(
  config: KubeConfig,
  name: string,
  rename: (text: string) => string = (text) => text,
): Promise<void> {
  const objects = KubernetesObjectApi.makeApiClient(config)
  for (const document of parseAllDocuments(rename(readFileSync(join(MANIFESTS, name), 'utf8')))) {
    const object = document.toJS() as KubernetesObject
    await objects.create(object).catch(async (error: unknown) => {
      // Another file of the tests was faster, or an earlier run left it.
      if ((error as { code?: unknown }).code !== 409) throw error
      await objects.patch(object)
    })
  }
}

/** Writes a kubeconfig with a token of the account in the manifest. */
async function configOfAccount(config: KubeConfig, admin: CoreV1Api): Promise<string> {
  const { status } = await admin.createNamespacedServiceAccountToken({
    name: ACCOUNT,
    namespace: NAMESPACE,
    body: { spec: { audiences: [], expirationSeconds: 7200 } },
  })
  const cluster = config.getCurrentCluster()
  if (cluster === null) throw new Error('SANDGLASS_TEST_KUBECONFIG has no current context')
  const own = new KubeConfig()
  own.loadFromClusterAndUser(cluster, { name: ACCOUNT, token: status?.token ?? '' })
  own.contexts = own.contexts.map((context) => ({ ...context, namespace: NAMESPACE }))
  return writeConfig(own.exportConfig())
}

/** The pods of sandboxes whose owner is this process or `pid`. */
export async function podsOf(admin: CoreV1Api, pid: number = process.pid): Promise<readonly string[]> {
  const { items } = await admin.listNamespacedPod({ namespace: NAMESPACE })
  return items
    .filter(({ metadata }) => metadata?.annotations?.['sandglass.dev/owner']?.split(':')[1] === String(pid))
    .map(({ metadata }) => metadata?.name ?? '')
}
