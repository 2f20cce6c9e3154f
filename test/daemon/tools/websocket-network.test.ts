import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { docker } from '../../support/containers.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const { skip, image } = await requireDockerEngine()
const daemon = process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock'

describe.skipIf(skip)('a host and a sandbox in two containers on a private network', () => {
  const network = `sandglass-test-${process.pid}`

  beforeAll(() => {
    docker(daemon, 'network', 'create', '--internal', network)
  })
  afterAll(() => {
    docker(daemon, 'network', 'rm', network)
  })

  test('CA-07 the host connects to the address of the sandbox, where nothing listens afterwards', () => {
    const script = `
import os, socket, stat
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            sock = socket.socket(fileno=os.dup(fd))
            if sock.family == socket.AF_INET:
                break
    except OSError:
        pass
(address, port), (peer, _) = sock.getsockname(), sock.getpeername()
def connect(to):
    try:
        socket.create_connection((to, port), 5)
    except ConnectionRefusedError:
        return "refused"
print("sum", add(a=20, b=22))
emit_result([address, peer, connect(address), connect("127.0.0.1")])`
    const socket = daemon.replace(/^unix:\/\//, '')
    // The host's programs and libraries: the image has no Node.
    const mounts = ['/usr:/usr:ro', `${ROOT}:${ROOT}:ro`, `${dirname(socket)}:${dirname(socket)}`]
    const place = ['--network', network, ...mounts.flatMap((mount) => ['--volume', mount])]
    const node = [join(ROOT, 'node_modules/node/bin/node'), '--disable-warning=ExperimentalWarning']
    const program = [...node, join(ROOT, 'test/support/networked-host.main.ts'), network, image, script]
    const environment = ['--env', `DOCKER_HOST=${daemon}`]
    const said = docker(daemon, 'run', '--rm', '--pull', 'never', ...place, ...environment, image, ...program)
    const { host, finalData, ...others } = JSON.parse(said) as { host: string; finalData: string[] }
    const [address = '', ...rest] = finalData
    const [ofSandbox, ofHost] = [address, host].map((each) => each.split('.', 2).join('.'))
    expect([ofSandbox, rest]).toEqual([ofHost, [host, 'refused', 'refused']])
    expect(address).not.toBe(host)
    expect(others).toEqual({ error: null, stdout: 'sum 42\n', calls: 1, network: 'open' })
  }, 60_000)
})
