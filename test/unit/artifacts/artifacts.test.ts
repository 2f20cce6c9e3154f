import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ArtifactService, createArtifactService, type Store, storeInMemory } from '../../../src/artifacts/index.ts'

// WS-12
test('versions start at 0, and the latest is loaded by default', async () => {
  const artifacts = createArtifactService(storeInMemory())
  expect(await artifacts.save('a.txt', 'abc')).toMatchObject({ version: 0 })
  expect(await artifacts.save('a.txt', 'def')).toMatchObject({ version: 1 })
  expect(await loaded(artifacts)).toEqual({ text: 'def', mimeType: 'text/plain', version: 1 })
  expect(await loaded(artifacts, 0)).toEqual({ text: 'abc', mimeType: 'text/plain', version: 0 })
  expect(await loaded(artifacts, 1)).toEqual({ text: 'def', mimeType: 'text/plain', version: 1 })
})

test('a save tells name, version, MIME type, size, digest and time', async () => {
  const artifacts = createArtifactService(storeInMemory())
  const before = Date.now()
  const saved = await artifacts.save('out/a.csv', 'a,b', { mimeType: 'text/csv; charset=utf-8' })
  expect(saved).toEqual({
    name: 'out/a.csv',
    version: 0,
    mimeType: 'text/csv; charset=utf-8',
    size: 3,
    sha256: createHash('sha256').update('a,b').digest('hex'),
    savedAt: expect.any(String) as string,
  })
  expect(Date.parse(saved.savedAt)).toBeGreaterThanOrEqual(before)
  const { data, ...info } = await artifacts.load('out/a.csv')
  expect(info).toEqual(saved)
  expect(Buffer.from(data).toString()).toBe('a,b')
})

test.each([
  ['a.png', 'image/png'],
  ['a.json', 'application/json'],
  ['a', 'application/octet-stream'],
  ['a.unknown', 'application/octet-stream'],
])('the MIME type of %s is %s unless it is given', async (name, mimeType) => {
  expect(await createArtifactService(storeInMemory()).save(name, 'x')).toMatchObject({ mimeType })
})

test.each([
  '',
  'text',
  'text/',
  'text/plain\r\nX: y',
  'text/plain;',
  'text/"a"',
  `text/${'x'.repeat(255)}`,
  7 as never,
])('the MIME type %j is refused', async (mimeType) => {
  const saving = createArtifactService(storeInMemory()).save('a', 'x', { mimeType })
  await expect(saving).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/^mimeType/) as string,
  })
})

test('streams go in and out', async () => {
  const artifacts = createArtifactService(storeInMemory())
  await artifacts.save('a.bin', new Blob(['one ', 'two']).stream())
  const { stream, ...info } = await artifacts.open('a.bin')
  expect(info).toMatchObject({ version: 0, size: 7 })
  expect(await new Response(stream).text()).toBe('one two')
})

// WS-12
test('sessions share nothing but the artifacts of their user', async () => {
  const artifacts = createArtifactService(storeInMemory())
  const mine = { appName: 'app', userId: 'u', sessionId: 's1' }
  const next = { ...mine, sessionId: 's2' }
  await artifacts.save('a.txt', 'mine', { session: mine })
  await artifacts.save('user:b.txt', 'of the user', { session: mine })
  expect((await artifacts.list({ session: mine })).map(({ name }) => name)).toEqual(['a.txt', 'user:b.txt'])
  expect((await artifacts.list({ session: next })).map(({ name }) => name)).toEqual(['user:b.txt'])
  await expect(artifacts.load('a.txt', { session: next })).rejects.toMatchObject({ code: 'artifact_not_found' })
  for (const session of [{}, { ...mine, userId: 'other' }, { ...mine, appName: 'other' }]) {
    expect(await artifacts.list({ session })).toEqual([])
  }
  // Separators in ids do not lead into another scope.
  expect(await artifacts.list({ session: { appName: 'app/u', userId: '', sessionId: 's1' } })).toEqual([])
})

test.each([
  [7 as never, 'session: must be an object'],
  [{ sessionID: 'a' } as never, 'session: unknown key "sessionID"'],
  [{ sessionId: 7 } as never, 'session.sessionId 7'],
  [{ userId: 'x'.repeat(257) }, 'session.userId'],
  [{ userId: '\uD800' }, 'session.userId'],
])('the session %j is refused', async (session, message) => {
  const listing = createArtifactService(storeInMemory()).list({ session })
  await expect(listing).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining(message) as string,
  })
})

test('a version that was deleted is not given again', async () => {
  const artifacts = createArtifactService(storeInMemory())
  for (const text of ['0', '1', '2']) await artifacts.save('a', text)
  expect(await artifacts.delete('a', { version: 2 })).toMatchObject([{ version: 2 }])
  expect(await artifacts.delete('a', { version: 2 })).toEqual([])
  expect((await artifacts.versions('a')).map(({ version }) => version)).toEqual([0, 1])
  expect(await artifacts.save('a', '3')).toMatchObject({ version: 3 })
  await expect(artifacts.load('a', { version: 2 })).rejects.toMatchObject({
    code: 'artifact_not_found',
    message: 'artifact "a" has no version 2; it has 3 versions, from 0 to 3',
  })
  expect(await artifacts.delete('a')).toHaveLength(3)
  expect(await artifacts.list()).toEqual([])
  expect(await artifacts.versions('a')).toEqual([])
  await expect(artifacts.load('a')).rejects.toMatchObject({
    code: 'artifact_not_found',
    message: 'this session has no artifact "a"; list() returns those that it has',
  })
  expect(await artifacts.save('a', '4')).toMatchObject({ version: 4 })
})

test.each([-1, 1.5, Number.NaN, '1' as never])('the version %j is refused', async (version) => {
  const artifacts = createArtifactService(storeInMemory())
  await artifacts.save('a', 'x')
  for (const call of [artifacts.load('a', { version }), artifacts.delete('a', { version })]) {
    await expect(call).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^version/) as string,
    })
  }
  expect(await artifacts.versions('a')).toHaveLength(1)
})

test('saves at once get versions of their own', async () => {
  const artifacts = createArtifactService(storeInMemory())
  const saves = Array.from({ length: 20 }, (_, at) => artifacts.save('a', String(at)))
  const given = (await Promise.all(saves)).map(({ version }) => version)
  expect(given.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, at) => at))
})

test('content above the limit is refused, and nothing is saved', async () => {
  const artifacts = createArtifactService(storeInMemory(), { maxBytes: 3 })
  await expect(artifacts.save('a', 'abcd')).rejects.toMatchObject({ code: 'too_large' })
  expect(await artifacts.list()).toEqual([])
  expect(await artifacts.save('a', 'abc')).toMatchObject({ version: 0 })
})

test('prune removes old content that no version of any session has', async () => {
  let ageMs = 0
  const store = aged(storeInMemory(), () => ageMs)
  const artifacts = createArtifactService(store)
  await artifacts.save('a', 'dropped')
  await artifacts.save('b', 'kept')
  await artifacts.save('b', 'kept', { session: { sessionId: 's' } })
  await artifacts.delete('a')
  await artifacts.delete('b')
  expect(await artifacts.prune()).toBe(0)
  ageMs = 3_600_001
  expect(await artifacts.prune()).toBe('dropped'.length)
  expect(await artifacts.prune()).toBe(0)
  expect(await artifacts.load('b', { session: { sessionId: 's' } })).toMatchObject({ size: 4 })
})

test('content and records that the store did not get are reported as damage', async () => {
  const store = storeInMemory()
  const artifacts = createArtifactService(store)
  const { sha256 } = await artifacts.save('a', 'abc')
  const other = createArtifactService({
    ...store,
    open: async (area, digest, options) => store.open(area, digest, { ...options, maxBytes: 2 }),
  })
  await expect(other.load('a')).rejects.toMatchObject({ code: 'store_damaged' })
  await store.remove('artifacts', sha256, -1)
  await expect(artifacts.load('a')).rejects.toMatchObject({ code: 'store_damaged' })
  const [record] = await Array.fromAsync(store.records('artifacts'))
  if (record === undefined) throw new Error('the record is missing')
  for (const text of ['', '{', '[]', '{"v":2}', record.text.replace('"size":3', '"size":-1')]) {
    const present = await store.read('artifacts', record.key)
    await store.write('artifacts', record.key, text, present?.tag)
    await expect(artifacts.list()).rejects.toMatchObject({ code: 'store_damaged' })
    await expect(artifacts.save('a', 'x')).rejects.toMatchObject({ code: 'store_damaged' })
  }
})

test('a service needs a store, and knows its options', () => {
  expect(() => createArtifactService(undefined as never)).toThrow('store: must be a Store')
  expect(() => createArtifactService(storeInMemory(), { maxbytes: 1 } as never)).toThrow('maxBytes')
  expect(() => createArtifactService(storeInMemory(), { maxBytes: -1 })).toThrow('maxBytes -1')
})

async function loaded(artifacts: ArtifactService, version?: number): Promise<unknown> {
  const { data, mimeType, version: actual } = await artifacts.load('a.txt', { version })
  return { text: Buffer.from(data).toString(), mimeType, version: actual }
}

/** A store whose blobs are older than they are. */
function aged(store: Store, added: () => number): Store {
  return {
    ...store,
    async *blobs(area) {
      for await (const blob of store.blobs(area)) yield { ...blob, ageMs: blob.ageMs + added() }
    },
    remove: (area, sha256, ageMs) => store.remove(area, sha256, ageMs - added()),
  }
}

test.each(['list', 'versions', 'load', 'open', 'save', 'delete'] as const)(
  '%s ends with its signal',
  async (method) => {
    const artifacts = createArtifactService(storeInMemory())
    await artifacts.save('a', '0')
    const options = { signal: AbortSignal.abort() }
    const calls = {
      list: () => artifacts.list(options),
      versions: () => artifacts.versions('a', options),
      load: () => artifacts.load('a', options),
      open: () => artifacts.open('a', options),
      save: () => artifacts.save('a', '1', options),
      delete: () => artifacts.delete('a', options),
    }
    await expect(calls[method]()).rejects.toMatchObject({ code: 'aborted' })
    expect(await artifacts.versions('a')).toHaveLength(1)
  },
)

test('a record that lies under the key of another artifact is not listed', async () => {
  const store = storeInMemory()
  const artifacts = createArtifactService(store)
  await artifacts.save('a', 'text')
  const [record] = await Array.fromAsync(store.records('artifacts'))
  const { key, text, tag } = record ?? { key: '', text: '', tag: '' }
  await store.write('artifacts', key, text.replace('"name":"a"', '"name":"b"'), tag)
  await expect(artifacts.list()).rejects.toMatchObject({
    code: 'store_damaged',
    message: expect.stringContaining(key) as string,
  })
})

test('content of another size than the version tells is not loaded', async () => {
  const store = storeInMemory()
  const artifacts = createArtifactService(store)
  await artifacts.save('a', 'text')
  const [record] = await Array.fromAsync(store.records('artifacts'))
  const { key, text, tag } = record ?? { key: '', text: '', tag: '' }
  await store.write('artifacts', key, text.replace('"size":4', '"size":5'), tag)
  await expect(artifacts.load('a')).rejects.toMatchObject({ code: 'store_damaged' })
})
