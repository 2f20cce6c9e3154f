import { expect, onTestFinished, test, vi } from 'vitest'
import { WorkspaceLease } from '../../../src/persistence/index.ts'
import { storeInMemory } from '../../../src/stores/index.ts'
import { FakeWorkspace } from '../../support/fake-workspace.ts'

test.each([
  [
    'throws',
    () => {
      throw new Error('no such log')
    },
  ],
  ['rejects', () => Promise.reject(new Error('no such log'))],
])('a callback for errors that %s is a warning: the sandbox ends and the workspace is released', async (_, onError) => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const warned = ['onSyncError failed: no such log', { code: 'SANDGLASS_ON_SYNC_ERROR' }]
  const store = storeInMemory()
  const fake = new FakeWorkspace()
  // Nothing can be listed, so no synchronisation succeeds.
  fake.answer = ({ type, execution_id: id }) => {
    if (type === 'start') fake.frames({ type: 'started', execution_id: id, pid: 7 })
    fake.done(id, type === 'start' ? {} : { ending: null, error: { code: 'internal', message: 'it broke' } })
  }
  const lease = await WorkspaceLease.acquire(store, 'w')
  await fake.ws.persist(lease, new AbortController().signal, { maxBytes: 1024, onError })
  await fake.ws.exec('true')
  await vi.waitUntil(() => warn.mock.calls.length > 0, { timeout: 10_000 })
  await fake.ws.close()
  expect(warn.mock.calls).toEqual([warned, warned])
  expect(fake.isDestroyed).toBe(true)
  const next = await WorkspaceLease.acquire(store, 'w')
  await next.release()
})
