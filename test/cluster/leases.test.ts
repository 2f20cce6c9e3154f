import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { connect } from '../../src/engines/kubernetes/cluster.ts'
import { kubernetesEngine, kubernetesModule } from '../../src/engines/kubernetes/index.ts'
import { removeLease } from '../../src/engines/kubernetes/lease.ts'
import { listResources, removeOrphans } from '../../src/engines/kubernetes/pods.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { ApiProxy, throughProxy } from '../support/api-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { skipFor } from '../support/required.ts'
import { changedConfig, NAMESPACE, podsOf, requireCluster, trustAnyServer } from '../support/kubernetes-cluster.ts'

const { skip, options, admin, config } = await requireCluster()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const HOST = join(import.meta.dirname, '../support/pod-host.main.ts')
/** A lease ends 30 s after its last renewal; each host looks every 20 s, and removes a pod within 15 s. */
const FOUND_MS = 70_000
const MISSING = ['faketime', 'unshare'].filter((name) => spawnSync(name, ['--version']).error !== undefined)
if (MISSING.length > 0) skipFor('kubernetes', `these programs are not installed: ${MISSING.join(', ')}`)

describe.skipIf(skip)('the lease of a host', () => {
  afterAll(async () => expect(await podsOf(admin)).toEqual([]))

  test('is there while an engine has sandboxes, and ps lists it', async () => {
    const engine = kubernetesEngine(options)
    const sandbox = await engine.create(SPEC)
    const pod = await admin.readNamespacedPod({ name: sandbox.id, namespace: NAMESPACE })
    const lease = pod.metadata?.annotations?.['sandglass.dev/lease']
    const shown = { kind: 'lease', id: lease, sandbox: null, owner: 'alive', uid: null }
    expect(await kubernetesModule.listResources?.(options)).toContainEqual(shown)
    await engine.close()
    expect(await kubernetesModule.listResources?.(options)).toContainEqual(shown)
    await sandbox.destroy()
    const problem = await eventually(async () => {
      const ids = (await kubernetesModule.listResources?.(options))?.map(({ id }) => id)
      return ids?.includes(lease ?? '') === true ? 'the lease is there' : undefined
    }, 5000)
    expect(problem).toBeUndefined()
  })

  // These wait for the end of a lease, so they run side by side.
  test.concurrent(
    'tells other machines which hosts live, whatever the clocks of these say',
    { timeout: FOUND_MS + 60_000 },
    async ({ skip: skipTest }) => {
      if (process.getuid?.() !== 0 || MISSING.length > 0) skipTest('only root makes a namespace of pids')
      // The clock of the one that lives is before the certificates of a cluster that was just made.
      const trusting = changedConfig(options.kubeconfig, trustAnyServer)
      const dead = elsewhere(options, '+2h')
      const living = elsewhere({ ...options, kubeconfig: trusting }, '-2h')
      try {
        const [gone, stays] = await Promise.all([nameFrom(dead), nameFrom(living)])
        const { metadata } = await admin.readNamespacedPod({ name: gone, namespace: NAMESPACE })
        const lease = metadata?.annotations?.['sandglass.dev/lease'] ?? ''
        killGroup(dead)
        const engine = kubernetesEngine(options)
        await (await engine.create(SPEC)).destroy()
        const cluster = await connect(options)
        const problem = await eventually(async () => {
          const { pods, leases } = await listResources(cluster)
          const left = [...pods, ...leases].filter(({ name }) => [gone, lease].includes(name))
          return left.length === 0 ? undefined : JSON.stringify(left)
        }, FOUND_MS)
        expect(problem).toBeUndefined()
        const { pods } = await listResources(cluster)
        expect(pods.find(({ name }) => name === stays)).toMatchObject({ owner: 'alive', isOrphan: false })
        const { status } = await admin.readNamespacedPod({ name: stays, namespace: NAMESPACE })
        expect(status?.phase).toBe('Running')
        await engine.close()
      } finally {
        for (const host of [dead, living]) killGroup(host)
        await removeFrom(living)
      }
    },
  )

  test.concurrent(
    'that ends while its host lives costs no run: only ended pods are removed by it',
    { timeout: FOUND_MS + 60_000 },
    async ({ skip: skipTest }) => {
      if (process.getuid?.() !== 0 || MISSING.length > 0) skipTest('only root makes a namespace of pids')
      await using proxy = new ApiProxy(config.getCurrentCluster()?.server ?? '')
      const through = await throughProxy(proxy, options, config.getCurrentCluster()?.server ?? '')
      const host = elsewhere(through, '+0')
      try {
        const name = await nameFrom(host)
        proxy.answer = ({ method, url = '' }) =>
          method === 'PATCH' && url.includes('/leases/') ? { status: 503, message: 'no space' } : undefined
        const cluster = await connect(options)
        const problem = await eventually(async () => {
          const pod = (await listResources(cluster)).pods.find((one) => one.name === name)
          return pod?.owner === 'dead' ? undefined : JSON.stringify(pod)
        }, FOUND_MS)
        expect(problem).toBeUndefined()
        expect((await removeOrphans(cluster)).pods.map((one) => one.name)).not.toContain(name)
        const { metadata, status } = await admin.readNamespacedPod({ name, namespace: NAMESPACE })
        expect([metadata?.deletionTimestamp, status?.phase]).toEqual([undefined, 'Running'])
      } finally {
        killGroup(host)
        await removeFrom(host)
      }
    },
  )

  test('and its pods belong to the pod in which the host runs: Kubernetes deletes them after it', async () => {
    const outer = await admin.createNamespacedPod({
      namespace: NAMESPACE,
      body: {
        metadata: { generateName: 'embedding-' },
        // It never starts, as nothing needs it to.
        spec: {
          schedulingGates: [{ name: 'sandglass.dev/test' }],
          securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              name: 'app',
              image: options.image ?? 'python:3.12-slim',
              securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
            },
          ],
        },
      },
    })
    const { name: outerName = '', uid = '' } = outer.metadata ?? {}
    const env = { SANDGLASS_POD_NAME: outerName, SANDGLASS_POD_UID: uid, SANDGLASS_POD_NAMESPACE: NAMESPACE }
    const host = spawn(process.execPath, [HOST, JSON.stringify(options)], { env: { ...process.env, ...env } })
    try {
      const name = await nameFrom(host)
      await admin.deleteNamespacedPod({ name: outerName, namespace: NAMESPACE })
      const problem = await eventually(async () => {
        const found = await kubernetesModule.listResources?.(options)
        const { owner = '' } = found?.find(({ id }) => id === name) ?? {}
        return owner === '' ? undefined : `the pod is there, its owner is ${owner}`
      }, 30_000)
      expect(problem).toBeUndefined()
    } finally {
      host.kill('SIGKILL')
      await admin.deleteNamespacedPod({ name: outerName, namespace: NAMESPACE }).catch(() => undefined)
    }
  })
})

/** A host whose processes cannot be seen from here, and whose clock is another one. */
function elsewhere(of: object, offset: string): ChildProcessWithoutNullStreams {
  const host = [process.execPath, HOST, JSON.stringify(of)]
  const apart = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', ...host]
  return spawn('faketime', ['--exclude-monotonic', '-f', offset, ...apart], { detached: true })
}

/** `faketime` is the parent of what it runs. */
function killGroup({ pid, exitCode, signalCode }: ChildProcessWithoutNullStreams): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL')
}

/** The pods that hosts of these tests printed. */
const names = new WeakMap<ChildProcessWithoutNullStreams, string>()

/** Removes the pod and the lease of a killed host, which nobody else does soon. */
async function removeFrom(host: ChildProcessWithoutNullStreams): Promise<void> {
  const name = names.get(host)
  if (name === undefined) return
  const request = { name, namespace: NAMESPACE }
  const pod = await admin.readNamespacedPod(request).catch(() => undefined)
  await admin.deleteNamespacedPod({ ...request, gracePeriodSeconds: 1 }).catch(() => undefined)
  const lease = pod?.metadata?.annotations?.['sandglass.dev/lease']
  if (lease !== undefined) await removeLease(await connect(options), lease)
}

async function nameFrom(host: ChildProcessWithoutNullStreams): Promise<string> {
  let text = ''
  host.stderr.on('data', (piece: Buffer) => (text += String(piece)))
  const ended = once(host, 'close').then(() => {
    throw new Error(`the host ended: ${text}`)
  })
  const [line] = (await Promise.race([once(host.stdout, 'data'), ended])) as [Buffer]
  names.set(host, String(line).trim())
  return String(line).trim()
}
