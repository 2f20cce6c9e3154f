import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, test, vi } from 'vitest'
import { createArtifactService, storeInDirectory, storeInS3 } from '../../../src/artifacts/index.ts'

const noMount = process.getuid?.() !== 0

test.skipIf(noMount)('a full disk refuses a save, which leaves nothing; what was there stays', async () => {
  using disk = mountDisk('1m')
  const artifacts = createArtifactService(storeInDirectory(`${disk.path}/store`))
  await artifacts.save('a', 'kept')
  const large = Buffer.alloc(2 * 1024 ** 2)
  await expect(artifacts.save('a', large)).rejects.toMatchObject({ code: 'no_space', retryable: true })
  await expect(artifacts.save('b', large)).rejects.toMatchObject({ code: 'no_space' })
  expect(await artifacts.list()).toMatchObject([{ name: 'a', version: 0, size: 4 }])
  expect(Buffer.from((await artifacts.load('a')).data).toString()).toBe('kept')
  // The space of the failed saves is free again.
  expect(await artifacts.save('a', large.subarray(0, 700_000))).toMatchObject({ version: 1 })
})

test.skipIf(noMount)('a read-only store is read, and refuses changes', async () => {
  using disk = mountDisk('1m')
  const path = `${disk.path}/store`
  await createArtifactService(storeInDirectory(path)).save('a', 'kept')
  execFileSync('mount', ['-o', 'remount,ro', disk.path])
  const artifacts = createArtifactService(storeInDirectory(path))
  expect(await artifacts.list()).toMatchObject([{ name: 'a', version: 0 }])
  expect(Buffer.from((await artifacts.load('a')).data).toString()).toBe('kept')
  const expected = { code: 'store_unusable', message: expect.stringContaining(path) as string }
  await expect(artifacts.save('a', 'x')).rejects.toMatchObject(expected)
  await expect(artifacts.delete('a')).rejects.toMatchObject(expected)
  await expect(createArtifactService(storeInDirectory(`${disk.path}/new`)).save('a', 'x')).rejects.toMatchObject({
    code: 'store_unusable',
  })
})

test.skipIf(noMount)('a full temporary directory refuses content for S3, and is named', async () => {
  using disk = mountDisk('1m')
  vi.stubEnv('TMPDIR', disk.path)
  try {
    const store = storeInS3({ bucket: 'some', endpoint: 'http://127.0.0.1:9', accessKeyId: 'a', secretAccessKey: 'b' })
    await expect(store.put('a', Buffer.alloc(2 * 1024 ** 2))).rejects.toMatchObject({
      code: 'no_space',
      message: `no space is left in the temporary directory ${disk.path}, where content waits for the bucket some at 127.0.0.1:9: free some space, or set TMPDIR to another directory, then try again`,
    })
    expect(readdirSync(disk.path)).toEqual([])
    vi.stubEnv('TMPDIR', `${disk.path}/none`)
    await expect(store.put('a', 'x')).rejects.toMatchObject({
      code: 'store_unusable',
      message: expect.stringContaining(`${disk.path}/none`) as string,
    })
  } finally {
    vi.unstubAllEnvs()
  }
})

function mountDisk(size: string): Disposable & { readonly path: string } {
  const path = mkdtempSync(`${tmpdir()}/store-disk-`)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path])
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', [path])
      rmSync(path, { recursive: true })
    },
  }
}
