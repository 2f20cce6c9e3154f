import { createHash } from 'node:crypto'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Store } from '../../src/stores/index.ts'

const HELLO = createHash('sha256').update('hello').digest('hex')
const OTHER = createHash('sha256').update('other').digest('hex')

/** What every store does, whatever it keeps its bytes in. @param open makes an empty store. */
export function describeStore(open: () => Store | Promise<Store>): void {
  test('content is stored under its digest, and given back', async () => {
    const store = await open()
    expect(await store.put('a', 'hello')).toEqual({ sha256: HELLO, size: 5 })
    expect(await textOf(store, 'a', HELLO)).toBe('hello')
    expect(await store.has('a', HELLO)).toBe(true)
    expect(await store.has('a', OTHER)).toBe(false)
    expect(await store.open('a', OTHER)).toBeUndefined()
    await store.close()
  })

  test('bytes and pieces are stored as they are, also none', async () => {
    const store = await open()
    const all = Uint8Array.from({ length: 256 }, (_, at) => at)
    const { sha256 } = await store.put('a', all)
    expect(await bytesOf(store, 'a', sha256)).toEqual(Buffer.from(all))
    const reused = new Uint8Array(2)
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (const text of ['he', 'll', 'o!']) yield (reused.set(Buffer.from(text)), reused)
    }
    const pieced = await store.put('a', pieces())
    expect(await textOf(store, 'a', pieced.sha256)).toBe('hello!')
    const empty = await store.put('a', new Uint8Array())
    expect(await textOf(store, 'a', empty.sha256)).toBe('')
    await store.close()
  })

  test('a file of the host is stored as it is, and refused if it is none or changes meanwhile', async () => {
    const store = await open()
    const directory = mkdtempSync(join(tmpdir(), 'store-source-'))
    try {
      const path = join(directory, 'file')
      for (const content of [Buffer.alloc(0), Buffer.from('hello'), Buffer.alloc(3 * 1024 ** 2 + 7, 'some content')]) {
        writeFileSync(path, content)
        const sha256 = createHash('sha256').update(content).digest('hex')
        expect(await store.put('a', { path })).toEqual({ sha256, size: content.length })
        expect((await bytesOf(store, 'a', sha256)).equals(content)).toBe(true)
      }
      await expect(store.put('a', { path }, { maxBytes: 3 * 1024 ** 2 })).rejects.toMatchObject({ code: 'too_large' })
      for (const none of [directory, join(directory, 'none'), '/dev/null'])
        await expect(store.put('a', { path: none })).rejects.toMatchObject({
          code: 'invalid_request',
          message: expect.stringContaining(none) as string,
        })
      let isOver = false
      const change = (): void => {
        if (isOver) return
        appendFileSync(path, 'more')
        setImmediate(change)
      }
      change()
      await expect(store.put('a', { path })).rejects.toMatchObject({ code: 'invalid_request' })
      isOver = true
    } finally {
      rmSync(directory, { recursive: true })
    }
    await store.close()
  })

  test('content that is too long, or whose source fails, is not stored', async () => {
    const store = await open()
    await expect(store.put('a', 'hello', { maxBytes: 4 })).rejects.toMatchObject({ code: 'too_large' })
    expect(await store.put('a', 'hell', { maxBytes: 4 })).toMatchObject({ size: 4 })
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('hello')
      throw new Error('the source failed')
    }
    await expect(store.put('a', failing())).rejects.toThrow('the source failed')
    expect(await store.has('a', HELLO)).toBe(false)
    await expect(store.put('a', 7 as never)).rejects.toThrow(TypeError)
    await store.close()
  })

  test('a source that is not read to its end is ended', async () => {
    const store = await open()
    const ended = Promise.withResolvers<string>()
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield Buffer.from('hello')
      } finally {
        ended.resolve('ended')
      }
    }
    await expect(store.put('a', endless(), { maxBytes: 20 })).rejects.toMatchObject({ code: 'too_large' })
    expect(await ended.promise).toBe('ended')
    await store.close()
  })

  test('a signal ends a transfer, also of a source that waits forever', async () => {
    const store = await open()
    const waiting = new AbortController()
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('hello')
      setImmediate(() => waiting.abort())
      await new Promise(() => {})
    }
    await expect(store.put('a', silent(), { signal: waiting.signal })).rejects.toMatchObject({ code: 'aborted' })
    const stop = new AbortController()
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (let at = 0; ; at++) {
        if (at === 3) stop.abort()
        yield Buffer.from('hello')
      }
    }
    await expect(store.put('a', endless(), { signal: stop.signal })).rejects.toMatchObject({ code: 'aborted' })
    await store.put('a', 'hello')
    const reading = await store.open('a', HELLO, { signal: stop.signal })
    await expect(Array.fromAsync(reading ?? [])).rejects.toMatchObject({ code: 'aborted' })
    await store.close()
  })

  test('areas share nothing', async () => {
    const store = await open()
    await store.put('a', 'hello')
    await store.write('a', 'key', 'text', undefined)
    expect(await store.has('b', HELLO)).toBe(false)
    expect(await store.read('b', 'key')).toBeUndefined()
    await store.close()
  })

  test('blobs are listed with their sizes and ages, and removed when they are old enough', async () => {
    const store = await open()
    await store.put('a', 'hello')
    await store.put('a', 'other')
    const listed = await Array.fromAsync(store.blobs('a'))
    expect(listed.map(({ sha256, size }) => ({ sha256, size })).toSorted(byDigest)).toEqual(
      [HELLO, OTHER].map((sha256) => ({ sha256, size: 5 })).toSorted(byDigest),
    )
    // Clocks of servers count seconds, and may be ahead.
    for (const { ageMs } of listed) expect(ageMs).toBeLessThan(60_000)
    expect(await store.remove('a', HELLO, 60_000)).toBe(false)
    expect(await store.remove('a', HELLO, -60_000)).toBe(true)
    expect(await store.remove('a', HELLO, -60_000)).toBe(false)
    expect(await store.has('a', HELLO)).toBe(false)
    expect(await textOf(store, 'a', OTHER)).toBe('other')
    await store.close()
  })

  test('a record is written only by who knows its present state', async () => {
    const store = await open()
    expect(await store.read('a', 'some/key')).toBeUndefined()
    expect(await store.write('a', 'some/key', 'one', 'no-such-tag')).toBeUndefined()
    const first = await store.write('a', 'some/key', 'one', undefined)
    expect(first).toBeTypeOf('string')
    expect(await store.read('a', 'some/key')).toEqual({ key: 'some/key', text: 'one', tag: first })
    expect(await store.write('a', 'some/key', 'again', undefined)).toBeUndefined()
    const second = await store.write('a', 'some/key', 'two', first)
    expect(second).not.toBe(first)
    expect(await store.write('a', 'some/key', 'late', first)).toBeUndefined()
    expect(await store.read('a', 'some/key')).toEqual({ key: 'some/key', text: 'two', tag: second })
    await store.close()
  })

  test('of writers at once, one succeeds each time', async () => {
    const store = await open()
    let acknowledged = 0
    const writer = async (): Promise<void> => {
      for (let done = 0; done < 10;) {
        const present = await store.read('a', 'count')
        const next = String(Number(present?.text ?? 0) + 1)
        if ((await store.write('a', 'count', next, present?.tag)) === undefined) continue
        done++
        acknowledged++
      }
    }
    await Promise.all([writer(), writer(), writer()])
    expect(await store.read('a', 'count')).toMatchObject({ text: '30' })
    expect(acknowledged).toBe(30)
    await store.close()
  })

  test('records are listed by whole segments of their keys', async () => {
    const store = await open()
    for (const key of ['one/a', 'one/b', 'one-more/a', 'top']) await store.write('a', key, `in ${key}`, undefined)
    const below = async (prefix?: string): Promise<string[]> =>
      (await Array.fromAsync(store.records('a', prefix))).map(({ key, text }) => `${key}: ${text}`).toSorted()
    expect(await below('one')).toEqual(['one/a: in one/a', 'one/b: in one/b'])
    expect(await below()).toEqual(['one-more/a', 'one/a', 'one/b', 'top'].map((key) => `${key}: in ${key}`))
    expect(await below('none')).toEqual([])
    await store.close()
  })

  test.each(['', '.', '..', '../a', 'a/../../b', '/a', 'a/', 'A', 'a\0', 'a.b', 'é', 'x'.repeat(129), '-a'])(
    'the area and the key %j are refused',
    async (name) => {
      const store = await open()
      await expect(store.put(name, 'hello')).rejects.toThrow(TypeError)
      await expect(store.read('a', name)).rejects.toThrow(TypeError)
      await expect(store.write('a', name, 'text', undefined)).rejects.toThrow(TypeError)
      await expect(Array.fromAsync(store.records(name))).rejects.toThrow(TypeError)
      await store.close()
    },
  )

  test('a digest that is none, and a record that is too large, are refused', async () => {
    const store = await open()
    await expect(store.open('a', '../../../etc/passwd')).rejects.toThrow(TypeError)
    await expect(store.has('a', HELLO.toUpperCase())).rejects.toThrow(TypeError)
    await expect(store.remove('a', '', 0)).rejects.toThrow(TypeError)
    await expect(store.write('a', 'key', 'x'.repeat(8 * 1024 ** 2 + 1), undefined)).rejects.toMatchObject({
      code: 'too_large',
    })
    expect(await store.read('a', 'key')).toBeUndefined()
    await store.close()
  })
}

async function bytesOf(store: Store, area: string, sha256: string): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync((await store.open(area, sha256)) ?? [Buffer.from('nothing')]))
}

async function textOf(store: Store, area: string, sha256: string): Promise<string> {
  return (await bytesOf(store, area, sha256)).toString()
}

function byDigest(a: { readonly sha256: string }, b: { readonly sha256: string }): number {
  return a.sha256 < b.sha256 ? -1 : 1
}
