import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createSocketServer, type AddressInfo, type Server } from 'node:net'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { dockerEngine, type DockerEngineOptions } from '../../../../src/engines/docker/index.ts'
import type { ErrorCode } from '../../../../src/errors/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { findLeftContainers } from './own-containers.ts'
import { reportAs, reportWithoutClient } from './reporting-host.ts'
import { TestImages } from './test-images.ts'

const { skip, image } = await requireDockerEngine()
const SPEC = { limits: sandboxLimits(resolveLimits()) }

/** Expects that a container cannot be made, and that `report` gives the same code with a remedy. */
async function refusal(options: DockerEngineOptions, code: ErrorCode, message: RegExp): Promise<void> {
  const engine = dockerEngine(options)
  try {
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      name: 'SandglassError',
      code,
      message: expect.stringMatching(message) as string,
    })
    const report = await engine.report()
    expect([report.usable, report.reasons.map((reason) => [reason.severity, reason.code])]).toEqual([
      false,
      [['error', code]],
    ])
    expect(report.reasons[0]?.remedy).not.toBe('see the message')
  } finally {
    await engine.close()
  }
}

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('no daemon', () => {
  test('a missing socket', () =>
    refusal({ host: 'unix:///no/such/docker.sock' }, 'docker_unreachable', /no Docker daemon at unix:.*start it/))

  test('FLT-005: a closed port', async () => {
    const server = createSocketServer()
    const address = await listening(server)
    server.close()
    await refusal({ host: `tcp://${address}` }, 'docker_unreachable', /no Docker daemon at tcp:.*ECONNREFUSED/)
  })

  test('a redirect of a server that is not a daemon is not followed', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(301, { location: 'http://does-not-exist.invalid/' }).end()
    })
    const address = await listening(server)
    await refusal(
      { host: `tcp://${address}` },
      'docker_unreachable',
      /the server at tcp:.* is not a Docker daemon.*301/,
    )
    server.close()
  })

  test.each([
    ['a page', 200, '<html>welcome</html>'],
    ['an error', 404, '<html>not found</html>'],
    ['another kind of data', 200, '{"status": "ok"}'],
  ])('a server that is not a daemon and answers with %s', async (_what, status, body) => {
    const server = createServer((_request, response) => response.writeHead(status).end(body))
    const address = await listening(server)
    await refusal({ host: `tcp://${address}` }, 'docker_unreachable', /the server at tcp:.* is not a Docker daemon/)
    server.close()
  })

  test('a proxy that forbids the request', async () => {
    const server = createServer((_request, response) => response.writeHead(403).end('Forbidden'))
    const address = await listening(server)
    await refusal({ host: `tcp://${address}` }, 'docker_permission', /refuses to describe itself: .*403/)
    server.close()
  })

  test('a server that speaks another protocol', async () => {
    const server = createSocketServer((socket) => socket.end('220 mail.example ESMTP\r\n'))
    const address = await listening(server)
    await refusal({ host: `tcp://${address}` }, 'docker_unreachable', /no Docker daemon at/)
    server.close()
  })

  test.each([
    ['ftp://example:21', /docker\.host: "ftp:.* must be unix:.* or tcp:/],
    ['tcp://', /must be unix:.* or tcp:/],
    ['ssh://someone@example', /is not supported: forward the socket/],
    ['unix://relative', /has no absolute path/],
    ['tcp://127.0.0.1:2375/v1.41', /must be tcp:.*, without a path/],
    ['tcp://user@127.0.0.1:2375', /must be tcp:.*, without a path/],
  ])('an invalid address: %s', async (host, message) => {
    const engine = dockerEngine({ host })
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(message) as string,
    })
    await engine.close()
  })
})

test('certificates for a socket are rejected, because a socket ignores them', async () => {
  const engine = dockerEngine({ host: 'unix:///no/such/docker.sock', tls: { ca: 'x', cert: 'x', key: 'x' } })
  await expect(engine.create(SPEC)).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'docker.tls: /no/such/docker.sock is a socket and does not use TLS; remove docker.tls',
  })
  await engine.close()
})

describe('wrong use is a TypeError that names the option', () => {
  test.each<[Record<string, unknown>, RegExp]>([
    [{ imag: 'x' }, /^docker\.imag: unknown option\. Did you mean "image"\?$/],
    [{ image: '' }, /^docker\.image: must be the name of an image/],
    [{ image: 'a//b' }, /^docker\.image: /],
    [{ image: '../containers' }, /^docker\.image: /],
    [{ python: 'bin/python3' }, /^docker\.python: must be a name or an absolute path/],
    [{ host: '' }, /^docker\.host: /],
    [{ tls: { ca: 'x' } }, /^docker\.tls: must be \{ ca, cert, key \}/],
    [{ apiTimeoutMs: 0 }, /^docker\.apiTimeoutMs: must be a number of milliseconds from 1/],
    [{ startTimeoutMs: Infinity }, /^docker\.startTimeoutMs: /],
    [{ allowHostPaths: ['relative'] }, /^docker\.allowHostPaths: must be a list of absolute paths/],
    [{ hostPathMap: { '/a': 'b' } }, /^docker\.hostPathMap: /],
    [{ resources: [{ source: '/x' }] }, /^docker\.resources: /],
  ])('%j', (options, message) => {
    expect(() => dockerEngine(options as DockerEngineOptions)).toThrow(TypeError)
    expect(() => dockerEngine(options as DockerEngineOptions)).toThrow(message)
  })

  test('an error never shows a key', () => {
    const tls = { ca: 'SECRET', cert: 'SECRET', key: 7 } as unknown as NonNullable<DockerEngineOptions['tls']>
    expect(() => dockerEngine({ tls })).toThrow(/^(?!.*SECRET)/s)
  })
})

describe.skipIf(skip)('a daemon that cannot make the requested container', () => {
  using images = new TestImages()
  afterAll(() => images[Symbol.dispose]())
  afterEach(async () => expect(await findLeftContainers()).toBeUndefined())

  test('a missing image', () =>
    refusal(
      { image: 'sandglass-no-such/image:1' },
      'image_missing',
      /sandglass-no-such\/image:1 is not on .* docker pull/,
    ))

  test('an unknown runtime', () =>
    refusal({ image, runtime: 'no-such-runtime' }, 'runtime_unknown', /no-such-runtime.*register it.*docs\/docker\.md/))

  test('an image without Python', () =>
    refusal(
      { image: images.of({ '/etc/nothing': '' }) },
      'python_missing',
      /"python3": executable file not found.*Python 3\.10/,
    ))

  test('a Python that is not at the given path', () =>
    refusal(
      { image, python: '/opt/python/bin/python3' },
      'python_missing',
      /\/opt\/python\/bin\/python3.*option python/,
    ))

  test('a Python that is a directory', () => refusal({ image, python: '/usr' }, 'python_missing', /permission denied/))

  test('a Python whose ELF interpreter is missing', () =>
    refusal(
      { image: images.of({ '/usr/bin/python3': '#!/bin/sh\n' }) },
      'python_missing',
      /cannot be started.*no such file/,
    ))

  test('an image for another CPU architecture', () =>
    refusal(
      { image: images.of({ '/usr/bin/python3': FOREIGN }) },
      'architecture_unsupported',
      /exec format error.*pull the image/,
    ))

  test('a Python that is older than 3.10', () =>
    // A real Python that reports version 3.9 to the program.
    refusal(
      { image: images.from(image, { path: '/usr/local/bin/python39', content: OLD_PYTHON }), python: 'python39' },
      'python_missing',
      /is too old: sandglass needs Python 3\.10 or later, this is 3\.9\.19/,
    ))

  test('a program that is not Python: the error quotes its output', async () => {
    const engine = dockerEngine({ image, python: '/bin/sh' })
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code: 'harness_start_failed',
      message: expect.stringMatching(/it ended before it was ready; its stderr: .*Illegal option/) as string,
    })
    await engine.close()
  })

  test('a Python that prints nothing fails after startTimeoutMs', async () => {
    const silent = { path: '/usr/local/bin/silent', content: '#!/bin/sh\nexec sleep 1000\n' }
    const engine = dockerEngine({ image: images.from(image, silent), python: 'silent', startTimeoutMs: 1500 })
    await expect(engine.create(SPEC)).rejects.toMatchObject({
      code: 'harness_start_failed',
      message: expect.stringContaining('it sent no ready frame within 1500 ms') as string,
    })
    await engine.close()
  })
})

const OLD_PYTHON = `#!/usr/bin/python3 -IS
import sys
sys.version_info, sys.version = (3, 9, 19), '3.9.19 (main)'
exec(sys.argv[sys.argv.index('-c') + 1])
`
/** The ELF header of a program for a processor that no daemon has (machine 0xdead). */
const FOREIGN = Buffer.concat([
  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0xad, 0xde, 1, 0, 0, 0]),
  Buffer.alloc(512),
])

const isRoot = process.getuid?.() === 0
if (!isRoot) console.warn('skipped: whether an ordinary user is refused can be tried by root alone')

describe.skipIf(skip || !isRoot)('an ordinary user', () => {
  test('has no permission on the socket', () => {
    const { reasons } = reportAs(12_345)
    expect(reasons).toMatchObject([
      {
        code: 'docker_permission',
        message: expect.stringMatching(/no permission on Docker's socket.*group docker/) as string,
      },
    ])
  })
})

test('without the package dockerode the error names it', () => {
  const { reasons } = reportWithoutClient()
  expect(reasons).toMatchObject([
    { code: 'docker_client_missing', message: 'the engine docker needs the package dockerode: npm install dockerode' },
  ])
})
