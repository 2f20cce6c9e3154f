import { createServer, type RequestListener, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createArtifactService } from '../../../src/artifacts/index.ts'
import { type Store, storeInS3 } from '../../../src/stores/index.ts'
import { skipFor } from '../../support/required.ts'
import { findS3Server, type S3Server, startS3Server } from '../../support/s3-server.ts'
import { describeStore } from '../../support/store-rules.ts'

const program = findS3Server()
if (program === undefined) skipFor('s3', "there is no moto_server on PATH (pip install 'moto[s3]' flask flask-cors)")
let server: S3Server

describe.skipIf(program === undefined)('a store in S3', () => {
  beforeAll(async () => void (server = await startS3Server(program ?? '')))
  afterAll(async () => server[Symbol.asyncDispose]())

  describeStore(openStore)

  // WS-12
  test('keeps artifacts, for all services that use it', async () => {
    const prefix = randomUUID()
    const [one, two] = [1, 2].map(() => createArtifactService(storeInS3({ ...server.options, prefix })))
    if (one === undefined || two === undefined) throw new Error('there are two services')
    const saves = [one, two, one, two].map((service, at) => service.save('a.txt', `text ${at}`))
    const given = (await Promise.all(saves)).map(({ version }) => version)
    expect(given.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3])
    const { data, mimeType, version } = await two.load('a.txt')
    expect({ text: Buffer.from(data).toString(), mimeType, version }).toEqual({
      text: `text ${given.indexOf(3)}`,
      mimeType: 'text/plain',
      version: 3,
    })
    expect(await one.delete('a.txt')).toHaveLength(4)
    expect(await two.list()).toEqual([])
  })

  test('a bucket that does not exist, and missing rights, are unusable', async () => {
    const store = storeInS3({ ...server.options, bucket: 'no-such-bucket' })
    await expect(store.put('a', 'x')).rejects.toMatchObject({ code: 'store_unusable' })
    await expect(store.read('a', 'key')).rejects.toMatchObject({ code: 'store_unusable' })
    await expect(store.write('a', 'key', 'x', undefined)).rejects.toMatchObject({ code: 'store_unusable' })
  })
})

describe('a server that is no good', () => {
  test('answers 500 for a while: requests are sent again', async () => {
    let asked = 0
    await using at = await serve((_, response) => {
      asked++
      response.writeHead(asked < 3 ? 500 : 404).end()
    })
    expect(await at.store.has('a', 'a'.repeat(64))).toBe(false)
    expect(asked).toBe(3)
  })

  test('always answers 500, or does not answer: it is unreachable', async () => {
    await using broken = await serve((_, response) => void response.writeHead(503).end())
    await expect(broken.store.read('a', 'key')).rejects.toMatchObject({ code: 'store_unreachable', retryable: true })
    await using silent = await serve(() => {}, { timeoutMs: 200 })
    await expect(silent.store.read('a', 'key')).rejects.toMatchObject({ code: 'store_unreachable' })
  })

  test('ignores conditions: it is refused before a record is written', async () => {
    await using at = await serve((request, response) => {
      request.resume()
      response.writeHead(request.method === 'DELETE' ? 204 : 200, { etag: '"1"' }).end()
    })
    await expect(at.store.write('a', 'key', 'x', undefined)).rejects.toMatchObject({
      code: 'store_unusable',
      message: expect.stringContaining('no conditional writes') as string,
    })
  })

  test('gives another object: it is not passed on', async () => {
    await using at = await serve((_, response) => void response.writeHead(200).end('another one'))
    const pieces = (await at.store.open('a', 'a'.repeat(64))) ?? []
    await expect(Array.fromAsync(pieces)).rejects.toMatchObject({ code: 'store_damaged' })
  })

  test('redirects: credentials go to no other server', async () => {
    let asked = 0
    await using other = await serve((_, response) => {
      asked++
      response.writeHead(404).end()
    })
    await using at = await serve((_, response) => void response.writeHead(307, { location: other.endpoint }).end())
    await expect(at.store.read('a', 'key')).rejects.toMatchObject({ code: 'store_unreachable' })
    expect(asked).toBe(0)
  })

  test('has other things among its objects: they are passed over', async () => {
    const sha256 = 'a'.repeat(64)
    await using at = await serve(({ url = '' }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://localhost')
      const below = searchParams.get('prefix')
      const names = ['', 'README.md', '../x', `x/${sha256}`, sha256, 'key'].map(
        (name) => `<Contents><Key>${below}${name}</Key><Size>${name === sha256 ? 5 : 'many'}</Size></Contents>`,
      )
      if (below !== null) response.end(`<ListBucketResult>${names.join('')}</ListBucketResult>`)
      else response.writeHead(200, { etag: '"1"' }).end(`${randomUUID()}${pathname}`)
    })
    const blobs = await Array.fromAsync(at.store.blobs('a'))
    expect(blobs.map(({ sha256: name, size }) => [name, size])).toEqual([[sha256, 5]])
    const records = await Array.fromAsync(at.store.records('a'))
    expect(records.map(({ key, text }) => [key, text])).toEqual(
      [`x/${sha256}`, sha256, 'key'].map((key) => [key, `/store/a/records/${key}`]),
    )
  })

  test('lists without an end, or at great length: it is damaged', async () => {
    await using endless = await serve(
      (_, response) => void response.end('<NextContinuationToken>again</NextContinuationToken>'),
    )
    await expect(Array.fromAsync(endless.store.records('a'))).rejects.toMatchObject({ code: 'store_damaged' })
    await using long = await serve((_, response) => void response.end('<Contents>'.repeat(500_000)))
    await expect(Array.fromAsync(long.store.blobs('a'))).rejects.toMatchObject({ code: 'store_damaged' })
  })

  test('stops in the middle of a transfer: its signal ends it', async () => {
    await using at = await serve(({ method }, response) => {
      if (method === 'HEAD') return void response.end()
      response.write(Buffer.alloc(8 * 1024 * 1024))
    })
    const controller = new AbortController()
    const read = async (): Promise<void> => {
      const pieces = (await at.store.open('a', 'a'.repeat(64), { signal: controller.signal })) ?? []
      for await (const _ of pieces) setImmediate(() => controller.abort())
    }
    await expect(read()).rejects.toMatchObject({ code: 'aborted' })
  })

  test('drips: the time for the request ends it', async () => {
    await using at = await serve(
      (_, response) => {
        response.writeHead(200, { etag: '"1"' })
        const drip = setInterval(() => response.write('x'), 20)
        response.on('close', () => clearInterval(drip))
      },
      { timeoutMs: 300 },
    )
    await expect(at.store.read('a', 'key')).rejects.toMatchObject({ code: 'store_unreachable' })
  })

  test('gives a reason that a terminal would obey: it is left out', async () => {
    await using at = await serve((_, response) => {
      response.socket?.end('HTTP/1.1 403 \u001b[2Jno\r\ncontent-length: 0\r\n\r\n')
    })
    const error: unknown = await at.store.read('a', 'key').catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'store_unusable', message: expect.stringMatching(/403$/) as string })
  })
})

test.each([
  [{ sessionToken: 'hidden\nword' }, 'sessionToken'],
  [{ accessKeyId: 'hidden\nword' }, 'accessKeyId'],
  [{ secretAccessKey: '' }, 'secretAccessKey'],
])('credentials that no header can carry are refused without showing them: %j', async (given, name) => {
  const options = { bucket: 'store', endpoint: 'http://127.0.0.1:9', accessKeyId: 'a', secretAccessKey: 'b', ...given }
  const error: unknown = await storeInS3(options)
    .read('a', 'key')
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'store_unusable', message: expect.stringContaining(name) as string })
  expect(String(error)).not.toContain('hidden')
})

test.each(['http://user:hidden@x', 'http://:hidden@x', 'http://x/#hidden', 'http://user:hidden@:x'])(
  'the endpoint %s is refused without showing it',
  (endpoint) => {
    const make = (): Store => storeInS3({ bucket: 'abc', endpoint })
    expect(make).toThrow('storeInS3: endpoint: must be')
    expect(make).not.toThrow('hidden')
  },
)

test.each([
  [{}, 'bucket'],
  [{ bucket: 'A' }, 'bucket'],
  [{ bucket: 'abc', prefix: '../x' }, 'prefix'],
  [{ bucket: 'abc', endpoint: 'ftp://x' }, 'endpoint'],
  [{ bucket: 'abc', endpoint: 'http://user:word@x' }, 'endpoint'],
  [{ bucket: 'abc', region: 'x/y' }, 'region'],
  [{ bucket: 'abc', timeoutMs: 0 }, 'timeoutMs'],
  [{ bucket: 'abc', buckt: 1 }, 'buckt'],
])('the options %j are refused', (options, name) => {
  expect(() => storeInS3(options as never)).toThrow(name)
})

function openStore(): Store {
  return storeInS3({ ...server.options, prefix: randomUUID() })
}

async function serve(
  answer: RequestListener,
  options: { readonly timeoutMs?: number } = {},
): Promise<AsyncDisposable & { readonly store: Store; readonly endpoint: string }> {
  const http: Server = createServer(answer).listen(0, '127.0.0.1')
  await once(http, 'listening')
  const endpoint = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const store = storeInS3({ bucket: 'store', endpoint, accessKeyId: 'a', secretAccessKey: 'b', ...options })
  return {
    store,
    endpoint,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      http.close()
      await once(http, 'close')
    },
  }
}
