import { execFileSync } from 'node:child_process'
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createArtifactService } from '../../../src/artifacts/index.ts'
import { storeInDirectory } from '../../../src/stores/index.ts'
import { eventually } from '../../support/eventually.ts'
import { describeStore } from '../../support/store-rules.ts'

let root: string
let made = 0
beforeAll(() => void (root = mkdtempSync(join(tmpdir(), 'store-'))))
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('a store in a directory', () => {
  describeStore(() => storeInDirectory(freshPath()))
})

test('a directory is made by the first thing stored, for its owner only', async () => {
  const path = join(freshPath(), 'deep')
  const store = storeInDirectory(path)
  expect(await store.read('a', 'key')).toBeUndefined()
  expect(await Array.fromAsync(store.blobs('a'))).toEqual([])
  expect(await Array.fromAsync(store.records('a'))).toEqual([])
  expect(existsSync(path)).toBe(false)
  await store.put('a', 'hello')
  expect(statSync(path).mode & 0o777).toBe(0o700)
})

test('stores of one directory see the same', async () => {
  const path = freshPath()
  const artifacts = [1, 2, 3].map(() => createArtifactService(storeInDirectory(path)))
  const saves = artifacts.flatMap((one) => ['x', 'y', 'z', 'x'].map((text) => one.save('a', text)))
  const given = (await Promise.all(saves)).map(({ version }) => version)
  expect(given.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, at) => at))
  for (const one of artifacts) expect(await one.versions('a')).toHaveLength(12)
})

test('a directory that holds something else is refused, and left as it is', async () => {
  const path = freshPath()
  mkdirSync(path)
  writeFileSync(join(path, 'notes.txt'), 'mine')
  await expect(storeInDirectory(path).put('a', 'hello')).rejects.toMatchObject({ code: 'store_unusable' })
  expect(readdirSync(path)).toEqual(['notes.txt'])
})

test('a directory that is no store, and a file, are not read as an empty one', async () => {
  const path = freshPath()
  mkdirSync(path)
  const store = storeInDirectory(path)
  expect(await Array.fromAsync(store.records('a'))).toEqual([])
  writeFileSync(join(path, 'notes.txt'), 'mine')
  for (const one of [store, storeInDirectory(join(path, 'notes.txt'))]) {
    const unusable = { code: 'store_unusable', message: expect.stringContaining(path) as string }
    await expect(Array.fromAsync(one.records('a'))).rejects.toMatchObject(unusable)
    await expect(Array.fromAsync(one.blobs('a'))).rejects.toMatchObject(unusable)
    await expect(one.read('a', 'key')).rejects.toMatchObject(unusable)
    await expect(one.has('a', '0'.repeat(64))).rejects.toMatchObject(unusable)
    await expect(one.open('a', '0'.repeat(64))).rejects.toMatchObject(unusable)
    await expect(one.remove('a', '0'.repeat(64), 0)).rejects.toMatchObject(unusable)
  }
  expect(readdirSync(path)).toEqual(['notes.txt'])
})

test('a store of another version is refused', async () => {
  const path = freshPath()
  mkdirSync(path)
  writeFileSync(join(path, 'format'), 'sandglass-store 2\n')
  await expect(storeInDirectory(path).write('a', 'key', 'x', undefined)).rejects.toMatchObject({
    code: 'store_unusable',
  })
})

test.each(['', 'a\0b', 7 as never])('the path %j is refused', (path) => {
  expect(() => storeInDirectory(path)).toThrow(TypeError)
})

test('a path below a file is unusable, for writers; a source that fails says so itself', async () => {
  const path = freshPath()
  writeFileSync(path, '')
  await expect(storeInDirectory(join(path, 'store')).put('a', 'x')).rejects.toMatchObject({ code: 'store_unusable' })
  const missing = createReadStream(join(root, 'missing'))
  await expect(storeInDirectory(freshPath()).put('a', missing)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('content that was changed behind the store is not given out', async () => {
  const path = freshPath()
  const store = storeInDirectory(path)
  const { sha256 } = await store.put('a', 'hello')
  writeFileSync(join(path, 'a/blobs', sha256.slice(0, 2), sha256.slice(2)), 'hallo')
  const pieces = (await store.open('a', sha256)) ?? []
  await expect(Array.fromAsync(pieces)).rejects.toMatchObject({ code: 'store_damaged' })
  // Stored again, it is whole again.
  await store.put('a', 'hello')
  expect(await Array.fromAsync((await store.open('a', sha256)) ?? [])).toEqual([Buffer.from('hello')])
})

test('what a writer left that died is removed later, and that of a living one is not', async () => {
  const path = freshPath()
  await storeInDirectory(path).put('a', 'hello')
  const [old, young] = [join(path, 'tmp/old'), join(path, 'tmp/young')]
  for (const one of [old, young]) writeFileSync(one, 'half')
  const before = new Date(Date.now() - 2 * 3_600_000)
  utimesSync(old, before, before)
  await storeInDirectory(path).put('a', 'other')
  expect(await eventually(() => (existsSync(old) ? 'it is there' : undefined), 5000)).toBeUndefined()
  expect(existsSync(young)).toBe(true)
})

test('old states of a record become empty, and are removed', async () => {
  const path = freshPath()
  const store = storeInDirectory(path)
  const directory = join(path, 'a/records/key')
  let tag: string | undefined
  for (let at = 0; at < 5; at++) tag = await store.write('a', 'key', 'x'.repeat(100), tag)
  const sizes = (): number[] =>
    readdirSync(directory)
      .toSorted()
      .map((name) => statSync(join(directory, name)).size)
  expect(sizes()).toEqual([0, 0, 0, 100, 100])
  const before = new Date(Date.now() - 3_600_000)
  for (const name of readdirSync(directory)) utimesSync(join(directory, name), before, before)
  await store.write('a', 'key', 'last', tag)
  expect(sizes()).toEqual([0, 100, 4])
  expect(await store.read('a', 'key')).toMatchObject({ text: 'last' })
})

test('a writer that died before its record was there leaves no record', async () => {
  const path = freshPath()
  const store = storeInDirectory(path)
  await store.write('a', 'other', 'x', undefined)
  mkdirSync(join(path, 'a/records/key'))
  expect(await store.read('a', 'key')).toBeUndefined()
  expect(await Array.fromAsync(store.records('a'))).toHaveLength(1)
  expect(await store.write('a', 'key', 'x', undefined)).toBeTypeOf('string')
})

test('files that are none of the store hold nobody, and are passed over', async () => {
  const path = freshPath()
  const store = storeInDirectory(path)
  await store.write('a', 'key', 'x', undefined)
  const records = join(path, 'a/records')
  mkdirSync(join(records, 'NOT A KEY/=000000000001'), { recursive: true })
  mkdirSync(join(records, 'a/b/c/d/e'), { recursive: true })
  writeFileSync(join(records, 'key/=9'), 'y')
  expect(await Array.fromAsync(store.records('a'))).toMatchObject([{ key: 'key', text: 'x' }])
  execFileSync('mkfifo', [join(records, 'key/=000000000002')])
  await expect(store.read('a', 'key')).rejects.toMatchObject({ code: 'store_damaged' })
})

function freshPath(): string {
  return join(root, `store-${made++}`)
}
