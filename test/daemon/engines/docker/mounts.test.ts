import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { dockerEngine, type DockerEngineOptions } from '../../../../src/engines/docker/index.ts'
import {
  checkMounts,
  translatePath,
  type MountRules,
  checkSpecDirectories,
} from '../../../../src/engines/docker/mounts.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { docker } from '../../../support/containers.ts'
import { findLeftContainers } from './own-containers.ts'
import { scopedDirectory } from '../../../support/engines/docker/scoped-directory.ts'

const { skip, image } = await requireDockerEngine()
const place = scopedDirectory()
const at = (name: string): string => join(place.path, name)
beforeAll(() => {
  mkdirSync(at('data/below'), { recursive: true })
  mkdirSync(at('data-of-others'))
  mkdirSync(at('packages'))
  writeFileSync(at('data/below/file.txt'), 'read me\n')
  writeFileSync(at('packages/sg_mounted.py'), 'VALUE = 42\n')
  symlinkSync(at('data-of-others'), at('data/outward'))
  symlinkSync(at('data'), at('link'))
  symlinkSync('/var/run/docker.sock', at('data/harmless.txt'))
})
afterAll(() => place[Symbol.dispose]())

const LOCAL: MountRules = { remote: false, address: 'unix:///var/run/docker.sock' }
const REMOTE: MountRules = { remote: true, address: 'tcp://far.example:2376' }

async function mount(rules: Partial<MountRules>, source: string, target = '/data'): Promise<unknown> {
  return checkMounts({ ...LOCAL, allowHostPaths: [place.path], ...rules, resources: [{ source, target }] })
}

describe('a path as the daemon names it', () => {
  test.each<[string, string, Record<string, string>]>([
    ['/app/data', '/app/data', {}],
    ['/srv/app/data', '/app/data', { '/app': '/srv/app' }],
    ['/srv/app', '/app', { '/app': '/srv/app' }],
    ['/application', '/application', { '/app': '/srv/app' }],
    ['/fast/x', '/app/data/x', { '/': '/host', '/app/data': '/fast', '/app': '/srv' }],
    ['/srv/other', '/app/other', { '/': '/host', '/app/data': '/fast', '/app': '/srv' }],
    ['/host/etc', '/etc', { '/': '/host', '/app': '/srv' }],
    ['/a/b', '/a/b', { '/': '/' }],
    ['/srv/app/data', '/app/data', { '/app/': '/srv/app/' }],
    ['/data', '/app/data', { '/app': '/' }],
    ['/', '/app', { '/app': '/' }],
  ])('is %s for %s with the map %#', (expected, path, map) => {
    expect(translatePath(path, map)).toBe(expected)
  })
})

describe('a resource is mounted', () => {
  test('below an allowed path', async () => {
    expect(await mount({}, at('data'))).toEqual([{ source: at('data'), target: '/data' }])
    expect(await mount({}, at('data/below/file.txt'), '/data/file.txt')).toEqual([
      { source: at('data/below/file.txt'), target: '/data/file.txt' },
    ])
  })

  test('at an allowed path, through links on both sides', async () => {
    expect(await mount({ allowHostPaths: [at('link')] }, at('link/below'))).toEqual([
      { source: at('data/below'), target: '/data' },
    ])
  })

  test('at a target whose path is normalized', async () => {
    expect(await mount({}, at('data'), '/data/../other/./')).toEqual([{ source: at('data'), target: '/other' }])
  })

  test('from where the daemon sees it', async () => {
    const hostPathMap = { '/tmp': '/mnt/tmp', [place.path]: '/srv/place' }
    expect(await mount({ hostPathMap }, at('data'))).toEqual([{ source: '/srv/place/data', target: '/data' }])
    expect(await mount({ ...REMOTE, hostPathMap }, at('data'))).toEqual([
      { source: '/srv/place/data', target: '/data' },
    ])
  })
})

describe('a resource is refused', () => {
  const refusal = (rules: Partial<MountRules>, source: string, target: string, message: RegExp): Promise<void> =>
    expect(mount(rules, source, target)).rejects.toMatchObject({
      code: 'mount_refused',
      message: expect.stringMatching(message) as string,
    })

  test('outside every allowed path, and when no path is allowed', async () => {
    await refusal(
      { allowHostPaths: [at('data')] },
      at('data-of-others'),
      '/data',
      /is not below any path of allowHostPaths/,
    )
    await refusal({ allowHostPaths: [] }, at('data'), '/data', /is not below any path of allowHostPaths/)
    await refusal({ allowHostPaths: [at('data')] }, at('data/../data-of-others'), '/data', /is not below any path/)
  })

  test('when a link leads out of the allowed path', () =>
    refusal(
      { allowHostPaths: [at('data')] },
      at('data/outward'),
      '/data',
      /outward \(.*data-of-others\) is not below any path/,
    ))

  test('at the target of another resource', () =>
    expect(
      checkMounts({
        ...LOCAL,
        allowHostPaths: [place.path],
        resources: [
          { source: at('data'), target: '/data' },
          { source: at('data-of-others'), target: '/data/' },
        ],
      }),
    ).rejects.toMatchObject({
      code: 'mount_refused',
      message: 'docker.resources: /data is the target of more than one resource; give each a target of its own',
    }))

  test('when a link leads to the socket of the daemon', () =>
    refusal(
      { allowHostPaths: ['/'] },
      at('data/harmless.txt'),
      '/data',
      /would give scripts access to the host|cannot be read/,
    ))

  test.each(['/', '/proc', '/proc/self', '/sys/fs', '/dev', '/dev/null', '/run', '/var', '/var/lib', '/etc/../proc'])(
    'when it is %s, even if it is allowed',
    (source) =>
      refusal({ allowHostPaths: ['/'] }, source, '/data', /would give scripts access to the host; it is never mounted/),
  )

  test('when it is a socket, or contains the socket of the daemon in use', async () => {
    const server = createServer().listen(at('data/below/own.sock'))
    await once(server, 'listening')
    try {
      await refusal({}, at('data/below/own.sock'), '/data', /would give scripts access to the host/)
      await refusal(
        { address: `unix://${at('data/below/own.sock')}` },
        at('data'),
        '/data',
        /would give scripts access to the host/,
      )
    } finally {
      server.close()
    }
  })

  test('when it does not exist, or its path is not absolute', async () => {
    await refusal({}, at('nothing'), '/data', /nothing cannot be read: ENOENT/)
    await refusal({}, 'data', '/data', /must be absolute paths/)
    await refusal({}, at('data'), 'data', /must be absolute paths/)
  })

  test.each([
    '/',
    '/proc/x',
    '/sys',
    '/dev/shm',
    '/etc',
    '/usr',
    '/bin',
    '/lib',
    '/tmp',
    '/tmp/x',
    '/var',
    '/var/tmp',
    '/run',
    '/workspace',
    '/workspace/data',
    '/packages',
    '/tools/x',
    '/sandglass',
    '/data/../tmp/x',
  ])('at %s, which belongs to the sandbox', (target) =>
    refusal({}, at('data'), target, /belongs to the sandbox itself; choose another target/),
  )

  test('when the daemon may be on another machine and no map says where it is there', () =>
    refusal(
      REMOTE,
      at('data'),
      '/data',
      /is a path of this machine, and the daemon at tcp:.* map the path with hostPathMap/,
    ))
})

describe('the directories of a spec', () => {
  const SPEC = { limits: sandboxLimits(resolveLimits()) }

  test('are found through links, as the daemon sees them', async () => {
    const rules = { ...LOCAL, hostPathMap: { [place.path]: '/srv' } }
    expect(
      await checkSpecDirectories({ ...SPEC, packages: at('link/below'), toolsDir: at('packages') }, rules),
    ).toEqual({
      packages: '/srv/data/below',
      toolsDir: '/srv/packages',
    })
    expect(await checkSpecDirectories(SPEC, rules)).toEqual({ packages: undefined, toolsDir: undefined })
  })

  test('are refused with the name of the option when they cannot be used', async () => {
    using shut = scopedDirectory()
    chmodSync(shut.path, 0o700)
    const unreadable = (given: object, message: RegExp): Promise<void> =>
      expect(checkSpecDirectories({ ...SPEC, ...given }, LOCAL)).rejects.toMatchObject({
        code: 'packages_unreadable',
        message: expect.stringMatching(message) as string,
      })
    await unreadable({ packages: at('nothing') }, /^packages: .*nothing cannot be read: ENOENT/)
    await unreadable({ toolsDir: at('data/below/file.txt') }, /^toolsDir: .*file\.txt is not a directory/)
    await unreadable({ packages: shut.path }, /^packages: .* is closed to other users: chmod o\+rx/)
  })

  test('of this machine are refused for a daemon that may be on another one', async () => {
    const expectRefusal = (given: object, name: RegExp): Promise<void> =>
      expect(checkSpecDirectories({ ...SPEC, ...given }, REMOTE)).rejects.toMatchObject({
        code: 'mount_refused',
        message: expect.stringMatching(name) as string,
      })
    await expectRefusal({ packages: at('packages') }, /^packages: .*hostPathMap/)
    await expectRefusal({ toolsDir: at('packages') }, /^toolsDir: .*hostPathMap/)
  })
})

describe.skipIf(skip)('a container', () => {
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  test('has its resources and packages, and cannot write to them', async () => {
    const options: DockerEngineOptions = {
      image,
      resources: [{ source: at('data'), target: '/data' }],
      allowHostPaths: [place.path],
    }
    await using sandglass = await createSandglass({
      engine: dockerEngine(options),
      packages: at('packages'),
      poolSize: 1,
    })
    const { finalData, sandbox } = await sandglass.run(`import os, sg_mounted
def tried(path):
    try:
        open(path, 'w')
    except OSError as error:
        return os.strerror(error.errno)
emit_result([open('/data/below/file.txt').read(), sg_mounted.VALUE, tried('/data/new'), tried('/packages/new'),
    [line.split()[5].split(',')[0] for line in open('/proc/self/mountinfo') if line.split()[4] in ('/data', '/packages')]])`)
    const READ_ONLY = 'Read-only file system'
    expect(finalData).toEqual(['read me\n', 42, READ_ONLY, READ_ONLY, ['ro', 'ro']])
    const shown = JSON.parse(docker(undefined, 'inspect', '--format', '{{json .Mounts}}', sandbox.id)) as object[]
    expect(shown).toHaveLength(2)
    expect(shown).toMatchObject([
      { Type: 'bind', RW: false, Propagation: 'rprivate' },
      { Type: 'bind', RW: false, Propagation: 'rprivate' },
    ])
  })

  test("reads the daemon's directory behind hostPathMap", async () => {
    // The host and the daemon use different paths for the same files, as from within a container.
    const [here, there] = [at('host-sees'), at('daemon-sees')]
    for (const [path, text] of [
      [here, 'not this one\n'],
      [there, 'the daemon has this one\n'],
    ] as const) {
      mkdirSync(join(path, 'data'), { recursive: true })
      writeFileSync(join(path, 'data/file.txt'), text)
    }
    const engine = dockerEngine({
      image,
      resources: [{ source: join(here, 'data'), target: '/data' }],
      allowHostPaths: [here],
      hostPathMap: { [here]: there },
    })
    await using sandglass = await createSandglass({ engine, packages: join(here, 'data'), poolSize: 1 })
    const script = 'emit_result([open(path).read() for path in ("/data/file.txt", "/packages/file.txt")])'
    expect((await sandglass.run(script)).finalData).toEqual(['the daemon has this one\n', 'the daemon has this one\n'])
    await sandglass.close()
    await engine.close()
  })

  test('is refused by a daemon that does not have the directory, with the remedy', async () => {
    const engine = dockerEngine({ image, hostPathMap: { [realpathSync(place.path)]: '/no/such/place' } })
    await expect(
      engine.create({ limits: sandboxLimits(resolveLimits()), packages: at('packages') }),
    ).rejects.toMatchObject({
      code: 'mount_refused',
      message: expect.stringMatching(
        /bind source path does not exist: \/no\/such\/place\/packages.*hostPathMap/,
      ) as string,
    })
    await engine.close()
  })
})
