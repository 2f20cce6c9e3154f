import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { storeInDirectory, storeInMemory, type Store } from '../../../src/artifacts/index.ts'
import { WorkspaceLease } from '../../../src/persistence/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { ActivityWorkspace } from '../../../src/workspace/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const noMount = process.getuid?.() !== 0
const MiB = 1024 ** 2
/** The content of a file, and its name in a store. */
const CONTENT = 'kept'
const CONTENT_SHA256 = createHash('sha256').update(CONTENT).digest('hex')
/** The 5 s that a store has to take the end of a lease, once and not twice, and time to end the sandboxes. */
const SETTLING_MS = 9000

describe.skipIf(skip)('the store of a persisted workspace', () => {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
  }, 60_000)
  afterAll(() => sg.close())

  test.skipIf(noMount)('that is full, then read-only, then neither, keeps a whole state all the time', async () => {
    using disk = mountDisk('2m')
    const store = storeInDirectory(join(disk.path, 'store'))
    const errors: unknown[] = []
    const ws = await sg.workspace({ persist: 'w', store, onSyncError: (error) => errors.push(error) })
    await ws.put({ a: '1' })
    const { syncedAt } = await ws.sync()
    await ws.put({ a: '2', large: Buffer.alloc(3 * MiB, 'x') })
    await expect(ws.sync()).rejects.toMatchObject({ code: 'no_space' })
    await ws.remove('large')
    execFileSync('mount', ['-o', 'remount,ro', disk.path])
    await expect(ws.sync()).rejects.toMatchObject({ code: 'store_unusable' })
    await expect(ws.checkpoint()).rejects.toMatchObject({ code: 'store_unusable' })
    expect([ws.syncedAt, errors.length > 0]).toEqual([syncedAt, true])
    await expect(sg.workspace({ persist: 'other', store })).rejects.toMatchObject({ code: 'store_unusable' })
    execFileSync('mount', ['-o', 'remount,rw', disk.path])
    expect((await ws.sync()).files).toBe(1)
    await ws.close()
    await using next = await sg.workspace({ persist: 'w', store })
    expect(Buffer.from(await next.get('a')).toString()).toBe('2')
  })

  test('that is slow delays neither scripts nor programs, and has everything in the end', async () => {
    const gate = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const memory = storeInMemory()
    const store: Store = {
      ...memory,
      async put(...args) {
        asked.resolve()
        await gate.promise
        return memory.put(...args)
      },
    }
    await using ws = await sg.workspace({ persist: 'slow', store })
    await ws.put({ a: '1' })
    await asked.promise
    expect((await ws.run('open("b", "w").write("2")')).error).toBeNull()
    expect((await ws.exec('cat', ['a', 'b'])).stdout).toBe('12')
    expect(ws.syncedAt).toBeUndefined()
    gate.resolve()
    expect((await ws.sync()).files).toBe(2)
  })

  test('that answers 500 for a while fails a synchronisation and a restore, and no more once it answers again', async () => {
    const memory = storeInMemory()
    let isBroken = false
    const answer = async <T>(work: () => Promise<T>): Promise<T> => {
      if (isBroken) throw new Error('500')
      return work()
    }
    const store: Store = {
      ...memory,
      put: (...args) => answer(() => memory.put(...args)),
      open: (...args) => answer(() => memory.open(...args)),
      read: (...args) => answer(() => memory.read(...args)),
      write: (...args) => answer(() => memory.write(...args)),
    }
    const errors: unknown[] = []
    const ws = await sg.workspace({ persist: 'w', store, onSyncError: (error) => errors.push(error) })
    await ws.put({ a: '1' })
    const point = await ws.checkpoint()
    await ws.put({ a: '2' })
    await ws.sync()
    isBroken = true
    await expect(ws.restore(point)).rejects.toThrow('500')
    await ws.put({ a: '3' })
    await vi.waitUntil(() => errors.length > 0, { timeout: 20_000 })
    await expect(sg.workspace({ persist: 'other', store })).rejects.toThrow('500')
    isBroken = false
    expect((await ws.restore(point)).written).toBe(1)
    await ws.close()
    await using next = await sg.workspace({ persist: 'w', store })
    expect(Buffer.from(await next.get('a')).toString()).toBe('1')
  })

  test('that gives another object for a file gives no workspace, and no half of a restored file', async () => {
    using disk = temporary()
    const store = storeInDirectory(disk.path)
    const first = await sg.workspace({ persist: 'w', store })
    await first.put({ large: Buffer.alloc(5 * MiB, 'x') })
    const point = await first.checkpoint()
    await first.put({ large: Buffer.alloc(5 * MiB, 'y') })
    await first.sync()
    const damage = (): void => {
      const large = blobsOf(disk.path).filter((path) => statSync(path).size === 5 * MiB)
      expect(large).toHaveLength(2)
      for (const path of large) writeFileSync(path, Buffer.alloc(5 * MiB, 'z'))
    }
    damage()
    const damaged = { code: 'store_damaged' }
    await expect(first.restore(point)).rejects.toMatchObject(damaged)
    expect(Buffer.from(await first.get('large')).equals(Buffer.alloc(5 * MiB, 'y'))).toBe(true)
    await first.close()
    damage() // what changed last was stored again
    await expect(sg.workspace({ persist: 'w', store })).rejects.toMatchObject(damaged)
    // Nobody owns it after that.
    await expect(sg.workspace({ persist: 'w', store })).rejects.toMatchObject(damaged)
  })

  test.concurrent('that never answers any more holds up neither the end of a workspace nor that of an attempt to open one', async () => {
    const memory = storeInMemory()
    let isHung = false
    const answer = async <T>(work: () => Promise<T>): Promise<T> => (isHung ? new Promise<T>(() => {}) : work())
    const store: Store = {
      ...memory,
      put: (...args) => answer(() => memory.put(...args)),
      read: (...args) => answer(() => memory.read(...args)),
      write: (...args) => answer(() => memory.write(...args)),
    }
    const ws = await sg.workspace()
    if (!(ws instanceof ActivityWorkspace)) throw new Error('it is one')
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    const lease = await WorkspaceLease.acquire(store, 'w')
    await ws.persist(lease, new AbortController().signal, { maxBytes: MiB, lastSyncMs: 200, onError })
    isHung = true
    await ws.put({ a: '1' })
    await ws.close()
    expect(errors).toMatchObject([{ code: 'store_unreachable', message: expect.stringContaining('0.2 s') as string }])
    const late = AbortSignal.timeout(200)
    await expect(sg.workspace({ persist: 'other', store, signal: late })).rejects.toMatchObject({ code: 'aborted' })
  })

  test('whose restore is aborted midway has each file from before or after it, and a second restore makes it whole', async () => {
    const memory = storeInMemory()
    const asked = Promise.withResolvers<void>()
    let isHung = false
    const store: Store = {
      ...memory,
      async open(area, sha256, options) {
        if (!isHung || sha256 !== CONTENT_SHA256) return memory.open(area, sha256, options)
        asked.resolve()
        return new Promise<never>(() => {})
      },
    }
    await using ws = await sg.workspace({ persist: 'w', store, files: { a: 'first', b: CONTENT } })
    const point = await ws.checkpoint()
    await ws.put({ a: 'changed', b: 'changed', c: 'new' })
    const read = async (path: string): Promise<string> => Buffer.from(await ws.get(path)).toString()
    isHung = true
    const aborted = new AbortController()
    const restoring = ws.restore(point, { signal: aborted.signal })
    restoring.catch(() => undefined)
    await asked.promise
    aborted.abort()
    await expect(restoring).rejects.toMatchObject({ code: 'aborted' })
    expect(['first', 'changed']).toContain(await read('a'))
    expect(await read('b')).toBe('changed')
    isHung = false
    await ws.restore(point)
    expect([await read('a'), await read('b')]).toEqual(['first', CONTENT])
    expect((await Array.fromAsync(ws.list())).map(({ path }) => path)).toEqual(['a', 'b'])
  })

  test.concurrent('that never answers any more holds up no call, neither beyond its signal nor beyond the end of the workspace', async () => {
    const memory = storeInMemory()
    let isHung = false
    const never = new Promise<never>(() => {})
    const store: Store = {
      ...memory,
      open: (...args) => (isHung ? never : memory.open(...args)),
      put: (...args) => (isHung ? never : memory.put(...args)),
      write: (...args) => (isHung ? never : memory.write(...args)),
    }
    const ws = await sg.workspace()
    if (!(ws instanceof ActivityWorkspace)) throw new Error('it is one')
    const lease = await WorkspaceLease.acquire(store, 'w')
    const { signal } = new AbortController()
    await ws.persist(lease, signal, { maxBytes: MiB, lastSyncMs: 200, onError: () => undefined })
    const point = await ws.checkpoint()
    isHung = true
    await ws.put({ a: '1' })
    const late = { signal: AbortSignal.timeout(300) }
    const bySignal = [ws.sync(late), ws.checkpoint(late), ws.restore(point, late)]
    const byEnd = [
      ws.sync(),
      ws.sync({ signal }),
      ws.checkpoint({ signal }),
      ws.restore(point, { signal }),
      ws.restore(point),
    ]
    const codesOf = async (calls: readonly Promise<unknown>[]): Promise<unknown[]> =>
      (await Promise.allSettled(calls)).map((call) =>
        call.status === 'rejected' ? (call.reason as { code: unknown }).code : 'none',
      )
    const ended = codesOf(byEnd)
    expect(await codesOf(bySignal)).toEqual(bySignal.map(() => 'aborted'))
    await ws.close()
    expect(await ended).toEqual(byEnd.map(() => 'workspace_closed'))
  })

  test.concurrent.each([
    ['the list of files', (sha256: string) => sha256 !== CONTENT_SHA256],
    ['a file', (sha256: string) => sha256 === CONTENT_SHA256],
  ])(
    'that never answers any more once a restore has asked for %s holds up neither a signal nor the end of a Sandglass',
    async (_, hangsAt) => {
      const memory = storeInMemory()
      for (const persist of ['signal', 'end']) {
        const first = await sg.workspace({ persist, store: memory, files: { f: CONTENT } })
        await first.close()
      }
      const asked = Promise.withResolvers<void>()
      let restores = 0
      const never = new Promise<never>(() => {})
      const answer = async <T>(work: () => Promise<T>): Promise<T> => (restores === 2 ? never : work())
      const store: Store = {
        ...memory,
        open: async (area, sha256, options) => {
          if (!hangsAt(sha256)) return memory.open(area, sha256, options)
          restores += 1
          if (restores === 2) asked.resolve()
          return never
        },
        read: (...args) => answer(() => memory.read(...args)),
        write: (...args) => answer(() => memory.write(...args)),
      }
      const own = await createSandglass({ engine: 'local', poolSize: 0 })
      const aborted = new AbortController()
      const bySignal = own.workspace({ persist: 'signal', store, signal: aborted.signal })
      const byEnd = own.workspace({ persist: 'end', store })
      await asked.promise
      const began = performance.now()
      aborted.abort()
      await Promise.all([
        expect(bySignal).rejects.toMatchObject({ code: 'aborted' }),
        expect(byEnd).rejects.toMatchObject({ code: 'aborted' }),
        own.close(),
      ])
      expect(performance.now() - began).toBeLessThan(SETTLING_MS)
    },
  )
})

function blobsOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes('/blobs/'))
    .map((entry) => join(entry.parentPath, entry.name))
}

function temporary(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'persist-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

function mountDisk(size: string): { readonly path: string } & Disposable {
  const { path } = temporary()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path])
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', [path])
      rmSync(path, { recursive: true })
    },
  }
}
