import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { cachedRootfs, cacheKey, makeRootfs } from '../../../scripts/image/rootfs-cache.ts'

const PLAN = { suite: 'bookworm', architecture: 'amd64', mirror: 'http://m.example/debian', packages: ['python3'] }

let cache: string
beforeEach(() => {
  cache = join(mkdtempSync(join(tmpdir(), 'sandglass-cache-')), 'below', 'it')
})
afterEach(() => rmSync(join(cache, '../..'), { recursive: true }))

function maker(content: string) {
  return (work: string) => {
    writeFileSync(join(work, 'rootfs.tar.gz'), content)
    return Promise.resolve({ path: join(work, 'rootfs.tar.gz'), python: '3.11.2' })
  }
}

test('the name of an entry depends on all parameters of its content, but not on the order of packages', () => {
  const others = [
    { suite: 'trixie' },
    { architecture: 'arm64' },
    { mirror: 'http://n.example' },
    { packages: ['python3', 'git'] },
  ]
  const keys = [PLAN, ...others.map((part) => ({ ...PLAN, ...part }))].map(cacheKey)
  expect(new Set(keys).size).toBe(5)
  expect(keys[0]).toMatch(/^rootfs-bookworm-amd64-[\da-f]{12}$/)
  expect(cacheKey({ ...PLAN, packages: ['a', 'b'] })).toBe(cacheKey({ ...PLAN, packages: ['b', 'a'] }))
})

test('a new archive is found, and nothing else is left', async () => {
  const made = await makeRootfs(cache, 'rootfs-k', maker('content'))
  expect(await cachedRootfs(join(cache, 'rootfs-k'))).toEqual(made)
  expect(made).toMatchObject({ path: join(cache, 'rootfs-k', 'rootfs.tar.gz'), bytes: 7, python: '3.11.2' })
  expect(readdirSync(cache)).toEqual(['rootfs-k'])
})

test.each<[string, (entry: string) => void]>([
  ['that is cut', (entry) => truncateSync(join(entry, 'rootfs.tar.gz'), 3)],
  ['with a changed byte', (entry) => writeFileSync(join(entry, 'rootfs.tar.gz'), 'cOntent')],
  ['without an archive', (entry) => rmSync(join(entry, 'rootfs.tar.gz'))],
  ['without a description', (entry) => rmSync(join(entry, 'about.json'))],
  ['with a cut description', (entry) => truncateSync(join(entry, 'about.json'), 20)],
  ['with a description of something else', (entry) => writeFileSync(join(entry, 'about.json'), 'null')],
])('an entry %s is not used, and is made anew', async (_, damage) => {
  await makeRootfs(cache, 'rootfs-k', maker('content'))
  damage(join(cache, 'rootfs-k'))
  expect(await cachedRootfs(join(cache, 'rootfs-k'))).toBeUndefined()
  const made = await makeRootfs(cache, 'rootfs-k', maker('other'))
  expect(readFileSync(made.path, 'utf8')).toBe('other')
  expect(await cachedRootfs(join(cache, 'rootfs-k'))).toEqual(made)
  expect(readdirSync(cache)).toEqual(['rootfs-k'])
})

test('a maker that fails leaves the existing entry unchanged', async () => {
  const before = await makeRootfs(cache, 'rootfs-k', maker('content'))
  const failing = async (work: string): Promise<never> => {
    mkdirSync(join(work, 'root/usr'), { recursive: true })
    throw new Error('no network')
  }
  await expect(makeRootfs(cache, 'rootfs-k', failing)).rejects.toThrow('no network')
  expect(readdirSync(cache)).toEqual(['rootfs-k'])
  expect(await cachedRootfs(join(cache, 'rootfs-k'))).toEqual(before)
})

test('two concurrent makers both get a complete entry', async () => {
  const made = await Promise.all(['one', 'two', 'six'].map((text) => makeRootfs(cache, 'rootfs-k', maker(text))))
  const found = await cachedRootfs(join(cache, 'rootfs-k'))
  expect(made.map(({ sha256 }) => sha256)).toContain(found?.sha256)
  expect(readdirSync(cache)).toEqual(['rootfs-k'])
})

test('working directories of dead makers and entries unused for two months are removed', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const started = Promise.withResolvers<string>()
  const slow = makeRootfs(cache, 'rootfs-slow', async (work) => {
    started.resolve(work)
    await promise
    return maker('slow')(work)
  })
  const living = await started.promise
  // Above the largest pid of a kernel.
  const dead = living.replace(`-${process.pid}-`, '-4194305-')
  const elsewhere = join(cache, `building-1-${process.pid}-abcdef`)
  const longAgo = join(cache, 'building-1-1-abcdef')
  for (const path of [dead, elsewhere, longAgo, join(cache, 'rootfs-old'), join(cache, 'rootfs-new')]) mkdirSync(path)
  for (const path of [longAgo, join(cache, 'rootfs-old')]) utimesSync(path, 0, 0)
  await makeRootfs(cache, 'rootfs-k', maker('content'))
  expect([living, elsewhere, dead, longAgo].map((path) => existsSync(path))).toEqual([true, true, false, false])
  resolve()
  await slow
  rmSync(elsewhere, { recursive: true })
  expect(readdirSync(cache).toSorted()).toEqual(['rootfs-k', 'rootfs-new', 'rootfs-slow'])
})

test('an unwritable cache is reported by name', async () => {
  mkdirSync(join(cache, '..'), { recursive: true })
  writeFileSync(cache, 'a file')
  await expect(makeRootfs(cache, 'rootfs-k', maker('content'))).rejects.toThrow(cache)
})
