import { describe, expect, test } from 'vitest'
import { kubernetesEngine } from '../../../../src/engines/kubernetes/index.ts'
import {
  heldLimits,
  placementOf,
  podOf,
  type PodPlan,
  relayCommand,
} from '../../../../src/engines/kubernetes/pod-spec.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'

const PLAN: PodPlan = {
  name: 'sandglass-1',
  image: 'python:3.12-slim',
  python: 'python3',
  runtimeClassName: undefined,
  placement: {},
  rootOnlyDir: '/root',
  cpuRequest: undefined,
  spec: { limits: sandboxLimits(resolveLimits()) },
  directories: [],
  uid: 1_000_002,
  marks: {
    labels: {},
    annotations: { 'sandglass.dev/owner': '1:2:3' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'host', uid: 'u-1' }],
    lease: 'sandglass-1',
  },
  programs: {
    sandbox: 'sandbox program',
    reach: 'reach',
    relay: 'relay program',
    unpack: 'unpack program',
    harness: new Uint8Array(),
  },
  gvisor: false,
  startSec: 60,
}

describe('the pod of a sandbox', () => {
  const { metadata, spec } = podOf(PLAN)
  const [sandbox, relay] = spec?.containers ?? []

  test('is as strict as the Pod Security level restricted, in each container', () => {
    expect(spec).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      activeDeadlineSeconds: 86_400,
      dnsPolicy: 'None',
    })
    expect(metadata?.annotations).toEqual(PLAN.marks.annotations)
    expect(metadata?.ownerReferences).toEqual(PLAN.marks.ownerReferences)
    for (const [container, uid] of [[sandbox, 1_000_002] as const, [relay, 1_000_003] as const]) {
      expect(container?.securityContext).toEqual({
        runAsUser: uid,
        runAsGroup: uid,
        runAsNonRoot: true,
        privileged: false,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(container?.terminationMessagePath).toBe('/root/.termination-log')
    }
  })

  test('runs where it is told to, with the secrets for its image', () => {
    const tolerations = [{ key: 'sandboxes', operator: 'Exists', effect: 'NoSchedule' }] as const
    const placement = placementOf({ imagePullSecrets: ['registry'], nodeSelector: { pool: 'sandboxes' }, tolerations })
    expect(podOf({ ...PLAN, placement }).spec).toMatchObject({
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { pool: 'sandboxes' },
      tolerations,
    })
    expect(Object.keys(spec ?? {})).not.toContain('nodeSelector')
  })

  test('has a size for each writable directory, and requests that equal its limits', () => {
    expect(sandbox?.volumeMounts?.map(({ mountPath, readOnly }) => [mountPath, readOnly])).toEqual([
      ['/workspace', false],
      ['/tmp', false],
      ['/var/tmp', false],
      ['/dev/shm', false],
      ['/dev/mqueue', true],
    ])
    expect(
      spec?.volumes?.every(({ emptyDir }) => emptyDir?.medium === 'Memory' && Number(emptyDir.sizeLimit) > 0),
    ).toBe(true)
    for (const container of [sandbox, relay]) {
      expect(container?.resources?.requests).toEqual(container?.resources?.limits)
    }
    const asked = podOf({ ...PLAN, cpuRequest: 0.05 }).spec?.containers[0]?.resources
    expect([asked?.requests?.['cpu'], asked?.limits?.['cpu']]).toEqual(['50m', '1000m'])
    expect(asked?.requests?.['memory']).toBe(asked?.limits?.['memory'])
  })

  test('has directories that are sent read-only in memory, which the container beside it fills and pays for', () => {
    const listing = { directory: '/here', entries: [], volumeBytes: 8192, memoryBytes: 12_288, fingerprint: '' }
    const sent = { name: 'packages', path: '/packages', listing } as const
    const claimed = { name: 'tools', path: '/tools', claimName: 'envs', subPath: 'a/b' } as const
    const pod = podOf({ ...PLAN, directories: [sent, claimed] }).spec
    const [own, beside] = pod?.containers ?? []
    expect(own?.volumeMounts?.slice(-2)).toEqual([
      { name: 'packages', mountPath: '/packages', readOnly: true },
      { name: 'tools', mountPath: '/tools', readOnly: true, subPath: 'a/b' },
    ])
    expect(pod?.volumes?.slice(-2)).toEqual([
      { name: 'packages', emptyDir: { medium: 'Memory', sizeLimit: '8192' } },
      { name: 'tools', persistentVolumeClaim: { claimName: 'envs', readOnly: true } },
    ])
    expect(beside?.volumeMounts).toEqual([{ name: 'packages', mountPath: '/packages' }])
    expect(Number(beside?.resources?.limits?.['memory']) - Number(relay?.resources?.limits?.['memory'])).toBe(12_288)
    expect(own?.resources).toEqual(sandbox?.resources)
    const burst = podOf({ ...PLAN, cpuRequest: 0.05, directories: [sent] }).spec?.containers[1]?.resources
    expect([burst?.requests?.['cpu'], burst?.limits?.['cpu'], beside?.resources?.limits?.['cpu']]).toEqual([
      '10m',
      '1000m',
      '200m',
    ])
    expect(beside?.resources?.requests).toEqual(beside?.resources?.limits)
    expect(JSON.parse(own?.args?.[0] ?? '')).toMatchObject({ import_paths: ['/packages'], tools: '/tools' })
    expect(JSON.parse(own?.args?.[1] ?? '')).toMatchObject({ volumes: { '/tools': '' } })
  })

  test('has directories of images read-only, of which the sandbox checks the path', () => {
    const packages = { name: 'packages', path: '/packages', image: 'envs:1', subPath: '' } as const
    const tools = { name: 'tools', path: '/tools', image: 'tools@sha256:0a', subPath: 'a/b' } as const
    const pod = podOf({ ...PLAN, directories: [packages, tools] }).spec
    const [own, beside] = pod?.containers ?? []
    expect(own?.volumeMounts?.slice(-2)).toEqual([
      { name: 'packages', mountPath: '/packages', readOnly: true },
      { name: 'tools', mountPath: '/tools', readOnly: true, subPath: 'a/b' },
    ])
    expect(pod?.volumes?.slice(-2)).toEqual([
      { name: 'packages', image: { reference: 'envs:1' } },
      { name: 'tools', image: { reference: 'tools@sha256:0a' } },
    ])
    expect(beside).toEqual(relay)
    expect(JSON.parse(own?.args?.[0] ?? '')).toMatchObject({ import_paths: ['/packages'], tools: '/tools' })
    expect(JSON.parse(own?.args?.[1] ?? '')).toMatchObject({ volumes: { '/packages': '', '/tools': 'a/b' } })
  })

  test('asks for a user namespace only where it is told to', () => {
    expect(Object.keys(spec ?? {})).not.toContain('hostUsers')
    for (const hostUsers of [true, false]) {
      expect(podOf({ ...PLAN, placement: placementOf({ hostUsers }) }).spec).toMatchObject({ hostUsers })
    }
  })

  test('tells neither container a secret', () => {
    expect(relayCommand(PLAN).slice(-5)).toEqual(['relay', 'sandglass-1', '1000002', '60', '30'])
    expect(JSON.parse(sandbox?.args?.[1] ?? '')).toMatchObject({ name: 'sandglass-1', uid: 1_000_003, start_sec: 60 })
  })
})

describe('a pod on gVisor', () => {
  const plan: PodPlan = { ...PLAN, gvisor: true }
  const [sandbox] = podOf(plan).spec?.containers ?? []
  test('seals its channel, and its containers identify each other by messages', () => {
    expect(JSON.parse(sandbox?.args?.[0] ?? '')).toMatchObject({ sealed: true })
    expect(JSON.parse(sandbox?.args?.[1] ?? '')).toMatchObject({ gvisor: true })
    expect(relayCommand(plan).slice(-2)).toEqual(['30', 'gvisor'])
    const [plain] = podOf(PLAN).spec?.containers ?? []
    expect(JSON.parse(plain?.args?.[0] ?? '')).toMatchObject({ sealed: false })
    expect(JSON.parse(plain?.args?.[1] ?? '')).toMatchObject({ gvisor: false })
  })

  test.each([[0.05], [0.3], [1], [2.5]])('has %d CPUs as a whole, and the memory of both containers', (cpus) => {
    const limits = { ...PLAN.spec.limits, cpus }
    const containers = podOf({ ...plan, spec: { limits } }).spec?.containers ?? []
    const sumOf = (name: string): number =>
      containers.reduce((sum, one) => sum + Number.parseInt(one.resources?.limits?.[name] ?? '', 10), 0)
    expect(sumOf('cpu')).toBe(cpus * 1000)
    expect(sumOf('memory')).toBe(limits.memoryBytes + (32 + 128 / 4 + 48) * 1024 * 1024)
    expect(heldLimits({ ...plan, spec: { limits } })).toEqual({ cpus, memoryBytes: sumOf('memory') })
    expect(heldLimits({ ...PLAN, spec: { limits } })).toBe(limits)
  })

  test('has /dev/shm by a path that gVisor does not replace', () => {
    expect(sandbox?.volumeMounts?.map(({ mountPath }) => mountPath)).toContain('/dev/shm/')
  })
})

describe('options', () => {
  test.each([
    [{ image: 'BAD NAME' }, 'kubernetes.image: must be the name of an image'],
    [{ namespace: '../x' }, 'kubernetes.namespace: must be the name of a namespace'],
    [{ runtimeClassName: 'a/b' }, 'kubernetes.runtimeClassName: must be the name of a RuntimeClass'],
    [{ rootOnlyDir: 'root' }, 'kubernetes.rootOnlyDir: must be an absolute path'],
    [{ imagePullSecrets: ['../x'] }, 'kubernetes.imagePullSecrets: must be a list of names of secrets'],
    [{ nodeSelector: { disk: 1 } }, 'kubernetes.nodeSelector: must be labels of nodes'],
    [{ tolerations: [{ keys: 'x' }] }, 'kubernetes.tolerations: must be a list of objects with key'],
    [{ volumeClaims: { envs: 'envs' } }, 'kubernetes.volumeClaims: must be names of claims by absolute paths'],
    [{ volumeClaims: { '/envs': '../x' } }, 'kubernetes.volumeClaims: must be names of claims'],
    [{ volumeImages: { envs: 'envs:1' } }, 'kubernetes.volumeImages: must be names of images by absolute paths'],
    [{ volumeImages: { '/envs': 'BAD NAME' } }, 'kubernetes.volumeImages: must be names of images'],
    [{ hostUsers: 'no' }, 'kubernetes.hostUsers: must be true or false, not "no"'],
    [{ cpuRequest: 0 }, 'kubernetes.cpuRequest: must be a number of CPUs from 0.01'],
    [{ startTimeoutMs: 0 }, 'kubernetes.startTimeoutMs: must be a number of milliseconds'],
    [{ context: '' }, 'kubernetes.context: must be the name of a context'],
    [{ imag: 'x' }, 'kubernetes.imag: unknown option. Did you mean "image"?'],
  ])('%j is refused', (options, message) => {
    expect(() => kubernetesEngine(options as object)).toThrow(message)
  })
})
