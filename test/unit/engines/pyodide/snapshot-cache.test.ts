import { mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { SnapshotCache } from '../../../../src/engines/pyodide/snapshot-cache.ts'

/* Tests the recognition of complete files. test/sandbox/engines/pyodide/snapshot.test.ts tests that a damaged one is replaced. */

const KEY = '0123456789abcdef'
const directory = mkdtempSync(join(tmpdir(), 'sandglass-snapshot-cache-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A snapshot's layout: the length of the compiled code, the code, the memory. */
function snapshotBytes(): Uint8Array {
  const bytes = Buffer.alloc(100_000, 'sandglass')
  bytes.writeUInt32LE(40_000)
  return bytes
}

const flip = (path: string, at: number): void => {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ 0xff
  writeFileSync(path, bytes)
}

test.each([
  ['cut short', (path: string) => truncateSync(path, 1000)],
  ['empty', (path: string) => truncateSync(path, 0)],
  ['changed in one byte of the memory', (path: string) => flip(path, 4 + 40_000 + 4000)],
  ['changed in one byte of the compiled code', (path: string) => flip(path, 500)],
  ['wrong about the length of the compiled code', (path: string) => flip(path, 3)],
  ['changed in one byte of the digest', (path: string) => flip(path, readFileSync(path).length - 1)],
])('a snapshot that is %s is not whole', async (_how, damage) => {
  const cache = new SnapshotCache(directory)
  await cache.keep(KEY, snapshotBytes())
  expect(await cache.isIntact(KEY)).toBe(true)
  damage(cache.pathOf(KEY))
  expect(await cache.isIntact(KEY)).toBe(false)
})

test('a temporary file of another writer that is renamed meanwhile keeps no snapshot from being written', async () => {
  const cache = new SnapshotCache(directory)
  const renamed = `${cache.pathOf(KEY)}.of-another-writer`
  // Its name is read, and it is gone when it is looked at, as after a rename by its writer.
  symlinkSync(join(directory, 'gone'), renamed)
  expect(await cache.keep(KEY, Buffer.from('a snapshot'))).toEqual({ path: cache.pathOf(KEY) })
})
