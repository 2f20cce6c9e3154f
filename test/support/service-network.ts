import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { CoreV1Api, type KubeConfig } from '@kubernetes/client-node'
import { changePodNetworks, ipInPod } from './pod-networks.ts'
import { runDirectory } from './run-directory.ts'

/**
 * Does what kube-proxy and a network plugin do elsewhere, for a one-node cluster whose pods have no way out of the bridge that is named as
 * their network: pods with this prefix reach the API server at the address of its Service, and the node reaches them. The authority's
 * key must lie beside its certificate. Disposing of it restores the machine.
 */
export async function connectPods(bridge: string, config: KubeConfig, prefix: string): Promise<AsyncDisposable> {
  const { server = '', caFile = '' } = config.getCurrentCluster() ?? {}
  const { spec } = await config
    .makeApiClient(CoreV1Api)
    .readNamespacedService({ name: 'kubernetes', namespace: 'default' })
  const address = spec?.clusterIP ?? ''
  const identity = makeIdentity(address, caFile)
  const { hostname, port } = new URL(server)
  const proxy = createServer(identity, (client) => {
    const up = connect({ host: hostname, port: Number(port), ca: readFileSync(caFile), servername: 'localhost' })
    for (const [from, to] of [
      [client, up],
      [up, client],
    ] as const) {
      from.on('error', () => to.destroy())
      from.once('close', () => to.destroy())
      from.pipe(to)
    }
  })
  const own = [`${address}/32`, 'dev', bridge]
  await using cleanup = new AsyncDisposableStack()
  ip('address', 'replace', ...own)
  cleanup.defer(() => ip('address', 'delete', ...own))
  proxy.listen(spec?.ports?.[0]?.port ?? 443, address)
  await once(proxy, 'listening')
  cleanup.defer(() => void proxy.close())
  const pods = new Set<string>()
  cleanup.defer(() => {
    for (const pod of pods) ip('route', 'delete', `${pod}/32`, 'dev', bridge)
  })
  cleanup.use(
    changePodNetworks(
      bridge,
      (pod) => pod.startsWith(prefix),
      (pod) => {
        ipInPod(pod, 'route', 'replace', `${address}/32`, 'dev', 'eth0')
        ip('route', 'replace', `${pod.address}/32`, 'dev', bridge, 'src', address)
        pods.add(pod.address)
      },
    ),
  )
  const kept = cleanup.move()
  return { [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args)
}

/** A key and a certificate for an address, of the authority of the cluster. */
function makeIdentity(address: string, caFile: string): { readonly key: Buffer; readonly cert: Buffer } {
  const at = (name: string): string => join(runDirectory('service-network') ?? '', name)
  const openssl = (...args: readonly string[]): Buffer => execFileSync('openssl', args, { stdio: 'pipe' })
  openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', at('key'))
  const authority = ['-CA', caFile, '-CAkey', caFile.replace(/\.crt$/, '.key')]
  const extension = ['-subj', '/CN=kubernetes', '-addext', `subjectAltName=IP:${address}`, '-days', '1']
  openssl('req', '-x509', '-new', '-key', at('key'), '-out', at('cert'), ...authority, ...extension)
  return { key: readFileSync(at('key')), cert: readFileSync(at('cert')) }
}
