import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { connect } from '../../src/engines/kubernetes/cluster.ts'
import { kubernetesEngine, kubernetesModule } from '../../src/engines/kubernetes/index.ts'
import { listResources } from '../../src/engines/kubernetes/pods.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { eventually } from '../support/eventually.ts'
import { changedConfig, NAMESPACE, podsOf, requireCluster, trustAnyServer } from '../support/kubernetes-cluster.ts'

const { skip, options, admin } = await requireCluster()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const HOST = join(import.meta.dirname, '../support/pod-host.main.ts')
/** A lease ends 30 s after its last renewal; each host looks every 20 s, and removes a pod within 15 s. */
const FOUND_MS = 70_000

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

  test(
    'tells other machines which hosts live, whatever the clocks of these say',
    { timeout: FOUND_MS + 60_000 },
    async ({ skip: skipTest }) => {
      if (process.getuid?.() !== 0) skipTest('only root makes a namespace of pids')
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
        expect(pods.find(({ name }) => name === stays)).toEqual({ name: stays, owner: 'alive', isOrphan: false })
        const { status } = await admin.readNamespacedPod({ name: stays, namespace: NAMESPACE })
        expect(status?.phase).toBe('Running')
        await engine.close()
      } finally {
        for (const host of [dead, living]) killGroup(host)
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

async function nameFrom(host: ChildProcessWithoutNullStreams): Promise<string> {
  let text = ''
  host.stderr.on('data', (piece: Buffer) => (text += String(piece)))
  const ended = once(host, 'close').then(() => {
    throw new Error(`the host ended: ${text}`)
  })
  const [line] = (await Promise.race([once(host.stdout, 'data'), ended])) as [Buffer]
  return String(line).trim()
}
