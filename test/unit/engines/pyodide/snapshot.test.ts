import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openSnapshot, snapshotBytes } from '../../../../src/engines/pyodide/guest/snapshot.ts'

const PAGE = 65_536
const HEAD = 64
const directory = mkdtempSync(join(tmpdir(), 'sandglass-snapshot-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A serialized memory: a head, whose second word is its length, and pages of which some are zero. */
function serialize(pages: readonly number[], rest: number): Uint8Array {
  const memory = Buffer.alloc(HEAD + pages.length * PAGE + rest)
  memory.fill(7, 0, HEAD)
  memory.writeUInt32LE(HEAD, 4)
  // A single byte at the end of a page makes it one that is kept.
  for (const [index, value] of pages.entries()) memory[HEAD + (index + 1) * PAGE - 1] = value
  if (rest > 0) memory[memory.length - 1] = 9
  return memory
}

function write(name: string, bytes: Uint8Array): string {
  const path = join(directory, name)
  writeFileSync(path, Buffer.concat([bytes, Buffer.alloc(32)])) // the digest, which the host verifies
  return path
}

test.each([
  ['zeros between others and at the end', [1, 0, 0, 2, 3, 0], 0],
  ['zeros at its start, and no whole page at its end', [0, 5], 100],
  ['zeros alone', [0, 0], 0],
])('a memory with %s is the same in a new instance', (name, pages, rest) => {
  const memory = serialize(pages, rest)
  const cachedCode = Buffer.from('compiled code of an odd length')
  const bytes = snapshotBytes({ cachedCode, memory })
  const kept = pages.filter((value) => value !== 0).length * PAGE + rest
  expect(bytes.length - kept).toBeLessThan(1000)

  const snapshot = openSnapshot({ path: write(name, bytes) })
  expect(Buffer.from(snapshot.cachedCode)).toEqual(cachedCode)
  expect(Buffer.from(snapshot.head).equals(memory.subarray(0, HEAD))).toBe(true)
  expect(snapshot.heapBytes).toBe(memory.length - HEAD)
  const heap = new Uint8Array(snapshot.heapBytes)
  snapshot.restore(heap)
  expect(Buffer.from(heap).equals(memory.subarray(HEAD))).toBe(true)
})

test('a file that is cut short is refused', () => {
  const bytes = snapshotBytes({ cachedCode: Buffer.from('code'), memory: serialize([1, 2], 0) })
  const path = write('short', bytes)
  truncateSync(path, bytes.length + 31)
  expect(() => openSnapshot({ path })).toThrow('the snapshot is truncated')
  truncateSync(path, 10)
  expect(() => openSnapshot({ path })).toThrow('the snapshot is truncated')
})
