import { CoordinationV1Api, NetworkingV1Api, type V1NetworkPolicy } from '@kubernetes/client-node'
import { afterAll, describe, expect, test } from 'vitest'
import { kubernetesEngine } from '../../src/engines/kubernetes/index.ts'
import { createSandglass } from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { eventually } from '../support/eventually.ts'
import { changedConfig, NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'
import { changePodNetworks, ipInPod } from '../support/pod-networks.ts'
import { PolicyEnforcer, serveOnBridge } from '../support/policy-enforcer.ts'

const { skip, options, admin, config } = await requireCluster()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const BRIDGE = process.env['SANDGLASS_TEST_KUBERNETES_BRIDGE'] ?? ''
if (BRIDGE === '')
  console.warn('skipped: both verdicts on the network: SANDGLASS_TEST_KUBERNETES_BRIDGE names no bridge')

describe.skipIf(skip)('the network of the engine kubernetes', () => {
  afterAll(async () => expect(await podsOf(admin)).toEqual([]))

  test('is none exactly where the report says so, and what is required is refused otherwise', async () => {
    const engine = kubernetesEngine(options)
    const report = await engine.report()
    const reasons = report.reasons.filter(({ code }) => code === 'network_open')
    expect(reasons).toHaveLength(report.network === 'none' ? 0 : 1)
    expect(report.probes['network_of_a_sandbox']).toContainEqual(expect.stringMatching(/^another pod \(tcp /))
    await using sandbox = await engine.create(SPEC)
    expect(sandbox.info.network).toBe(report.network)
    await engine.close()
    if (report.network === 'none') return
    const strict = createSandglass({ engine: 'kubernetes', kubernetes: options, require: ['network'], poolSize: 0 })
    await expect(strict).rejects.toMatchObject({ code: 'requirement_unmet' })
  })

  test('a report that is aborted while it tries the network ends, and leaves nothing', async () => {
    const engine = kubernetesEngine(options)
    const controller = new AbortController()
    const reporting = engine.report({ signal: controller.signal })
    const problem = await eventually(async () => {
      const pods = await podsOf(admin)
      return pods.some((name) => name.startsWith('sandglass-control-')) ? undefined : pods.join(', ')
    }, 30_000)
    expect(problem).toBeUndefined()
    controller.abort()
    expect(await reporting).toMatchObject({ usable: false, reasons: [{ code: 'aborted' }] })
    expect(await podsOf(admin)).toEqual([])
    await engine.close()
  })

  test.skipIf(BRIDGE === '')(
    'is open while a policy is ignored or leaves IPv6 open, none once it is enforced, and a later sandbox that contradicts is refused',
    { timeout: 180_000 },
    async () => {
      await using enforcer = new PolicyEnforcer(BRIDGE, config, admin)
      const before = kubernetesEngine(options)
      const open = await before.report()
      expect(open.network).toBe('open')
      expect(open.reasons).toContainEqual({
        severity: 'warning',
        code: 'network_open',
        message: expect.stringMatching(/^a sandbox reaches another pod \(tcp .*does not enforce it$/) as string,
        remedy: expect.stringContaining('Calico') as string,
      })
      await before.close()

      // Pods have addresses of their link, also in a cluster that gives them none of IPv6.
      await enforcer.enforce(['iptables'])
      const half = kubernetesEngine(options)
      const { network: halfOpen, reasons: because } = await half.report()
      expect(halfOpen).toBe('open')
      expect(because[0]?.message).toMatch(/^a sandbox reaches another pod \(tcp fe80::[^.]*does not enforce it$/)
      await half.close()

      // Pods of this cluster have no way to its API server, so it gets an address on their bridge.
      const own = /another pod \(tcp ([\d.]+)\.\d+\)/.exec(String(open.probes['network_of_a_sandbox']))?.[1] ?? ''
      const server = new URL(config.getCurrentCluster()?.server ?? '')
      await using place = await serveOnBridge(BRIDGE, `${own}.1`, server)
      const there = `https://${own}.1:${place.port}","tls-server-name":"localhost`
      const kubeconfig = changedConfig(options.kubeconfig, (text) => text.replace(server.origin, there))
      await enforcer.enforce()
      const sg = await createSandglass({
        engine: 'kubernetes',
        kubernetes: { ...options, kubeconfig },
        require: ['network'],
        poolSize: 0,
      })
      try {
        const script = `
import socket
try: socket.create_connection(('${own}.1', ${place.port}), timeout=2); emit_result('reached')
except OSError as error: emit_result(type(error).__name__)`
        expect(await sg.run(script)).toMatchObject({ finalData: 'TimeoutError', sandbox: { network: 'none' } })
        const { network, reasons, probes } = await sg.report()
        expect([network, reasons]).toEqual(['none', []])
        expect(probes['network_of_a_pod_without_policy']).toContain(
          `the API server from outside (tcp ${own}.1): connected`,
        )
        expect(probes['network_of_a_sandbox']).toContain(`the API server from outside (tcp ${own}.1): silent`)

        for (const address of [`${own}\\.\\d+`, 'fe80::[^)]*']) {
          for (const protocol of ['tcp', 'udp']) {
            const met = (outcome: string): unknown =>
              expect.stringMatching(new RegExp(`^another pod \\(${protocol} ${address}\\): ${outcome}$`))
            expect(probes['network_of_a_pod_without_policy']).toContainEqual(met('connected'))
            expect(probes['network_of_a_sandbox']).toContainEqual(met('(silent|EHOSTUNREACH)'))
          }
        }

        // The label is the id of the engine, which its lease has too.
        const leases = await config.makeApiClient(CoordinationV1Api).listNamespacedLease({ namespace: NAMESPACE })
        const selected = leases.items.map(({ metadata }) => (metadata?.name ?? '').replace(/^sandglass-/, ''))
        const allowing = selected.map((id) => policyOf(`allow-${id}`, { 'sandglass.dev/engine': id }))
        const policies = config.makeApiClient(NetworkingV1Api)
        try {
          for (const body of allowing) await policies.createNamespacedNetworkPolicy({ namespace: NAMESPACE, body })
          await expect(sg.run('pass')).rejects.toMatchObject({
            code: 'sandbox_setup_failed',
            message: expect.stringMatching(/the NetworkPolicy allow-.* allows sandboxes something/) as string,
          })
        } finally {
          for (const { metadata } of allowing) {
            await policies.deleteNamespacedNetworkPolicy({ namespace: NAMESPACE, name: metadata.name })
          }
        }
        expect(await sg.run('pass')).toMatchObject({ status: 'step-done', sandbox: { network: 'none' } })

        const others = [
          [['link', 'add', 'second', 'type', 'bridge'], /has the network interfaces eth0, second: the report/],
          [
            ['address', 'add', '2001:db8::7/64', 'dev', 'eth0', 'nodad'],
            /address 2001:db8::7, of a kind that was not tried/,
          ],
        ] as const
        for (const [change, message] of others) {
          await using _changes = changePodNetworks(BRIDGE, isOwn, (pod) => {
            ipInPod(pod, ...change)
            if (change[0] === 'link') ipInPod(pod, 'link', 'set', change[2], 'up')
          })
          await expect(sg.run('pass')).rejects.toMatchObject({
            code: 'sandbox_setup_failed',
            message: expect.stringMatching(message) as string,
          })
        }
        expect(await sg.run('pass')).toMatchObject({ status: 'step-done', sandbox: { network: 'none' } })

        await enforcer.ignore()
        await expect(sg.run('pass')).rejects.toMatchObject({
          code: 'sandbox_setup_failed',
          message: expect.stringMatching(/reaches the API server from outside .* does not hold here/) as string,
        })
      } finally {
        await sg.close()
      }
    },
  )
})

/** True for a pod of this process: other tests have pods on the same bridge. */
async function isOwn(pod: string): Promise<boolean> {
  return (await podsOf(admin)).includes(pod)
}

/** A policy that allows the pods with these labels to reach everything. */
function policyOf(
  name: string,
  matchLabels: Record<string, string>,
): V1NetworkPolicy & { readonly metadata: { readonly name: string } } {
  return { metadata: { name }, spec: { podSelector: { matchLabels }, policyTypes: ['Egress'], egress: [{}] } }
}
