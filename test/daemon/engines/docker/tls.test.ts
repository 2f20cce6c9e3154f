import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { dockerEngine, type DockerEngineOptions } from '../../../../src/engines/docker/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { type PrivateDaemon, requirePrivateDaemon, startDaemon } from '../../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { Authority, type Certificate } from './certificates.ts'
import { findLeftContainers } from './own-containers.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const SPEC = { limits: sandboxLimits(resolveLimits()) }
const STARTING_MS = 180_000

describe.skipIf(noDocker || noDaemon)('a daemon over TCP that requires certificates', () => {
  const place = mkdtempSync(join(tmpdir(), 'sandglass-tls-'))
  const authority = new Authority(join(place, 'ours'))
  const server = authority.sign('server', 'serverAuth')
  const client = authority.sign('client', 'clientAuth')
  const stranger = new Authority(join(place, 'theirs')).sign('client', 'clientAuth')
  let daemon: PrivateDaemon
  beforeAll(async () => {
    daemon = await startDaemon({ tls: server })
    await daemon.load(image)
  }, STARTING_MS)
  afterEach(async () => {
    vi.unstubAllEnvs()
    expect(await findLeftContainers(daemon.host)).toBeUndefined()
  })
  afterAll(async () => {
    await daemon?.close()
    rmSync(place, { recursive: true, force: true })
  })

  const pems = ({ ca, cert, key }: Omit<Certificate, 'directory'>): NonNullable<DockerEngineOptions['tls']> => ({
    ca: readFileSync(ca),
    cert: readFileSync(cert, 'utf8'),
    key: readFileSync(key),
  })
  const runs = async (options: DockerEngineOptions): Promise<unknown> => {
    await using sandglass = await createSandglass({ engine: dockerEngine({ image, ...options }), poolSize: 1 })
    const input = Buffer.alloc(300_000, 'sand')
    const { finalData } = await sandglass.run(
      `data = open('in', 'rb').read()
print('x' * 200_000)
emit_result([len(data), data[:4].decode()])`,
      { files: { in: input } },
    )
    return finalData
  }
  const expectRefusal = async (options: DockerEngineOptions, message: RegExp, code = 'docker_tls'): Promise<void> => {
    const engine = dockerEngine({ image, ...options })
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    })
    await engine.close()
  }

  test('PO-03: runs scripts for a client with a certificate', async () => {
    expect(await runs({ host: daemon.tcpHost ?? '', tls: pems(client) })).toEqual([300_000, 'sand'])
  })

  test('PO-03: takes address and certificates from the environment', async () => {
    vi.stubEnv('DOCKER_HOST', daemon.tcpHost)
    vi.stubEnv('DOCKER_TLS_VERIFY', '1')
    vi.stubEnv('DOCKER_CERT_PATH', client.directory)
    expect(await runs({})).toEqual([300_000, 'sand'])
    const engine = dockerEngine({ image })
    expect((await engine.report()).probes['daemon']).toBe(daemon.tcpHost)
    await engine.close()
  })

  test('the option host overrides the environment', async () => {
    vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1')
    vi.stubEnv('DOCKER_TLS_VERIFY', '1')
    vi.stubEnv('DOCKER_CERT_PATH', client.directory)
    vi.stubEnv('DOCKER_CLIENT_TIMEOUT', '1')
    expect(await runs({ host: daemon.host })).toEqual([300_000, 'sand'])
  })

  test('a client with certificates of another authority does not trust the daemon', () =>
    expectRefusal(
      { host: daemon.tcpHost ?? '', tls: pems(stranger) },
      /no secure connection to Docker at tcp:.*check ca, cert and key/,
    ))

  test('a client whose certificate another authority signed is refused', () =>
    expectRefusal(
      { host: daemon.tcpHost ?? '', tls: pems({ ...stranger, ca: client.ca }) },
      /no secure connection to Docker at tcp:.*certificate/,
    ))

  test('a client without certificates gets an error that names the option', () =>
    expectRefusal({ host: daemon.tcpHost ?? '' }, /HTTP request to an HTTPS server.*DOCKER_TLS_VERIFY=1/))

  test('a client that trusts it and has no certificate of its own is refused', async () => {
    const empty = join(place, 'empty')
    mkdirSync(empty)
    vi.stubEnv('DOCKER_TLS_VERIFY', '1')
    vi.stubEnv('DOCKER_CERT_PATH', empty)
    await expectRefusal(
      { host: daemon.tcpHost ?? '' },
      /certificates for Docker cannot be read: .*empty\/ca\.pem.*DOCKER_CERT_PATH/,
    )
  })

  test('rejects texts that are not certificates', () =>
    expectRefusal(
      { host: daemon.tcpHost ?? '', tls: { ca: 'x', cert: 'y', key: 'z' } },
      /no secure connection to Docker/,
    ))

  test('rejects TLS for a port that does not speak it', async () => {
    const { createServer } = await import('node:http')
    const plain = createServer((_request, response) => response.end())
    await new Promise<void>((resolve) => {
      plain.listen(0, '127.0.0.1', resolve)
    })
    const { port } = plain.address() as { port: number }
    await expectRefusal(
      { host: `tcp://127.0.0.1:${port}`, tls: pems(client) },
      /no secure connection.*serves TLS on this port/,
    )
    plain.close()
  })

  test('mounts directories of this machine only where a map says where they are', async () => {
    const packages = mkdtempSync(join('/tmp', 'sandglass-packages-'))
    try {
      chmodSync(packages, 0o755)
      writeFileSync(join(packages, 'sg_remote.py'), 'VALUE = 7\n')
      const given = { image, host: daemon.tcpHost ?? '', tls: pems(client) }
      const engine = dockerEngine(given)
      await expect(engine.create({ ...SPEC, packages })).rejects.toMatchObject({
        code: 'mount_refused',
        message: expect.stringMatching(
          /^packages: .* is a path of this machine, and the daemon at tcp:.*hostPathMap/,
        ) as string,
      })
      await engine.close()
      const mapped = dockerEngine({ ...given, hostPathMap: { '/': '/' } })
      await using sandglass = await createSandglass({ engine: mapped, packages, poolSize: 1 })
      expect((await sandglass.run('import sg_remote\nemit_result(sg_remote.VALUE)')).finalData).toBe(7)
    } finally {
      rmSync(packages, { recursive: true, force: true })
    }
  })
})
