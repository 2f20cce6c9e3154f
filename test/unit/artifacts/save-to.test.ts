import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createArtifactService, storeInDirectory, storeInMemory } from '../../../src/artifacts/index.ts'

test.each([
  ['in memory', () => storeInMemory()],
  ['in a directory', (directory: string) => storeInDirectory(join(directory, 'store'))],
])('a version is written to a file, which replaces another one only where asked to (%s)', async (_, storeIn) => {
  using place = directory()
  const artifacts = createArtifactService(storeIn(place.path))
  const content = Buffer.alloc(2.5 * 1024 ** 2, 'ab') // several pieces
  await artifacts.save('a.bin', 'first')
  const saved = await artifacts.save('a.bin', content)
  const path = join(place.path, 'out.bin')
  expect(await artifacts.saveTo('a.bin', path)).toEqual(saved)
  expect(readFileSync(path).equals(content)).toBe(true)
  await expect(artifacts.saveTo('a.bin', path, { version: 0 })).rejects.toMatchObject({ code: 'invalid_request' })
  expect(readFileSync(path).byteLength).toBe(content.byteLength)
  await artifacts.saveTo('a.bin', path, { version: 0, overwrite: true })
  expect(readFileSync(path, 'utf8')).toBe('first')
  const nowhere = artifacts.saveTo('a.bin', join(place.path, 'none', 'out.bin'))
  await expect(nowhere).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(artifacts.saveTo('b', path)).rejects.toMatchObject({ code: 'artifact_not_found' })
})

test.each(['another text', 'longer than the text that was saved'])(
  'content that was changed behind the store leaves no file: %s',
  async (changed) => {
    using place = directory()
    const artifacts = createArtifactService(storeInDirectory(join(place.path, 'store')))
    const { sha256 } = await artifacts.save('a.txt', 'as it was saved')
    const blob = join(place.path, 'store', 'artifacts', 'blobs', sha256.slice(0, 2), sha256.slice(2))
    writeFileSync(blob, changed)
    const saving = artifacts.saveTo('a.txt', join(place.path, 'out.txt'))
    await expect(saving).rejects.toMatchObject({ code: 'store_damaged' })
    expect(readdirSync(place.path)).toEqual(['store'])
  },
)

test('a call that is aborted leaves no file', async () => {
  using place = directory()
  const artifacts = createArtifactService(storeInDirectory(join(place.path, 'store')))
  await artifacts.save('a.txt', 'text')
  const saving = artifacts.saveTo('a.txt', join(place.path, 'out.txt'), { signal: AbortSignal.abort() })
  await expect(saving).rejects.toMatchObject({ code: 'aborted' })
  expect(readdirSync(place.path)).toEqual(['store'])
})

function directory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'save-to-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
