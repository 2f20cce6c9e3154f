import { randomUUID } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kubernetesEngine } from '../../src/engines/kubernetes/index.ts'
import { createSandglass, type Sandglass } from '../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { noUv } from '../support/environments/fixture.ts'
import { importOn } from '../support/environments/on-engine.ts'
import { NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'
import { skipFor } from '../support/required.ts'

const { skip, options, admin } = await requireCluster()
if (noUv !== undefined) skipFor('uv', noUv)
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const MIB = 1024 * 1024
const DATA_MIB = 96

let folder: string
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sandglass-packages-'))))
afterAll(async () => {
  rmSync(folder, { recursive: true })
  expect(await podsOf(admin)).toEqual([])
})

function directory(name: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  const path = join(folder, name)
  mkdirSync(path)
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content)
  return path
}

/** Tries to change everything, and tells what is there, with all that could carry data to the next run. */
const ATTACK = `
import errno, mmap, os
import sg_demo

def state(root):
    found = {}
    for above, directories, files in os.walk(root):
        for path in [above, *(os.path.join(above, name) for name in files)]:
            s = os.lstat(path)
            found[path] = [s.st_mode, s.st_size, s.st_nlink, *map(str, (s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns)), os.listxattr(path)]
    return found

refusals = set()
for root, name in (('/packages', 'sg_demo.py'), ('/tools', 'sg_tool.py')):
    path, other = os.path.join(root, name), os.path.join(root, 'other')
    for attempt in (
        lambda: open(path, 'w'), lambda: open(path, 'r+'), lambda: open(other, 'w'), lambda: os.mkdir(other),
        lambda: os.chmod(path, 0o666), lambda: os.chmod(root, 0o777), lambda: os.utime(path), lambda: os.utime(root),
        lambda: os.rename(path, other), lambda: os.remove(path), lambda: os.link(path, other), lambda: os.symlink('x', other),
        lambda: os.mkfifo(other), lambda: os.truncate(path, 0), lambda: os.setxattr(path, 'user.x', b'1'),
        lambda: os.chown(path, os.getuid(), -1),
    ):
        try:
            attempt()
            refusals.add('none')
        except OSError as error:
            refusals.add(errno.errorcode[error.errno])
with open('/packages/data.bin', 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    total = sum(len(data[at : at + 65536]) for at in range(0, len(data), 65536))
emit_result({'value': sg_demo.VALUE, 'tool': sg_answer(), 'refusals': sorted(refusals), 'total': total,
             'files': sorted(os.listdir('/packages')), 'state': [state('/packages'), state('/tools')]})
`

describe.skipIf(skip)('directories of the host in pods', () => {
  let sg: Sandglass
  let packages: string
  beforeAll(async () => {
    packages = directory('packages', {
      'sg_demo.py': 'VALUE = 7\n',
      'data.bin': Buffer.alloc(DATA_MIB * MIB),
      secret: 'x',
    })
    // The modes of the host are no second defence.
    chmodSync(join(packages, 'sg_demo.py'), 0o666)
    chmodSync(join(packages, 'secret'), 0o600)
    const toolsDir = directory('tools', { 'sg_tool.py': 'def sg_answer(): return 42\n' })
    const limits = { memoryBytes: 128 * MIB }
    sg = await createSandglass({ engine: 'kubernetes', kubernetes: options, poolSize: 1, limits, packages, toolsDir })
  }, 60_000)
  afterAll(() => sg.close())

  test('scripts import from them and change nothing, and a run sees nothing of the one before', async () => {
    const first = await sg.run(ATTACK)
    expect(first.error).toBeNull()
    expect(first.finalData).toMatchObject({
      value: 7,
      tool: 42,
      refusals: ['EACCES', 'EROFS'], // the first by the owner of the files, where the kernel looks at that first
      total: DATA_MIB * MIB,
      files: ['data.bin', 'sg_demo.py'],
    })
    const second = await sg.run(ATTACK)
    expect(second.sandbox).toMatchObject({ id: first.sandbox?.id, use: 2 })
    expect(second.finalData).toEqual(first.finalData)
  })

  test('they take memory that the pod reserves, beside the limit of the sandbox, as the report says', async () => {
    const { sandbox } = await sg.run('pass')
    const pod = await admin.readNamespacedPod({ name: sandbox?.id ?? '', namespace: NAMESPACE })
    const memory = pod.spec?.containers.map(({ resources }) => Number(resources?.requests?.['memory']) / MIB)
    expect(memory?.[0]).toBe(128)
    expect(memory?.[1]).toBeGreaterThan(48 + DATA_MIB)
    expect(memory?.[1]).toBeLessThan(49 + DATA_MIB)
    const { probes } = await sg.report()
    expect(probes['packages_in_memory']).toContainEqual(expect.stringMatching(`^${packages}: \\d+ bytes$`))
    expect(sg.stats().idleBytes).toBeGreaterThan(DATA_MIB * MIB)
  })

  test('one that does not exist is refused before a pod starts', async () => {
    const engine = kubernetesEngine(options)
    await expect(engine.create({ ...SPEC, packages: '/no/such' })).rejects.toMatchObject({
      code: 'packages_unreadable',
    })
    await engine.close()
  })

  test.skipIf(noUv !== undefined)('declared packages are imported, with byte code', { timeout: 120_000 }, async () => {
    await expect(importOn({ engine: 'kubernetes', kubernetes: options })).resolves.toBeUndefined()
  })
})

describe.skipIf(skip)('images as volumes', () => {
  const image = options.image ?? 'python:3.12-slim'
  const kubernetes = { ...options, volumeImages: { '/image': image } }
  /** The refusal of a cluster without image volumes. */
  let refusal: (Error & { readonly code?: unknown }) | undefined
  beforeAll(async () => {
    const engine = kubernetesEngine(kubernetes)
    const sandbox = await engine.create({ ...SPEC, packages: '/image' }).catch((error: Error) => void (refusal = error))
    await sandbox?.destroy()
    await engine.close()
  }, 60_000)

  test('scripts import from an image and change nothing in it', async ({ skip: skipTest }) => {
    if (refusal !== undefined) skipTest(`the cluster has no image volumes: ${refusal.message}`)
    await using sg = await createSandglass({ engine: 'kubernetes', kubernetes, packages: '/image', poolSize: 0 })
    const result = await sg.run(`
import errno, os, usr
try:
    open('/packages/other', 'w')
except OSError as error:
    emit_result({'from': list(usr.__path__), 'refused': errno.errorcode[error.errno], 'programs': os.path.isdir('/packages/usr/bin')})
`)
    expect(result.error).toBeNull()
    expect(result.finalData).toEqual({ from: ['/packages/usr'], refused: 'EROFS', programs: true })
  })

  test('a part of an image is mounted, or the runtime that cannot is told', async ({ skip: skipTest }) => {
    if (refusal !== undefined) skipTest(`the cluster has no image volumes: ${refusal.message}`)
    const engine = kubernetesEngine(kubernetes)
    const made = await engine.create({ ...SPEC, packages: '/image/usr/bin' }).catch((error: Error) => error)
    await engine.close()
    if (!(made instanceof Error)) return made.destroy()
    expect(made).toMatchObject({
      code: 'packages_unreadable',
      message: expect.stringContaining(`${image} (usr/bin): /packages: the volume has the whole image there`) as string,
    })
  })

  test('an image that the nodes cannot pull is told by its name', async ({ skip: skipTest }) => {
    if (refusal !== undefined) skipTest(`the cluster has no image volumes: ${refusal.message}`)
    const engine = kubernetesEngine({ ...options, volumeImages: { '/image': 'sandglass.invalid/none:1' } })
    await expect(engine.create({ ...SPEC, packages: '/image' })).rejects.toMatchObject({
      code: 'image_missing',
      message: expect.stringContaining('the image sandglass.invalid/none:1: ') as string,
    })
    await engine.close()
  })

  test('a cluster without them refuses, and names what it lacks', ({ skip: skipTest }) => {
    if (refusal === undefined) skipTest('the cluster has image volumes')
    const lacks = /volumeImages needs (Kubernetes 1\.35, or from 1\.31 on the feature gate ImageVolume|containerd 2\.1)/
    expect(refusal).toMatchObject({ message: expect.stringMatching(lacks) as string })
  })
})

describe.skipIf(skip)('volume claims', () => {
  const claim = `sandglass-test-${randomUUID().slice(0, 8)}`
  const isElsewhere = (process.env['SANDGLASS_TEST_KUBERNETES_BRIDGE'] ?? '') === ''
  if (!skip && isElsewhere) console.warn('skipped: directories of a claim: no node is known to be this machine')
  const kubernetes = { ...options, volumeClaims: { [tmpdir()]: claim } }

  beforeAll(async () => {
    if (isElsewhere) return
    const shared = { accessModes: ['ReadOnlyMany'], storageClassName: '' }
    const claimRef = { kind: 'PersistentVolumeClaim', namespace: NAMESPACE, name: claim }
    const volume = { ...shared, capacity: { storage: '1Gi' }, hostPath: { path: tmpdir() }, claimRef }
    await admin.createPersistentVolume({ body: { metadata: { name: claim }, spec: volume } })
    const spec = { ...shared, volumeName: claim, resources: { requests: { storage: '1Gi' } } }
    await admin.createNamespacedPersistentVolumeClaim({
      namespace: NAMESPACE,
      body: { metadata: { name: claim }, spec },
    })
  })
  afterAll(async () => {
    if (isElsewhere) return
    await admin.deleteNamespacedPersistentVolumeClaim({ name: claim, namespace: NAMESPACE })
    await admin.deletePersistentVolume({ name: claim })
  })

  test.skipIf(isElsewhere || noUv !== undefined)(
    'environments are mounted from a claim that has the cache, and not sent',
    { timeout: 120_000 },
    async () => {
      await expect(importOn({ engine: 'kubernetes', kubernetes })).resolves.toBeUndefined()
    },
  )

  test.skipIf(isElsewhere)('a directory is read-only, and one that the claim does not have is told', async () => {
    const engine = kubernetesEngine(kubernetes)
    const tools = directory('claimed', { 'sg_tool.py': 'def sg_answer(): return 42\n' })
    {
      await using sandbox = await engine.create({ ...SPEC, toolsDir: tools })
      expect(sandbox.ready.tools).toEqual({ loaded: ['sg_tool.py'], failed: [] })
      const pod = await admin.readNamespacedPod({ name: sandbox.id, namespace: NAMESPACE })
      const mount = pod.spec?.containers[0]?.volumeMounts?.find(({ name }) => name === 'tools')
      expect(mount).toMatchObject({ readOnly: true, subPath: tools.slice(tmpdir().length + 1) })
      expect(pod.spec?.containers[1]?.volumeMounts ?? []).toEqual([])
    }
    await expect(engine.create({ ...SPEC, packages: join(folder, 'missing') })).rejects.toMatchObject({
      code: 'packages_unreadable',
      message: expect.stringContaining(`${claim} (`) as string,
    })
    await engine.close()
  })

  test('a claim that does not exist is told in the words of Kubernetes', async () => {
    const engine = kubernetesEngine({ ...options, volumeClaims: { '/envs': 'none-such' }, startTimeoutMs: 3000 })
    await expect(engine.create({ ...SPEC, packages: '/envs/a' })).rejects.toMatchObject({
      code: 'kubernetes_refused',
      message: expect.stringContaining('persistentvolumeclaim "none-such" not found') as string,
    })
    await engine.close()
  })
})
