import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { arch, tmpdir } from 'node:os'
import { join } from 'node:path'
import Docker from 'dockerode'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { buildImage, type ImageOptions } from '../../../scripts/image/build.ts'
import { cacheKey, makeRootfs } from '../../../scripts/image/rootfs-cache.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireDockerEngine()
const MIRROR = 'http://user:hunter2@mirror.invalid/debian'
const TAG = `sandglass-test-${process.pid}:one`
const OTHER_TAG = `sandglass-test-${process.pid}:two`
const DERIVED_TAG = `sandglass-test-${process.pid}:derived`
const DEBIAN = arch() === 'x64' ? 'amd64' : 'arm64'
const LINUX = arch() === 'x64' ? 'x86_64' : 'aarch64'
const NO_DEBOOTSTRAP = noDebootstrap()
const BUILD_MS = 10 * 60_000

let directory: string
let cacheDir: string
const servers: (() => void)[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sandglass-image-'))
  cacheDir = join(directory, 'cache')
})
afterEach(() => {
  vi.restoreAllMocks()
  for (const close of servers.splice(0)) close()
  rmSync(directory, { recursive: true })
})

/** Puts an archive with one file into the cache, as if debootstrap had made it. */
async function putIntoCache(text: string): Promise<void> {
  const plan = { suite: 'bookworm', architecture: DEBIAN, mirror: MIRROR, packages: ['python3'] }
  await makeRootfs(cacheDir, cacheKey(plan), (work) => {
    mkdirSync(join(work, 'root'))
    writeFileSync(join(work, 'root', 'file'), text)
    execFileSync('tar', ['-C', join(work, 'root'), '-czf', join(work, 'rootfs.tar.gz'), '.'])
    return Promise.resolve({ path: join(work, 'rootfs.tar.gz'), python: '3.11.2' })
  })
}

/** Serves HTTP at an address of this machine. */
async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  servers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A daemon without images that answers an import with this text. */
async function fakeDaemon({ architecture = LINUX, importing = '{}' } = {}): Promise<string> {
  const address = await serving((request, response) => {
    request.resume()
    if (request.method === 'POST') {
      request.on('end', () => response.end(importing))
      return
    }
    response.setHeader('content-type', 'application/json')
    const path = request.url ?? ''
    if (path.includes('/info')) response.end(JSON.stringify({ ServerVersion: '1', Architecture: architecture }))
    else if (path.includes('/images/json')) response.end('[]')
    else response.writeHead(404).end('{"message":"No such image"}')
  })
  return `tcp://${address}`
}

function build(options: ImageOptions = {}): ReturnType<typeof buildImage> {
  return buildImage({ cacheDir, mirror: MIRROR, tag: TAG, ...options })
}

describe('npm run image checks first and reports', () => {
  test('no daemon', async () => {
    const host = `unix://${directory}/docker.sock`
    await expect(build({ host })).rejects.toMatchObject({ code: 'docker_unreachable' })
  })

  test('a daemon on another kind of processor', async () => {
    const host = await fakeDaemon({ architecture: 's390x' })
    await expect(build({ host })).rejects.toThrow('runs on s390x')
  })

  test('a user who is not root, unless the packages are in the cache', async () => {
    vi.spyOn(process, 'getuid').mockReturnValue(12_345)
    await expect(build({ host: await fakeDaemon() })).rejects.toThrow('needs root')
    await putIntoCache('x')
    const refusing = await fakeDaemon({
      importing: '{"errorDetail":{"message":"full"},"error":"no space left on device"}',
    })
    await expect(build({ host: refusing })).rejects.toMatchObject({ code: 'no_space' })
  })
})

describe.skipIf(skip)('a daemon', () => {
  const docker = new Docker()
  afterAll(async () => {
    for (const tag of [TAG, OTHER_TAG, DERIVED_TAG])
      await docker
        .getImage(tag)
        .remove()
        .catch(() => undefined)
  })

  test('gets the archive once, under any number of names, with labels and nothing else', async () => {
    await putIntoCache('first')
    const lines: string[] = []
    const built = await build({ onProgress: (line) => lines.push(line) })
    expect(built).toMatchObject({ tag: TAG, python: '3.11.2', cached: true })
    const { Config, Id } = await docker.getImage(TAG).inspect()
    expect([Id, Config.Cmd, Config.Env, Config.Entrypoint, Config.Volumes]).toEqual([
      built.id,
      ['python3'],
      null,
      null,
      null,
    ])
    expect(Config.Labels).toEqual({
      'sandglass.rootfs': expect.stringMatching(/^[\da-f]{64}$/) as string,
      'sandglass.suite': 'bookworm',
      'sandglass.python': '3.11.2',
    })
    expect(await build({ tag: OTHER_TAG })).toEqual({ ...built, tag: OTHER_TAG })
    expect(lines.map((line) => line.replace(/[\d-]{10}/, 'DATE').replace(directory, ''))).toEqual([
      `packages of DATE from /cache/${readdirSync(cacheDir)[0]}; --fresh fetches them again`,
      expect.stringMatching(/^importing 0 MB into the daemon at /),
    ])
  })

  test('removes the image that had the name, unless it has another name', async () => {
    await putIntoCache('first')
    const first = await build()
    await build({ tag: OTHER_TAG })
    rmSync(cacheDir, { recursive: true })
    await putIntoCache('second')
    const second = await build()
    expect(second.id).not.toBe(first.id)
    expect((await docker.getImage(OTHER_TAG).inspect()).Id).toBe(first.id)
    await build({ tag: OTHER_TAG })
    await expect(docker.getImage(first.id).inspect()).rejects.toMatchObject({ statusCode: 404 })
  })
})

describe.skipIf(skip)('an image that was built on ours inherits the labels, but is kept', () => {
  const client = new Docker()
  /** An image based on another, as from `docker build`: with an additional file, or only with another configuration. */
  const buildUpon = async (base: string, tag: string, file?: string): Promise<string> => {
    const container = await client.createContainer({ Image: base, Cmd: ['nothing'] })
    try {
      if (file !== undefined) await container.putArchive(tarOf(file), { path: '/' })
      const [repo, version] = tag.split(':')
      await container.commit({ repo, tag: version, changes: 'ENV MINE=1' })
      return (await client.getImage(tag).inspect()).Id
    } finally {
      await container.remove()
    }
  }
  afterEach(async () => {
    for (const tag of [TAG, OTHER_TAG, DERIVED_TAG])
      await client
        .getImage(tag)
        .remove({ force: true })
        .catch(() => undefined)
  })

  test.each([
    ['with a file more', 'mine'],
    ['with another configuration', undefined],
  ])('and is not taken for the built one: %s', async (_, file) => {
    await putIntoCache(`base of ${String(file)}`)
    const { id } = await build()
    await buildUpon(TAG, DERIVED_TAG, file)
    // The daemon lists the latest one first.
    expect((await build({ tag: OTHER_TAG })).id).toBe(id)
  })

  test.each([
    ['with a file more', 'mine'],
    ['with another configuration', undefined],
  ])('and is not removed when it loses its name: %s', async (_, file) => {
    await putIntoCache(`base of ${String(file)}`)
    await build()
    const derived = await buildUpon(TAG, TAG, file)
    rmSync(cacheDir, { recursive: true })
    await putIntoCache(`another base of ${String(file)}`)
    expect((await build()).id).not.toBe(derived)
    expect((await client.getImage(derived).inspect()).Id).toBe(derived)
    await client.getImage(derived).remove({ force: true })
  })
})

describe.skipIf(NO_DEBOOTSTRAP)('debootstrap', () => {
  test('that is interrupted leaves nothing', async () => {
    const asked = Promise.withResolvers<void>()
    const mirror = `http://${await serving(() => asked.resolve())}/debian` // it never answers
    const controller = new AbortController()
    const building = build({ host: await fakeDaemon(), mirror, signal: controller.signal })
    await Promise.race([asked.promise, building])
    controller.abort()
    await expect(building).rejects.toThrow(/abort/i)
    expect(readdirSync(cacheDir)).toEqual([])
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(mirror)
  })

  test('that cannot reach its mirror says so without the password in its address', async () => {
    const port = new URL(await fakeDaemon()).port
    for (const close of servers.splice(0)) close()
    const mirror = `http://user:hunter2@127.0.0.1:${port}/debian`
    const said = build({ host: await fakeDaemon(), mirror })
    await expect(said).rejects.toThrow(`http://127.0.0.1:${port}/debian/dists/bookworm`)
    await expect(said).rejects.not.toMatchObject({ message: expect.stringContaining('hunter2') as string })
    expect(readdirSync(cacheDir)).toEqual([])
  })

  test('that does not know the suite says so', async () => {
    await expect(build({ host: await fakeDaemon(), suite: 'bogus' })).rejects.toThrow(/bogus/)
  })

  test.skipIf(skip)(
    'makes a small image that runs Python and contains nothing of this machine',
    async () => {
      const built = await buildImage({ tag: TAG })
      expect(built).toMatchObject({ tag: TAG, python: '3.11.2' })
      expect(built.sizeBytes).toBeLessThan(130e6)
      const docker = new Docker()
      const script = [
        'import ctypes, glob, os, sqlite3, ssl, subprocess, zoneinfo',
        'find = ["find", "/", "-xdev", "-perm", "/6000", "-type", "f"]',
        'print("privileged:", subprocess.run(find, capture_output=True, text=True).stdout)',
        'print("left:", *glob.glob("/etc/machine-id"), *glob.glob("/debootstrap*"), *glob.glob("/var/log/*.log"))',
        'print("packages:", *glob.glob("/var/cache/apt/**/*.deb", recursive=True))',
        'print("Berlin:", zoneinfo.ZoneInfo("Europe/Berlin"))',
      ].join('\n')
      const HostConfig = { NetworkMode: 'none' }
      const container = await docker.createContainer({
        Image: TAG,
        Cmd: ['python3', '-c', script],
        Tty: true,
        HostConfig,
      })
      try {
        const names = await namesIn(await container.getArchive({ path: '/etc' }))
        expect(names).toContainEqual(expect.stringMatching(/ 0 .* etc\/resolv.conf$/))
        expect(names).toContainEqual(expect.stringMatching(/ 0 .* etc\/hostname$/))
        await container.start()
        await container.wait()
        const log = (await container.logs({ stdout: true, stderr: true })).toString('utf8')
        expect(log.split('\r\n').map((said) => said.trim())).toEqual([
          'privileged:',
          'left:',
          'packages:',
          'Berlin: Europe/Berlin',
          '',
        ])
      } finally {
        await container.remove({ force: true })
        await docker
          .getImage(TAG)
          .remove()
          .catch(() => undefined)
      }
    },
    BUILD_MS,
  )
})

/** An archive of one empty file. */
function tarOf(name: string): Buffer {
  writeFileSync(join(directory, name), '')
  return execFileSync('tar', ['-C', directory, '-cf', '-', name])
}

/** The entries of an archive as `tar -tv` lists them: mode, owner, size, date, name. */
async function namesIn(archive: NodeJS.ReadableStream): Promise<string[]> {
  const pieces: Buffer[] = []
  for await (const piece of archive) pieces.push(piece as Buffer)
  return execFileSync('tar', ['-tvf', '-'], { input: Buffer.concat(pieces), encoding: 'utf8' }).split('\n')
}

function noDebootstrap(): boolean {
  if (process.getuid?.() === 0 && existsSync('/usr/sbin/debootstrap')) return false
  skipFor('docker', 'an image is built by root, with debootstrap')
  return true
}
