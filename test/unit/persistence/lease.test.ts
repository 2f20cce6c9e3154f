import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { findStored, listStored, removeStored, WorkspaceLease } from '../../../src/persistence/index.ts'
import { readRecord, writeRecord } from '../../../src/persistence/record.ts'
import { StoredTrees } from '../../../src/persistence/stored-trees.ts'
import { type Store, storeInMemory } from '../../../src/stores/index.ts'

/** Short enough for a test that waits for one to expire, or to be renewed. Where a rival waits, a process that stands still loses it. */
const LEASE_MS = 150
/** No process stands still for as long, and who waits looks every 200 ms. */
const RIVALS_LEASE_MS = 6000
const SHA = 'b'.repeat(64)

test('a workspace has one owner, who can let go of it', async () => {
  const store = storeInMemory()
  const lease = await WorkspaceLease.acquire(store, 'w')
  await expect(WorkspaceLease.acquire(store, 'w')).rejects.toMatchObject({ code: 'workspace_owned' })
  expect((await WorkspaceLease.acquire(store, 'other')).record.generation).toBe(1)
  await lease.release()
  await expect(lease.update((record) => record)).rejects.toMatchObject({ code: 'workspace_closed' })
  const next = await WorkspaceLease.acquire(store, 'w')
  expect(next.record.generation).toBe(2)
  await next.release()
})

test('a change that is asked for before a release is made, one that is asked for behind it is refused', async () => {
  const store = storeInMemory()
  const lease = await WorkspaceLease.acquire(store, 'w')
  const tree = { sha256: SHA, files: 1, bytes: 2, at: new Date(0).toISOString() }
  const [early, released, late] = await Promise.allSettled([
    lease.update((record) => ({ ...record, tree })),
    lease.release(),
    lease.update((record) => ({ ...record, tree: null })),
  ])
  expect([early.status, released.status]).toEqual(['fulfilled', 'fulfilled'])
  expect(late).toMatchObject({ status: 'rejected', reason: { code: 'workspace_closed' } })
  expect((await readRecord(store, 'w')).record).toEqual({ id: 'w', generation: 1, owner: null, tree, checkpoints: [] })
})

test('nobody who lets go of a workspace waits longer than 5 s for a store that never answers', async () => {
  vi.useFakeTimers()
  try {
    const memory = storeInMemory()
    let isHung = false
    const store: Store = {
      ...memory,
      write: async (...args) => (isHung ? new Promise<never>(() => {}) : memory.write(...args)),
    }
    const lease = await WorkspaceLease.acquire(store, 'w')
    isHung = true
    void lease.update((record) => record)
    const settled: string[] = []
    const first = lease.release().then(() => settled.push('first'))
    await vi.advanceTimersByTimeAsync(4000)
    const second = lease.release().then(() => settled.push('second'))
    expect(settled).toEqual([])
    await vi.advanceTimersByTimeAsync(1000)
    await Promise.all([first, second])
    expect(settled).toEqual(['first', 'second'])
  } finally {
    vi.useRealTimers()
  }
})

test('a store that fails once while a workspace is acquired leaves it without an owner', async () => {
  const memory = storeInMemory()
  let writes = 0
  const store: Store = {
    ...memory,
    async write(...args) {
      writes += 1
      if (writes === 2) throw new SandglassError('store_unreachable', 'it is down')
      return memory.write(...args)
    },
  }
  await expect(WorkspaceLease.acquire(store, 'w')).rejects.toMatchObject({ code: 'store_unreachable' })
  const lease = await WorkspaceLease.acquire(store, 'w')
  expect(lease.record.generation).toBe(2)
  await lease.release()
})

test('of owners who ask at once, one gets a workspace', async () => {
  const store = storeInMemory()
  const asked = await Promise.allSettled([1, 2, 3].map(() => WorkspaceLease.acquire(store, 'w')))
  const got = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const refused = asked.flatMap((one) => (one.status === 'rejected' ? [(one.reason as SandglassError).code] : []))
  expect([got.length, refused]).toEqual([1, ['workspace_owned', 'workspace_owned']])
  expect((await readRecord(store, 'w')).record.generation).toBe(1)
  for (const lease of got) await lease.release()
})

test('who waits gets a workspace when its owner lets go, and an abort ends the wait', async () => {
  const store = storeInMemory()
  const lease = await WorkspaceLease.acquire(store, 'w', { leaseMs: RIVALS_LEASE_MS })
  const options = { leaseMs: RIVALS_LEASE_MS, waitMs: 60_000 }
  const aborted = new AbortController()
  const impatient = WorkspaceLease.acquire(store, 'w', { ...options, signal: aborted.signal })
  const waiting = WorkspaceLease.acquire(store, 'w', options)
  aborted.abort()
  await expect(impatient).rejects.toMatchObject({ code: 'aborted' })
  // The wait outlasts renewals.
  await lease.update((record) => record)
  await lease.update((record) => record)
  expect((await readRecord(store, 'w')).record.generation).toBe(1)
  await lease.release()
  const next = await waiting
  expect(next.record.generation).toBe(2)
  await next.release()
})

test('an owner renews its lease by itself', async () => {
  const store = storeInMemory()
  const lease = await WorkspaceLease.acquire(store, 'w', { leaseMs: LEASE_MS })
  const renewed = lease.record.owner?.renewedAt
  await vi.waitUntil(() => lease.record.owner?.renewedAt !== renewed, { timeout: 10_000 })
  expect((await readRecord(store, 'w')).record).toEqual(lease.record)
  await lease.release()
})

test.each([
  ['now', 0],
  ['an hour ago by its clock', -3_600_000],
  ['in an hour by its clock', 3_600_000],
])(
  'a dead owner of another machine, last seen %s, is followed after a whole lease, and cannot write again',
  async (_, skewMs) => {
    const { store, stopped } = await deadOwner(skewMs)
    const began = performance.now()
    const next = await WorkspaceLease.acquire(store, 'w', { leaseMs: LEASE_MS, waitMs: 60_000 })
    expect(performance.now() - began).toBeGreaterThanOrEqual(LEASE_MS)
    expect(next.record.generation).toBe(2)
    const lost: string[] = []
    stopped.lease.onLost = ({ code }) => lost.push(code)
    stopped.wake()
    await expect(stopped.lease.update((record) => record)).rejects.toMatchObject({ code: 'workspace_owned' })
    expect([lost, (await readRecord(store, 'w')).record.generation]).toEqual([['workspace_owned'], 2])
    await next.release()
  },
)

test('without waitSec, an owner whose clock is far off but who renews its lease is seen as alive', async () => {
  const store = storeInMemory()
  const lease = await WorkspaceLease.acquire(store, 'w', { leaseMs: RIVALS_LEASE_MS })
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
  try {
    const acquiring = WorkspaceLease.acquire(store, 'w', { leaseMs: RIVALS_LEASE_MS })
    // The rival has read the record by the next turn.
    await setImmediate()
    await lease.update((record) => record)
    await expect(acquiring).rejects.toMatchObject({ code: 'workspace_owned' })
  } finally {
    vi.useRealTimers()
    await lease.release()
  }
})

test('a write that failed and was made all the same does not end a lease', async () => {
  const memory = storeInMemory()
  let fails = false
  const store: Store = {
    ...memory,
    async write(...args) {
      const tag = await memory.write(...args)
      if (fails) throw new Error('500')
      return tag
    },
  }
  const lease = await WorkspaceLease.acquire(store, 'w')
  const tree = { sha256: SHA, files: 1, bytes: 2, at: new Date(0).toISOString() }
  fails = true
  await expect(lease.update((record) => ({ ...record, tree }))).rejects.toThrow('500')
  fails = false
  await lease.update((record) => ({ ...record, tree: { ...tree, files: 2 } }))
  expect((await readRecord(store, 'w')).record.tree?.files).toBe(2)
  await lease.release()
})

test('a store without conditional writes is refused', async () => {
  const memory = storeInMemory()
  const careless: Store = {
    ...memory,
    async write(area, key, text) {
      return memory.write(area, key, text, (await memory.read(area, key))?.tag)
    },
  }
  await expect(WorkspaceLease.acquire(careless, 'w')).rejects.toMatchObject({ code: 'store_unusable' })
})

test('a record of something else is refused', async () => {
  const store = storeInMemory()
  const lease = await WorkspaceLease.acquire(store, 'w')
  await lease.release()
  for await (const { key, tag } of store.records('workspaces')) await store.write('workspaces', key, '{"v":2}', tag)
  await expect(WorkspaceLease.acquire(store, 'w')).rejects.toMatchObject({ code: 'store_damaged' })
})

test('workspaces are listed, found and removed with their content; one that has an owner is not', async () => {
  const store = storeInMemory()
  const trees = new StoredTrees(store, 'w')
  const lease = await WorkspaceLease.acquire(store, 'w')
  const { sha256, size } = await trees.put('abc')
  const tree = await trees.save([{ kind: 'file', path: 'f', mode: 0o644, size, sha256 }], new Date(0))
  await lease.update((record) => ({ ...record, tree }))
  await expect(removeStored(store, 'w')).rejects.toMatchObject({ code: 'workspace_owned' })
  await lease.release()
  expect(
    (await listStored(store)).map(({ id, tree: state, owner }) => [id, state?.files, state?.bytes, owner]),
  ).toEqual([['w', 1, 3, null]])
  expect((await removeStored(store, 'w')).id).toBe('w')
  expect(await listStored(store)).toEqual([])
  await expect(findStored(store, 'w')).rejects.toMatchObject({ code: 'workspace_not_found' })
  await expect(trees.load(tree)).rejects.toMatchObject({ code: 'store_damaged' })
})

/** An owner whose writes do not arrive any more, until it wakes. */
async function deadOwner(
  skewMs: number,
): Promise<{ store: Store; stopped: { lease: WorkspaceLease; wake: () => void } }> {
  const store = storeInMemory()
  let isStopped = false
  const itsStore: Store = {
    ...store,
    async write(...args) {
      if (isStopped) throw new Error('stopped')
      return store.write(...args)
    },
  }
  const lease = await WorkspaceLease.acquire(itsStore, 'w', { leaseMs: LEASE_MS })
  const { record, tag } = await readRecord(store, 'w')
  const renewedAt = new Date(Date.now() + skewMs).toISOString()
  const owner = record.owner === null ? null : { ...record.owner, renewedAt, process: null }
  await writeRecord(store, { ...record, owner }, tag)
  isStopped = true
  return { store, stopped: { lease, wake: () => (isStopped = false) } }
}
