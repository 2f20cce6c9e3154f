import { expect, test } from 'vitest'
import { type EntryState, formatManifest, parseManifest } from '../../../src/persistence/manifest.ts'

const SHA = 'a'.repeat(64)

test('a manifest comes back as it was, whatever the pieces', async () => {
  const entries: EntryState[] = [
    { kind: 'directory', path: 'd', mode: 0o755 },
    { kind: 'file', path: 'd/ä "q"\n', mode: 0o644, size: 3, sha256: SHA },
    { kind: 'link', path: 'l', target: 'd' },
  ]
  const whole = Buffer.concat(await Array.fromAsync(formatManifest(entries)))
  for (const size of [1, 7, whole.length]) {
    expect([...(await parseManifest(cut(whole, size), 'the store')).values()]).toEqual(entries)
  }
  expect((await parseManifest(cut(Buffer.alloc(0), 1), 'the store')).size).toBe(0)
})

test.each([
  ['no JSON', 'x\n'],
  ['an end in the middle of a line', '{"kind":"directory","path":"d","mode":493}'],
  ['a path that leads out', line({ path: '../d' })],
  ['an absolute path', line({ path: '/etc' })],
  ['a path that comes twice', line({}) + line({})],
  ['a mode with set-uid', line({ mode: 0o4755 })],
  ['a kind that is none', line({ kind: 'device' })],
  ['a field that is none', line({ owner: 0 })],
  ['a file without a digest', line({ kind: 'file', size: 1 })],
  ['a link to nothing', `${JSON.stringify({ kind: 'link', path: 'l', target: '' })}\n`],
  ['a line without an end', 'x'.repeat(100_000)],
])('a manifest with %s is refused', async (_, text) => {
  await expect(parseManifest(cut(Buffer.from(text), 1000), 'the store')).rejects.toMatchObject({
    code: 'store_damaged',
    message: expect.stringContaining('the store') as string,
  })
})

test('a manifest with more entries than it may have is refused', async () => {
  const text = line({ path: 'a' }) + line({ path: 'b' }) + line({ path: 'c' })
  expect((await parseManifest(cut(Buffer.from(text), 100), 'the store', 3)).size).toBe(3)
  await expect(parseManifest(cut(Buffer.from(text), 100), 'the store', 2)).rejects.toMatchObject({
    code: 'store_damaged',
  })
})

function line(fields: object): string {
  return `${JSON.stringify({ kind: 'directory', path: 'd', mode: 0o755, ...fields })}\n`
}

async function* cut(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
