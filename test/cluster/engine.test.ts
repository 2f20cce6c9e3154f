import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { kubernetesEngine } from '../../src/engines/kubernetes/index.ts'
import { listResources } from '../../src/engines/kubernetes/pods.ts'
import { connect } from '../../src/engines/kubernetes/cluster.ts'
import { createSandglass, defineTool } from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { eventually } from '../support/eventually.ts'
import { changedConfig, NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'
import type { Flood } from '../support/flooded-pod.main.ts'
import { isFull } from '../support/walls.ts'

const { skip, options, admin } = await requireCluster()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
/** True if the runtime of every node makes user namespaces for pods. */
const hasUserNamespaces =
  !skip &&
  (await admin.listNode()).items.every(({ status }) =>
    status?.runtimeHandlers?.some(({ name, features }) => (name ?? '') === '' && features?.userNamespaces === true),
  )
const MAIN = join(import.meta.dirname, '../../src/cli/main.ts')
const FLOODED = join(import.meta.dirname, '../support/flooded-pod.main.ts')
const HOST = join(import.meta.dirname, '../support/pod-host.main.ts')

describe.skipIf(skip)('the engine kubernetes', () => {
  afterAll(async () => expect(await podsOf(admin)).toEqual([]))

  test('runs scripts with tools of the host, and nothing of them is in the logs of the node', async () => {
    const secret = 'swordfish-8121'
    const sg = await createSandglass({ engine: 'kubernetes', kubernetes: options, poolSize: 1 })
    try {
      const asked: unknown[] = []
      const ask = defineTool({
        name: 'ask',
        description: 'Answers.',
        effect: 'read',
        input: z.object({ word: z.string() }),
        output: z.string(),
        execute: ({ word }) => {
          asked.push(word)
          return word.toUpperCase()
        },
      })
      const script = `import sys; print('seen', ${JSON.stringify(secret)}); print('err', file=sys.stderr); emit_result(ask(word='${secret}'))`
      const result = await sg.run(script, { tools: [ask] })
      expect(result).toMatchObject({
        status: 'completed',
        finalData: secret.toUpperCase(),
        stdout: `seen ${secret}\n`,
        stderr: 'err\n',
        sandbox: { engine: 'kubernetes', level: 'container', network: 'open', use: 1 },
      })
      expect(asked).toEqual([secret])
      const again = await sg.run('emit_result(1)')
      expect(again.sandbox).toMatchObject({ id: result.sandbox?.id, use: 2 })
      const logs = ['sandbox', 'relay'].map((container) =>
        admin.readNamespacedPodLog({ name: result.sandbox?.id ?? '', namespace: NAMESPACE, container }),
      )
      expect((await Promise.all(logs)).map((text) => text ?? '')).toEqual(['', ''])
      // The name shows that these are the logs.
      const name = result.sandbox?.id ?? ''
      expect(inLogsOfNode([name, secret]) ?? [name]).toEqual([name])
    } finally {
      await sg.close()
    }
  })

  test('runs scripts by the command line, and explains the cluster', async () => {
    const flags = ['--engine', 'kubernetes', '--kubeconfig', options.kubeconfig]
    if (options.image !== undefined) flags.push('--image', options.image)
    const [ran, told] = await Promise.all([
      output(['run', '-c', 'emit_result(6 * 7)', '--json', ...flags]),
      output(['doctor', ...flags]),
    ])
    expect(JSON.parse(ran)).toMatchObject({ status: 'completed', final_data: 42, sandbox: { engine: 'kubernetes' } })
    expect(told).toMatch(/✓ kubernetes container\n/)
    expect(told).toMatch(new RegExp(`  namespace +${NAMESPACE}\n`))
    expect(told).toMatch(/  cluster +https:.*, Kubernetes v1\.\d+/)
    expect(told).toMatch(/  processes +counted by RLIMIT_NPROC of the uid of the sandbox\n/)
    expect(told).toMatch(/  limits +memory, pids, cpu, disk, output, wall\n/)
    expect(told).toMatch(/  users +no user namespace \(option kubernetes\.hostUsers\)\n/)
    expect(told).toContain('(network_open)')
  })

  test('has every limit in force', async () => {
    const engine = kubernetesEngine(options)
    await using sandbox = await engine.create(SPEC)
    expect(sandbox.info.limitsEnforced).toEqual(['memory', 'pids', 'cpu', 'disk', 'output', 'wall'])
    await engine.close()
  })

  test('has a user namespace of its own where it asks for one', async ({ skip: skipTest }) => {
    if (!hasUserNamespaces) skipTest('the nodes make no user namespaces for pods (status.runtimeHandlers)')
    const engine = kubernetesEngine({ ...options, hostUsers: false })
    await using sandbox = await engine.create(SPEC)
    expect(sandbox.ready.checks).toMatchObject({ user_namespace: true })
    expect(sandbox.ready.checks['uid']).toBeLessThan(65_536)
    expect(sandbox.info.limitsEnforced).toEqual(['memory', 'pids', 'cpu', 'disk', 'output', 'wall'])
    await engine.close()
  })

  test('is refused a user namespace where the nodes make none, and told what they need', async ({ skip: skipTest }) => {
    if (hasUserNamespaces) skipTest('the nodes make user namespaces for pods (status.runtimeHandlers)')
    const engine = kubernetesEngine({ ...options, hostUsers: false, startTimeoutMs: 3000 })
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      message: expect.stringMatching(/hostUsers: false needs (containerd 2\.0|Kubernetes 1\.33)/) as string,
    })
    await engine.close()
  })

  test('a pod that is deleted during a run is a lost sandbox, and the next run gets another', async () => {
    const sg = await createSandglass({ engine: 'kubernetes', kubernetes: options, poolSize: 1 })
    try {
      const { sandbox } = await sg.run('pass')
      const running = sg.run('import time; time.sleep(50)')
      await admin.deleteNamespacedPod({ name: sandbox?.id ?? '', namespace: NAMESPACE, gracePeriodSeconds: 1 })
      expect(await running).toMatchObject({
        status: 'sandbox-lost',
        error: expect.stringContaining('Kubernetes: the pod was deleted') as string,
        sandbox: { id: sandbox?.id },
      })
      expect(await sg.run('emit_result(2)')).toMatchObject({ status: 'completed', finalData: 2 })
    } finally {
      await sg.close()
    }
  })

  test(
    'a script that floods does not grow a host that reads late, slowly and fast, and ends',
    { timeout: 300_000 },
    async () => {
      const floodMiB = isFull() ? 1024 : 256
      const flood = JSON.parse(await outputOf([FLOODED, JSON.stringify(options), String(floodMiB)])) as Flood
      if (isFull()) console.log(flood)
      expect(flood.receivedMiB).toBeGreaterThan(floodMiB)
      expect(flood.unreadMiB).toBeLessThan(32)
      expect(flood.grownMiB).toBeLessThan(32)
      expect(flood.heldMiB).toBeLessThan(32)
    },
  )

  test('the containers of a host that is killed end, and the next engine removes the pod', async () => {
    const host = spawn(process.execPath, [HOST, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(host.stdout, 'data')) as [Buffer]
    const name = String(line).trim()
    const place = ['--engine', 'kubernetes', '--kubeconfig', options.kubeconfig, '--namespace', NAMESPACE]
    const listed = JSON.parse(await output(['ps', '--json', ...place])) as readonly { id: string }[]
    expect(listed.filter(({ id }) => id === name)).toEqual([
      { kind: 'pod', id: name, sandbox: name, owner: 'alive', uid: null },
    ])
    host.kill('SIGKILL')
    await once(host, 'close')
    const start = performance.now()
    const problem = await eventually(async () => {
      // Engines of other tests look for dead hosts, too: one may have removed it.
      const pod = await admin.readNamespacedPod({ name, namespace: NAMESPACE }).catch((error: { code?: number }) => {
        if (error.code !== 404) throw error
      })
      const states = pod?.status?.containerStatuses?.map(({ state }) => state) ?? []
      return states.every((state) => state?.terminated !== undefined) ? undefined : JSON.stringify(states)
    }, 20_000)
    expect(problem).toBeUndefined()
    expect(performance.now() - start).toBeLessThan(15_000)
    const cluster = await connect(options)
    const { pods } = await listResources(cluster)
    expect(pods.filter((one) => one.name === name && one.owner !== 'dead')).toEqual([])
    await output(['prune', ...place])
    // It leaves alone what another one deletes already.
    const left = await eventually(async () => {
      const names = await podsOf(admin, host.pid)
      return names.length === 0 ? undefined : names.join(', ')
    }, 15_000)
    expect(left).toBeUndefined()
  })

  // These wait for what Kubernetes says, so they run side by side.
  test.concurrent.each([
    ['image_missing', { image: 'sandglass.invalid/none:1' }, /the image sandglass\.invalid\/none:1: /],
    ['runtime_unknown', { runtimeClassName: 'none-such' }, /RuntimeClass "none-such" not found/],
    ['python_missing', { python: '/no/python' }, /exit code 12[78]/],
    ['kubernetes_config', { kubeconfig: '/no/such/file' }, /the kubeconfig cannot be read/],
    ['kubernetes_config', { context: 'elsewhere' }, /no context elsewhere; it has /],
    ['kubernetes_permission', { namespace: 'kube-system' }, /refuses to create a pod: pods is forbidden/],
    ['harness_start_failed', { rootOnlyDir: '/etc' }, /scripts could write to \/etc\/\.termination-log/],
  ] as const)('%s names the cause', async (code, more, message) => {
    const engine = kubernetesEngine({ ...options, ...more })
    await expect(engine.create(SPEC)).rejects.toMatchObject({ code, message: expect.stringMatching(message) as string })
    const report = await engine.report()
    expect([report.usable, report.reasons[0]?.code]).toEqual([false, code])
    await engine.close()
  })

  test.concurrent('a server that does not answer, and an invalid token, are told', async () => {
    const gone = changedConfig(options.kubeconfig, (text) => text.replace(/:\d+"/, ':1"'))
    const elsewhere = kubernetesEngine({ ...options, kubeconfig: gone })
    await expect(elsewhere.create(SPEC)).rejects.toMatchObject({ code: 'kubernetes_unreachable' })
    const expired = changedConfig(options.kubeconfig, (text) => text.replace(/"token":"[^"]{20}/, '"token":"'))
    const refused = kubernetesEngine({ ...options, kubeconfig: expired })
    await expect(refused.create(SPEC)).rejects.toMatchObject({
      code: 'kubernetes_permission',
      message: expect.stringContaining('the token or certificate is invalid or expired') as string,
    })
  })

  test.concurrent('a pod for which no node has room is refused with the reason', async () => {
    const engine = kubernetesEngine({ ...options, cpuRequest: 1000, startTimeoutMs: 3000 })
    const limits = { ...SPEC.limits, cpus: 1000 }
    await expect(engine.create({ limits })).rejects.toMatchObject({
      code: 'kubernetes_refused',
      message: expect.stringMatching(/Unschedulable.*Insufficient cpu/) as string,
    })
    await engine.close()
  })

  test.concurrent('a pod that may run on no node by its selector is refused with the reason', async () => {
    const engine = kubernetesEngine({
      ...options,
      nodeSelector: { 'sandglass.dev/none': 'such' },
      startTimeoutMs: 3000,
    })
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code: 'kubernetes_refused',
      message: expect.stringMatching(/Unschedulable.*node affinity\/selector/) as string,
    })
    await engine.close()
  })
})

/** The words that occur below SANDGLASS_TEST_KUBERNETES_LOGS: directories to which the node and its parts write, with colons between. */
function inLogsOfNode(words: readonly string[]): readonly string[] | undefined {
  const folders = (process.env['SANDGLASS_TEST_KUBERNETES_LOGS'] ?? '').split(':').filter((one) => one !== '')
  if (folders.length === 0) {
    console.warn('skipped: logs of the node: SANDGLASS_TEST_KUBERNETES_LOGS names no directory of this machine')
    return undefined
  }
  const texts = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map((one) => readFileSync(join(one.parentPath, one.name), 'latin1')),
  )
  return words.filter((word) => texts.some((text) => text.includes(word)))
}

/** What the command line prints. */
function output(args: readonly string[]): Promise<string> {
  return outputOf([MAIN, ...args])
}

async function outputOf(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (piece: Buffer) => (text += String(piece)))
  await once(child, 'close')
  return text
}
