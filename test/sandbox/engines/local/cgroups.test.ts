import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { type CgroupHost, listGroups, findCgroups, GROUP_PARENT } from '../../../../src/engines/local/cgroup-host.ts'
import { groupMembers, makeCgroup, removeGroup } from '../../../../src/engines/local/cgroups.ts'
import type { SandboxLimits } from '../../../../src/sandbox/index.ts'
import { HostPlace, NEEDS_ROOT, ORDINARY } from './host-place.ts'

/*
 * Trees of plain files replace the kernel's. Writing to a plain `cgroup.subtree_control` replaces its content, which
 * does not happen in the kernel. Tests that depend on the difference search as a user who cannot write there.
 */

const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())
const LIMITS: SandboxLimits = { memoryBytes: 100 << 20, cpus: 0.5, pids: 32, diskBytes: 1 << 20 }
let trees = 0

/** Makes a tree with these files and, beside it, a file in place of /proc/self/cgroup. */
function tree(own: string, files: Readonly<Record<string, string>>): [root: string, self: string] {
  const base = place.directory(`tree-${(trees += 1)}`)
  const root = join(base, 'fs')
  mkdirSync(root)
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true, mode: 0o755 })
    if (name.endsWith('/')) mkdirSync(join(root, name), { recursive: true, mode: 0o777 })
    else writeFileSync(join(root, name), content, { mode: 0o444 })
  }
  writeFileSync(join(base, 'self'), own)
  return [root, join(base, 'self')]
}

function text(...path: string[]): string {
  return readFileSync(join(...path), 'utf8')
}

test('version 1: one parent for each controller, below the own group of each', () => {
  const own = '9:memory:/user.slice/me\n8:pids:/\n5:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n'
  const [root, self] = tree(own, { 'memory/user.slice/me/': '', 'pids/': '', 'cpu,cpuacct/': '' })
  expect(findCgroups(root, self)).toEqual({
    version: 1,
    enforces: ['memory', 'pids', 'cpu'],
    parents: [
      { path: join(root, 'memory/user.slice/me', GROUP_PARENT), controllers: ['memory'] },
      { path: join(root, 'pids', GROUP_PARENT), controllers: ['pids'] },
      { path: join(root, 'cpu,cpuacct', GROUP_PARENT), controllers: ['cpu'] },
    ],
    problems: [],
  })
})

test('version 1 in a container: the own group is mounted as the root of the tree', () => {
  const [root, self] = tree('3:memory:/docker/abc\n2:pids:/docker/abc\n1:cpu:/docker/abc\n', {
    'memory/': '',
    'pids/': '',
    'cpu/': '',
  })
  expect(findCgroups(root, self).parents.map(({ path }) => path)).toEqual(
    ['memory', 'pids', 'cpu'].map((name) => join(root, name, GROUP_PARENT)),
  )
})

test('version 1: reports missing controllers and uses the others', () => {
  const [root, self] = tree('2:pids:/\n1:cpu:/\n', { 'pids/': '' })
  const { version, enforces, problems } = findCgroups(root, self)
  expect({ version, enforces, problems }).toEqual({
    version: 1,
    enforces: ['pids'],
    problems: ['the control group controller memory is missing', 'the control group controller cpu is missing'],
  })
})

test('reports that there are no control groups', () => {
  const [root, self] = tree('', {})
  const want = { version: null, enforces: [], parents: [] }
  expect(findCgroups(root, self)).toMatchObject(want)
  expect(findCgroups('/no/such/root', '/no/such/self')).toMatchObject(want)
  expect(findCgroups(root, self).problems).toHaveLength(3)
})

test.skipIf(NEEDS_ROOT)('version 1: names the path of a tree that is not writable', () => {
  const [root, self] = tree('1:memory:/\n', { 'memory/x': '' })
  const [found] = place.run<CgroupHost>({ act: 'cgroups', cgroups: [root, self] }, { uid: ORDINARY })
  expect(found).toMatchObject({ version: null, enforces: [], parents: [] })
  expect(found?.problems[0]).toBe(`${join(root, 'memory', GROUP_PARENT)} cannot be created: EACCES`)
})

const V2_CONTROLLERS = 'cpuset cpu io memory pids'

test.skipIf(NEEDS_ROOT)('version 2: the nearest group upwards that passes controllers on', () => {
  const [root, self] = tree('0::/user.slice/session.scope\n', {
    'cgroup.controllers': V2_CONTROLLERS,
    'cgroup.subtree_control': V2_CONTROLLERS,
    'user.slice/cgroup.controllers': V2_CONTROLLERS,
    'user.slice/cgroup.subtree_control': 'memory pids',
    [`user.slice/${GROUP_PARENT}/`]: '',
    [`user.slice/${GROUP_PARENT}/cgroup.controllers`]: 'memory pids',
    [`user.slice/${GROUP_PARENT}/cgroup.subtree_control`]: 'memory pids',
    'user.slice/session.scope/cgroup.controllers': 'memory pids',
    'user.slice/session.scope/cgroup.subtree_control': '',
  })
  chmodSync(join(root, 'user.slice', GROUP_PARENT), 0o777)
  const [found] = place.run<CgroupHost>({ act: 'cgroups', cgroups: [root, self] }, { uid: ORDINARY })
  expect(found).toEqual({
    version: 2,
    enforces: ['memory', 'pids'],
    parents: [{ path: join(root, 'user.slice', GROUP_PARENT), controllers: ['memory', 'pids'] }],
    problems: [],
  })
})

test.skipIf(NEEDS_ROOT)('version 2: reports missing delegation, and enforces nothing', () => {
  const [root, self] = tree('0::/user.slice\n', {
    'cgroup.controllers': V2_CONTROLLERS,
    'cgroup.subtree_control': V2_CONTROLLERS,
    'user.slice/cgroup.controllers': V2_CONTROLLERS,
    'user.slice/cgroup.subtree_control': '',
  })
  const [found] = place.run<CgroupHost>({ act: 'cgroups', cgroups: [root, self] }, { uid: ORDINARY })
  expect(found).toMatchObject({ version: null, enforces: [], parents: [] })
  expect(found?.problems[0]).toBe(`${join(root, GROUP_PARENT)} cannot be created: EACCES`)
})

test('a group of version 2 gets its limits, its members and its count of kills', async () => {
  const parent = place.directory('v2-parent')
  const host: CgroupHost = {
    version: 2,
    enforces: ['memory', 'pids', 'cpu'],
    parents: [{ path: parent, controllers: ['memory', 'pids', 'cpu'] }],
    problems: [],
  }
  const group = makeCgroup(host, 'sg-1', LIMITS)
  const path = join(parent, 'sg-1')
  expect(group.paths).toEqual([path])
  expect([text(path, 'memory.max'), text(path, 'pids.max'), text(path, 'cpu.max')]).toEqual([
    String(100 << 20),
    '32',
    '50000 100000',
  ])
  expect(existsSync(join(path, 'memory.swap.max'))).toBe(false) // written only if the kernel provides it
  await group.add(4711)
  expect(groupMembers(path)).toEqual([4711])
  expect(listGroups(host)).toEqual([path])
})

test('groups of version 1 get their limits in the files of that version', async () => {
  const parents = ['memory', 'pids', 'cpu'].map((name) => ({
    path: place.directory(`v1-${name}`),
    controllers: [name],
  }))
  const host: CgroupHost = { version: 1, enforces: ['memory', 'pids', 'cpu'], parents, problems: [] }
  const group = makeCgroup(host, 'sg-2', { ...LIMITS, cpus: 2.5 })
  const [memory = '', pids = '', cpu = ''] = group.paths
  expect(group.paths).toEqual(parents.map(({ path }) => join(path, 'sg-2')))
  expect([
    text(memory, 'memory.limit_in_bytes'),
    text(pids, 'pids.max'),
    text(cpu, 'cpu.cfs_period_us'),
    text(cpu, 'cpu.cfs_quota_us'),
  ]).toEqual([String(100 << 20), '32', '100000', '250000'])
  await group.add(4711)
  expect(group.paths.map(groupMembers)).toEqual([[4711], [4711], [4711]])
})

test.each([
  { version: 2, file: 'cpu.max', limited: '50000 100000', lifted: 'max 100000' },
  { version: 1, file: 'cpu.cfs_quota_us', limited: '50000', lifted: '-1' },
] as const)(
  'the CPU limit of version $version is restored when the last lift ends',
  async ({ version, file, limited, lifted }) => {
    const path = place.directory(`lifted-v${version}`)
    const host: CgroupHost = { version, enforces: ['cpu'], parents: [{ path, controllers: ['cpu'] }], problems: [] }
    const group = makeCgroup(host, 'sg-4', LIMITS)
    const now = (): string => text(path, 'sg-4', file)
    expect(now()).toBe(limited)
    const first = group.cpu.lift()
    const second = group.cpu.lift()
    await first[Symbol.asyncDispose]()
    await first[Symbol.asyncDispose]()
    expect(now()).toBe(lifted)
    await second[Symbol.asyncDispose]()
    expect(now()).toBe(limited)
    const third = group.cpu.lift()
    await setImmediate()
    rmSync(join(path, 'sg-4', file))
    mkdirSync(join(path, 'sg-4', file)) // a directory in place of the file makes it unwritable
    await expect(Promise.resolve(third[Symbol.asyncDispose]())).rejects.toThrow('EISDIR')
    await expect(group.cpu.lower(0.25)).rejects.toThrow('EISDIR')
    rmSync(join(path, 'sg-4'), { recursive: true })
    await group.cpu.lift()[Symbol.asyncDispose]()
    await group.cpu.lower(0.25)
    expect(existsSync(join(path, 'sg-4'))).toBe(false)
  },
)

test('lifting does nothing for a group without a CPU limit', async () => {
  const path = place.directory('no-cpu')
  const host: CgroupHost = { version: 2, enforces: ['pids'], parents: [{ path, controllers: ['pids'] }], problems: [] }
  const group = makeCgroup(host, 'sg-5', LIMITS)
  await group.cpu.lift()[Symbol.asyncDispose]()
  expect(readdirSync(join(path, 'sg-5'))).toEqual(['pids.max'])
})

test('a group that cannot be made leaves nothing behind', () => {
  const good = place.directory('half-good')
  const file = join(good, '../a-file')
  writeFileSync(file, '')
  const host: CgroupHost = {
    version: 1,
    enforces: ['memory'],
    parents: [
      { path: good, controllers: [] },
      { path: join(file, 'parent'), controllers: ['pids'] },
    ],
    problems: [],
  }
  expect(() => makeCgroup(host, 'sg-3', LIMITS)).toThrow(`${file} is not a directory`)
  expect(listGroups({ ...host, parents: [{ path: good, controllers: [] }] })).toEqual([])
})

test('a missing group counts as removed, a group in use does not', () => {
  const parent = place.directory('removal')
  expect(removeGroup(join(parent, 'gone'))).toBe(true)
  mkdirSync(join(parent, 'busy/inner'), { recursive: true })
  expect(removeGroup(join(parent, 'busy'))).toBe(false)
  expect([removeGroup(join(parent, 'busy/inner')), removeGroup(join(parent, 'busy'))]).toEqual([true, true])
  expect(groupMembers(join(parent, 'gone'))).toEqual([])
})
