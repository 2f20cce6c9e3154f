import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { LABEL, ownerLabels } from '../../../src/engines/docker/owner.ts'
import { type PrivateDaemon, requirePrivateDaemon, startDaemon } from '../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { docker } from '../../support/containers.ts'
import { makeCli } from '../../support/cli/sandglass.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const STARTING_MS = 240_000

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

/** The output of a command on containers. It lists nothing else: the state directory is empty. */
async function runListing(
  command: 'ps' | 'prune',
  host: string,
): Promise<{ code: number | null; stderr: string; listed: unknown }> {
  const { code, stdout, stderr } = await cli.run([command, '--json'], { env: { DOCKER_HOST: host } })
  const all = JSON.parse(stdout) as { kind: string }[]
  return { code, stderr, listed: all.filter(({ kind }) => kind === 'container') }
}

describe.each(['ps', 'prune'] as const)('%s', (command) => {
  let directory: string
  let server: Server | undefined
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'sandglass-cli-daemon-'))
  })
  afterEach(() => server?.close())
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  test.each([
    ['names a socket that is not there', 'unix:///no/such/docker.sock', 7, /no Docker daemon at unix:/],
    ['names a port where nobody listens', 'tcp://127.0.0.1:9', 7, /no Docker daemon at tcp:.*ECONNREFUSED/],
    ['is nonsense', 'ssh://somewhere', 2, /DOCKER_HOST: .*is not supported/],
  ])('does not call a machine clean when DOCKER_HOST %s', async (_what, host, code, words) => {
    const found = await runListing(command, host)
    expect(found).toEqual({
      code,
      listed: [],
      stderr: expect.stringMatching(
        `^sandglass: cannot ${command === 'ps' ? 'list' : 'remove'} the resources of the engine docker: `,
      ) as string,
    })
    expect(found.stderr).toMatch(words)
    const text = await cli.run([command], { env: { DOCKER_HOST: host } })
    expect(text.code).toBe(code)
    expect(text.stdout).not.toMatch(/nothing/)
  })

  test('calls it clean when no daemon is named and nothing listens at the default socket', async () => {
    const home = join(directory, 'home')
    mkdirSync(join(home, '.docker/run'), { recursive: true })
    // Left behind by a daemon that was killed.
    const path = join(home, '.docker/run/docker.sock')
    spawnSync('python3', ['-c', 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])', path])
    const { code, stdout, stderr } = await cli.run([command], { env: { HOME: home, DOCKER_HOST: '' } })
    rmSync(home, { recursive: true })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toMatch(/^container/m)
  })

  test('does not call a machine clean whose daemon hangs', async () => {
    const path = join(directory, 'silent.sock')
    server = createServer((socket) => {
      socket.on('error', () => {})
      socket.resume()
    })
    server.listen(path)
    await once(server, 'listening')
    expect(await runListing(command, `unix://${path}`)).toEqual({
      code: 7,
      listed: [],
      stderr: expect.stringMatching(/did not answer within \d+ ms/) as string,
    })
  })
})

describe.skipIf(noDocker || noDaemon)('on a daemon', () => {
  let daemon: PrivateDaemon
  beforeAll(async () => {
    daemon = await startDaemon()
    await daemon.load(image)
  }, STARTING_MS)
  afterAll(() => daemon?.close(), STARTING_MS)

  /** A container with the labels that an engine of this process would give, or one of a process that is gone. */
  const container = (name: string, labels: Readonly<Record<string, string>>): string => {
    const flags = Object.entries({ [LABEL.sandbox]: name, ...labels }).map(([key, value]) => `--label=${key}=${value}`)
    return docker(daemon.host, 'create', '--network=none', '--name', name, ...flags, image, 'true').trim()
  }

  test('ps lists containers with their owners, and prune removes those of owners that are gone', async () => {
    const own = ownerLabels()
    const gone = { ...own, [LABEL.owner]: own[LABEL.owner]?.replace(/\d+$/, '1') ?? '' }
    const left = { kind: 'container', id: container('sg-left', gone), sandbox: 'sg-left', owner: 'gone', uid: null }
    const kept = { kind: 'container', id: container('sg-kept', own), sandbox: 'sg-kept', owner: 'alive', uid: null }
    const listed = async (command: 'ps' | 'prune'): Promise<unknown> => {
      const found = await runListing(command, daemon.host)
      const byName = (found.listed as { sandbox: string }[]).toSorted((a, b) => b.sandbox.localeCompare(a.sandbox))
      return { ...found, listed: byName }
    }
    expect(await listed('ps')).toEqual({ code: 0, stderr: '', listed: [left, kept] })
    expect(await listed('prune')).toEqual({ code: 0, stderr: '', listed: [left] })
    expect(await listed('ps')).toEqual({ code: 0, stderr: '', listed: [kept] })
    expect(await listed('prune')).toEqual({ code: 0, stderr: '', listed: [] })
    const { stdout } = await cli.run(['ps'], { env: { DOCKER_HOST: daemon.host } })
    expect(stdout).toMatch(new RegExp(`^container +alive +- +sg-kept +${kept.id}$`, 'm'))
    docker(daemon.host, 'rm', '--force', kept.id)
  })
})
