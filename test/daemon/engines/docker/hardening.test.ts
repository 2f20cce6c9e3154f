import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { createSandglass, type Sandglass } from '../../../../src/sandglass.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { docker, wordsOf } from '../../../support/containers.ts'
import { findLeftContainers } from './own-containers.ts'
import { TestImages } from './test-images.ts'

const { skip, image } = await requireDockerEngine()
const MiB = 1024 * 1024

interface ContainerDetails {
  readonly HostConfig: Readonly<Record<string, unknown>> & {
    readonly Tmpfs: Readonly<Record<string, string>>
    readonly Mounts: readonly unknown[] | null
  }
  readonly Config: Readonly<Record<string, unknown>> & {
    readonly User: string
    readonly Labels: Record<string, string>
  }
  readonly Mounts: readonly unknown[]
  readonly AppArmorProfile: string
}

function inspect(name: string): ContainerDetails {
  return (JSON.parse(docker(undefined, 'inspect', name)) as [ContainerDetails])[0]
}

describe.skipIf(skip)('a container of the pool', () => {
  using images = new TestImages()
  afterAll(() => images[Symbol.dispose]())
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  test('HA-11, FLT-031: docker inspect shows every hardening option', async () => {
    await using sandglass = await createSandglass({
      engine: dockerEngine({ image }),
      poolSize: 1,
      limits: { memoryBytes: 256 * MiB, cpus: 0.5, pids: 64, diskBytes: 32 * MiB },
    })
    const { sandbox } = await sandglass.run('emit_result(1)')
    const { HostConfig, Config, Mounts } = inspect(sandbox.id)
    expect(HostConfig).toMatchObject({
      Privileged: false,
      CapDrop: ['ALL'],
      CapAdd: null,
      SecurityOpt: ['no-new-privileges:true'],
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      IpcMode: 'private',
      PidMode: '',
      UTSMode: '',
      UsernsMode: '',
      PidsLimit: 64,
      Memory: 256 * MiB,
      MemorySwap: 256 * MiB,
      NanoCpus: 5e8,
      Binds: null,
      DeviceRequests: null,
      VolumesFrom: null,
      GroupAdd: null,
      LogConfig: { Type: 'none', Config: {} },
      ShmSize: 8 * MiB,
      AutoRemove: true,
      OomKillDisable: false,
      // On purpose: the broker is PID 1, where no signal of a script has an effect.
      Init: false,
    })
    expect(HostConfig['Ulimits']).toEqual([
      { Name: 'core', Hard: 0, Soft: 0 },
      { Name: 'nofile', Hard: 4096, Soft: 1024 },
    ])
    // Empty, in any notation of this Docker version.
    expect([HostConfig['Devices'] ?? [], HostConfig['PortBindings'] ?? {}]).toEqual([[], {}])
    expect([HostConfig.Mounts ?? [], Mounts]).toEqual([[], []])
    expect(Object.keys(HostConfig.Tmpfs).toSorted()).toEqual([
      '/dev/mqueue',
      '/dev/shm',
      '/tmp',
      '/var/tmp',
      '/workspace',
    ])
    for (const options of Object.values(HostConfig.Tmpfs)) {
      expect(options.split(',')).toEqual(
        expect.arrayContaining(['nosuid', 'nodev', expect.stringMatching(/^size=\d+$/)]),
      )
    }
    expect(Config).toMatchObject({
      User: expect.stringMatching(/^[1-9]\d+:[1-9]\d+$/) as string,
      Env: [expect.stringMatching(/^PATH=\/usr\/local\/s?bin:/) as string],
      Tty: false,
      StdinOnce: true,
      Healthcheck: { Test: ['NONE'] },
    })
    expect(Config.Labels).toMatchObject({
      'sandglass.sandbox': sandbox.id,
      'sandglass.owner': expect.stringMatching(new RegExp(`^\\d+:${process.pid}:\\d+$`)) as string,
      'sandglass.engine-id': expect.stringMatching(/^[\da-f-]{36}$/) as string,
      'sandglass.boot-id': expect.stringMatching(/^[\da-f-]{36}$/) as string,
      'sandglass.created': expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    })
  })

  test('has a uid of its own', async () => {
    const engine = dockerEngine({ image })
    await using sandglass = await createSandglass({ engine, poolSize: 0, maxOverflow: 4 })
    const script = 'import os\nemit_result([os.getuid(), os.getgid(), os.getgroups()])'
    const results = await Promise.all(Array.from({ length: 4 }, () => sandglass.run(script)))
    const ids = results.map(({ finalData }) => finalData as [number, number, number[]])
    expect(new Set(ids.map(([uid]) => uid)).size).toBe(4)
    for (const [uid, gid, groups] of ids) {
      expect([gid, groups.filter((group) => group !== gid)]).toEqual([uid, []])
      expect(uid).toBeGreaterThan(65_535)
    }
  })

  test('shows no secret in docker inspect, top, logs, diff or history, and none to the next run', async () => {
    await using sandglass = await createSandglass({ engine: dockerEngine({ image }), poolSize: 1, maxOverflow: 0 })
    const SECRET = 'hunter2-7f3a9c'
    const started = Promise.withResolvers<string>()
    const written = Promise.withResolvers<void>()
    const run = sandglass.run(
      `import os, time
secret = os.environ['TOKEN']
for path in ('/workspace/s', '/tmp/s', '/var/tmp/s', '/dev/shm/s'):
    with open(path, 'w') as file:
        file.write(secret)
print('written', flush=True)
time.sleep(30)`,
      {
        secrets: { TOKEN: SECRET },
        onEvent: (event) => {
          if (event.type === 'started') started.resolve(event.sandboxId)
          if (event.type === 'stdout') written.resolve()
        },
      },
    )
    const name = await started.promise
    await Promise.race([written.promise, run.then(({ error }) => Promise.reject(new Error(error ?? 'it ended')))])
    const outputs: string[] = []
    for (const command of ['inspect', 'top', 'logs', 'diff', 'port', 'stats']) {
      outputs.push(wordsOf(undefined, command, ...(command === 'stats' ? ['--no-stream'] : []), name))
    }
    outputs.push(wordsOf(undefined, 'history', '--no-trunc', image))
    expect(outputs[0]).toContain('HostConfig')
    expect(outputs[1]).toContain('python3')
    expect(outputs.join('\n')).not.toContain(SECRET)
    docker(undefined, 'kill', name)
    expect((await run).status).toBe('sandbox-lost')
  })

  describe('of an image with volumes and a health check', () => {
    let sandglass: Sandglass
    beforeAll(async () => {
      const careless = images.from(
        image,
        undefined,
        'VOLUME /data',
        'VOLUME /var/lib/things',
        'VOLUME /tmp',
        'HEALTHCHECK --interval=1s CMD touch /tmp/checked',
        'ENV SECRET_OF_IMAGE=1',
        'USER root',
        'WORKDIR /root',
        'ENTRYPOINT ["/bin/sh"]',
      )
      sandglass = await createSandglass({ engine: dockerEngine({ image: careless }), poolSize: 1, maxOverflow: 0 })
    })
    afterAll(() => sandglass?.close())
    afterEach(() => sandglass.close())

    test('gives scripts no directory of the disk to write to, runs no health check, and makes no volume', async () => {
      const volumes = (): string => docker(undefined, 'volume', 'ls', '--quiet')
      const before = volumes()
      const { finalData, sandbox } = await sandglass.run(`import os
writable = []
for line in open('/proc/self/mountinfo'):
    path = line.split()[4]
    kind = line.split(' - ')[1].split()[0]
    if os.path.isdir(path) and os.access(path, os.W_OK):
        writable.append(f'{path} {kind}')
emit_result(sorted(writable))`)
      expect(finalData).toEqual(['/dev/shm tmpfs', '/tmp tmpfs', '/var/tmp tmpfs', '/workspace tmpfs'])
      const { Mounts, Config } = inspect(sandbox.id)
      expect([Mounts, Config['Healthcheck']]).toMatchObject([[], { Test: ['NONE'] }])
      expect(volumes()).toBe(before)
    })
  })

  test("does not reveal the host's name servers", async () => {
    await using sandglass = await createSandglass({ engine: dockerEngine({ image }), poolSize: 1 })
    const script = 'emit_result([line for line in open("/etc/resolv.conf") if not line.startswith("#")])'
    const { finalData } = await sandglass.run(script)
    expect((finalData as string[]).filter((line) => line.startsWith('nameserver'))).toEqual(['nameserver 127.0.0.1\n'])
    expect((finalData as string[]).filter((line) => line.startsWith('search'))).toEqual([])
  })
})
