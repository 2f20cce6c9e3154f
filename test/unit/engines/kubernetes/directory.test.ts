import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Archive, Archives } from '../../../../src/engines/kubernetes/archive.ts'
import { listDirectory } from '../../../../src/engines/kubernetes/directory.ts'
import { findDirectories, volumeWith } from '../../../../src/engines/kubernetes/pod-directories.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'

const LIMITS = sandboxLimits(resolveLimits())
const TIME = 1_700_000_000

let folder: string
let root: string
let archives: Archives

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandglass-unit-'))
  root = join(folder, 'packages')
  archives = new Archives()
  mkdirSync(join(root, 'pkg'), { recursive: true })
  write('pkg/a.py', 'x = 1')
  write('top.py', '')
})

afterEach(() => {
  archives.close()
  rmSync(folder, { recursive: true })
})

function write(path: string, text: string, mode = 0o644): void {
  writeFileSync(join(root, path), text)
  chmodSync(join(root, path), mode)
  utimesSync(join(root, path), TIME, TIME)
}

async function bytesOf(archive: Archive): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of archive.pieces()) pieces.push(piece)
  expect(Buffer.concat(pieces)).toHaveLength(archive.bytes)
  return Buffer.concat(pieces)
}

/** The headers of an archive, each with the content of its file. */
async function contentOf(archive: Archive): Promise<unknown[]> {
  const bytes = inflateSync(await bytesOf(archive))
  const entries: unknown[] = []
  let at = 0
  const take = (count: number): Buffer => bytes.subarray(at, (at += count))
  for (let length = take(4).readUInt32BE(); length > 0; length = take(4).readUInt32BE()) {
    const header = JSON.parse(take(length).toString()) as { kind: string; size?: number }
    entries.push(header.size === undefined ? header : [header, take(header.size).toString()])
  }
  expect(at).toBe(bytes.length)
  return entries
}

describe('a directory for pods', () => {
  test('is packed with its files, directories and the links that stay inside', async () => {
    write('pkg/run', '#!', 0o755)
    symlinkSync('a.py', join(root, 'pkg/b.py'))
    symlinkSync(join(root, 'pkg'), join(root, 'whole'))
    using archive = await archives.use(await listDirectory('packages', root))
    const file = { kind: 'file', mtime: TIME, executable: false }
    expect(await contentOf(archive)).toEqual([
      { kind: 'directory', path: 'pkg' },
      [{ ...file, path: 'pkg/a.py', size: 5 }, 'x = 1'],
      { kind: 'link', path: 'pkg/b.py', target: 'a.py' },
      [{ ...file, path: 'pkg/run', size: 2, executable: true }, '#!'],
      [{ ...file, path: 'top.py', size: 0 }, ''],
      { kind: 'link', path: 'whole', target: 'pkg' },
    ])
  })

  test('leaves out what other users may not read, links that lead outside, and what is no file', async () => {
    write('secret.py', 'token', 0o600)
    mkdirSync(join(root, 'closed'))
    writeFileSync(join(root, 'closed', 'c.py'), '')
    chmodSync(join(root, 'closed'), 0o700)
    symlinkSync('/etc/passwd', join(root, 'outside'))
    symlinkSync('nowhere', join(root, 'broken'))
    const server = createServer().listen({ path: join(root, 'socket'), readableAll: true, writableAll: true })
    await once(server, 'listening')
    const { entries } = await listDirectory('packages', root)
    server.close()
    expect(entries.map(({ path }) => path)).toEqual(['pkg', 'pkg/a.py', 'top.py'])
  })

  test('takes whole pages of memory, and some for each name', async () => {
    write('two-pages', 'x'.repeat(4097))
    const { volumeBytes, memoryBytes } = await listDirectory('packages', root)
    expect([volumeBytes, memoryBytes]).toEqual([3 * 4096, 3 * 4096 + 4 * 2048])
  })

  test('is packed once until it changes, and an archive in use outlives that', async () => {
    const listing = await listDirectory('packages', root)
    using first = await archives.use(listing)
    using same = await archives.use(await listDirectory('packages', root))
    expect(await bytesOf(same)).toEqual(await bytesOf(first))
    expect(archives.inMemory).toEqual([`${root}: ${listing.memoryBytes} bytes`])
    write('pkg/a.py', 'x = 2')
    using changed = await archives.use(await listDirectory('packages', root))
    archives.close()
    expect(JSON.stringify(await contentOf(first))).toContain('x = 1')
    expect(JSON.stringify(await contentOf(changed))).toContain('x = 2')
    expect(archives.inMemory).toEqual([])
  })

  test('one that changes while it is packed is packed again, and an aborted wait leaves the work to others', async () => {
    write('large.bin', 'x'.repeat(8 << 20))
    const old = await listDirectory('packages', root)
    const first = archives.use(old)
    await expect(archives.use(old, AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
    write('new.py', '')
    using changed = await archives.use(await listDirectory('packages', root))
    using before = await first
    expect(JSON.stringify(await contentOf(before))).not.toContain('new.py')
    expect(JSON.stringify(await contentOf(changed))).toContain('new.py')
  })

  test('a file that goes away meanwhile is left out', async () => {
    const listing = await listDirectory('packages', root)
    rmSync(join(root, 'top.py'))
    using archive = await archives.use(listing)
    expect(JSON.stringify(await contentOf(archive))).not.toContain('top.py')
  })

  test.each([
    ['/no/such/directory', /^toolsDir: \/no\/such\/directory cannot be read: ENOENT/],
    ['/etc/passwd', /^toolsDir: \/etc\/passwd cannot be read: it is not a directory/],
  ])('%s is refused', async (toolsDir, message) => {
    const finding = findDirectories({ limits: LIMITS, toolsDir })
    await expect(finding).rejects.toMatchObject({
      code: 'packages_unreadable',
      message: expect.stringMatching(message) as string,
    })
  })

  test('one without a readable file is refused', async () => {
    rmSync(join(root, 'pkg'), { recursive: true })
    chmodSync(join(root, 'top.py'), 0o600)
    await expect(listDirectory('packages', root)).rejects.toThrow(
      'no file in it may be read by users other than its owner',
    )
  })
})

describe('volumes', () => {
  const volumes = {
    volumeClaims: { '/mnt/envs': 'envs', '/mnt/envs/gpu/': 'gpu', '/': 'all' },
    volumeImages: { '/mnt/envs/ml': 'ml:3', '/mnt': 'mnt:1', '/mnt/envs': 'less' },
  }

  test.each([
    ['/mnt/envs/a/b', { claimName: 'envs', subPath: 'a/b' }],
    ['/mnt/envs', { claimName: 'envs', subPath: '' }],
    ['/mnt/envs/gpu/torch', { claimName: 'gpu', subPath: 'torch' }],
    ['/envs2', { claimName: 'all', subPath: 'envs2' }],
    ['/mnt/envs2', { image: 'mnt:1', subPath: 'envs2' }],
    ['/mnt/envs/ml', { image: 'ml:3', subPath: '' }],
    ['/mnt/envs/ml/a', { image: 'ml:3', subPath: 'a' }],
  ])('%s is in the volume of the longest prefix', (directory, volume) => {
    expect(volumeWith(directory, volumes)).toEqual(volume)
  })

  test('a directory of a volume need not be on this host, and one that is elsewhere is sent', async () => {
    const spec = { limits: LIMITS, packages: '/mnt/envs/ml', toolsDir: root }
    const [packages, tools] = await findDirectories(spec, { volumeClaims: { '/mnt/envs': 'envs' } })
    expect(packages).toEqual({ name: 'packages', path: '/packages', claimName: 'envs', subPath: 'ml' })
    expect(tools).toMatchObject({ name: 'tools', path: '/tools', listing: { directory: root } })
  })
})
