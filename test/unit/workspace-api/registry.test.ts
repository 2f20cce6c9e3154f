import { describe, expect, test } from 'vitest'
import { type Workspace, type WorkspaceManager, WorkspaceRegistry } from '../../../src/workspace-api/index.ts'
import { eventually } from '../../support/eventually.ts'

/** A manager whose workspaces are numbers. */
class Counting implements WorkspaceManager {
  made = 0
  cleaned: string[] = []
  instance: string | Error = 'one'
  failures = 0

  async createWorkspace(): Promise<Workspace> {
    this.made += 1
    const { made } = this
    await Promise.resolve()
    if (this.failures > 0) {
      this.failures -= 1
      throw new Error('no room')
    }
    return { id: String(made), path: '/workspace' }
  }

  async cleanup(ws: Workspace): Promise<void> {
    this.cleaned.push(ws.id)
  }

  async instanceOf(): Promise<string> {
    if (this.instance instanceof Error) throw this.instance
    return this.instance
  }
}

describe('WS-25: the registry of workspaces', () => {
  test('reuse, and concurrent acquires: one id has one workspace, made once', async () => {
    const [registry, manager] = [new WorkspaceRegistry(), new Counting()]
    const found = await Promise.all([1, 2, 3].map(() => registry.acquire(manager, 'a')))
    expect([...new Set([...found, await registry.acquire(manager, 'a')])]).toEqual([{ id: '1', path: '/workspace' }])
    expect((await registry.acquire(manager, 'b')).id).toBe('2')
    await registry.release('a')
    await registry.release('none')
    expect([manager.made, manager.cleaned]).toEqual([2, ['1']])
    expect((await registry.acquire(manager, 'a')).id).toBe('3')
    await registry.close()
    expect(manager.cleaned.toSorted()).toEqual(['1', '2', '3'])
  })

  test('cancelled before a miss: nothing is made', async () => {
    const [registry, manager] = [new WorkspaceRegistry(), new Counting()]
    await expect(registry.acquire(manager, 'a', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'aborted',
    })
    expect(manager.made).toBe(0)
  })

  test('a caller that leaves does not end the creation for the others', async () => {
    const [registry, manager] = [new WorkspaceRegistry(), new Counting()]
    const controller = new AbortController()
    const left = registry.acquire(manager, 'a', { signal: controller.signal })
    const stayed = registry.acquire(manager, 'a')
    controller.abort()
    await expect(left).rejects.toMatchObject({ code: 'aborted' })
    expect([(await stayed).id, manager.made]).toEqual(['1', 1])
  })

  test('a failed creation is not kept', async () => {
    const [registry, manager] = [new WorkspaceRegistry(), new Counting()]
    manager.failures = 1
    await expect(registry.acquire(manager, 'a')).rejects.toThrow('no room')
    expect((await registry.acquire(manager, 'a')).id).toBe('2')
  })

  test('instance id changes: it is made again, once for all callers', async () => {
    const [registry, manager] = [new WorkspaceRegistry(), new Counting()]
    await registry.acquire(manager, 'a')
    manager.instance = 'two'
    const found = await Promise.all([1, 2, 3].map(() => registry.acquire(manager, 'a')))
    expect(found.map(({ id }) => id)).toEqual(['2', '2', '2'])
    expect([manager.made, manager.cleaned]).toEqual([2, ['1']])
  })

  test('instance validation fails: that is the error, and the workspace is kept', async () => {
    const [registry, manager] = [new WorkspaceRegistry(), new Counting()]
    await registry.acquire(manager, 'a')
    manager.instance = new Error('unknown')
    await expect(registry.acquire(manager, 'a')).rejects.toThrow('unknown')
    manager.instance = 'one'
    expect([(await registry.acquire(manager, 'a')).id, manager.cleaned]).toEqual(['1', []])
  })

  test('a workspace that nobody acquires for ttlMs is cleaned up', async () => {
    const [registry, manager] = [new WorkspaceRegistry({ ttlMs: 5 }), new Counting()]
    await registry.acquire(manager, 'a')
    expect(await eventually(() => (manager.cleaned.length === 1 ? undefined : 'not yet'), 10_000)).toBeUndefined()
    expect(manager.cleaned).toEqual(['1'])
    expect((await registry.acquire(manager, 'a')).id).toBe('2')
    await registry.close()
    expect(() => new WorkspaceRegistry({ ttlMs: 0 })).toThrow('ttlMs: 0 is not a whole number')
  })
})
