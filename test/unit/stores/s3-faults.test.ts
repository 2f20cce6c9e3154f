import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { afterEach, expect, test, vi } from 'vitest'
import { storeInS3 } from '../../../src/artifacts/index.ts'
import { S3Client } from '../../../src/stores/s3-client.ts'

const store = storeInS3({ bucket: 'some', endpoint: 'http://127.0.0.1:9', accessKeyId: 'a', secretAccessKey: 'b' })

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

test('a temporary directory that cannot be used is named', async () => {
  const none = join(tmpdir(), 'sandglass-none')
  vi.stubEnv('TMPDIR', none)
  await expect(store.put('a', 'x')).rejects.toMatchObject({
    code: 'store_unusable',
    message: `the temporary directory ${none}, where content waits for the bucket some at 127.0.0.1:9, cannot be used: ENOENT; set TMPDIR to another directory`,
  })
})

test.each(['ERR_INVALID_URL', 'ENOSPC'])('an error %s of a request or of the source stays what it is', async (code) => {
  const error = Object.assign(new Error('it failed'), { code })
  vi.spyOn(S3Client.prototype, 'send').mockRejectedValue(error)
  await expect(store.put('a', 'x')).rejects.toBe(error)
  const source = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('x')
    throw error
  }
  await expect(store.put('a', source())).rejects.toBe(error)
})
