import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import {
  artifactServiceFromContext,
  createArtifactService,
  loadArtifactHelper,
  saveArtifactHelper,
  storeInMemory,
  withArtifactService,
  withArtifactSession,
} from '../../../src/artifacts/index.ts'

// WS-12
test('the helpers use the service and the session of the context', async () => {
  const service = createArtifactService(storeInMemory())
  const session = { appName: 'app', userId: 'u', sessionId: 's' }
  await withArtifactService(service, () =>
    withArtifactSession(session, async () => {
      await setImmediate()
      expect(artifactServiceFromContext()).toBe(service)
      expect(await saveArtifactHelper('a.txt', 'abc')).toBe(0)
      expect(await saveArtifactHelper('a.txt', 'def', 'text/markdown')).toBe(1)
      expect(await loadArtifactHelper('a.txt')).toEqual({
        data: new TextEncoder().encode('def'),
        mimeType: 'text/markdown',
        version: 1,
      })
      expect(await loadArtifactHelper('a.txt', 0)).toMatchObject({ mimeType: 'text/plain', version: 0 })
      expect(await loadArtifactHelper('a.txt', null)).toMatchObject({ version: 1 })
      // A method without a session takes that of the context, too.
      expect(await service.list()).toHaveLength(1)
    }),
  )
  expect(await service.list({ session })).toMatchObject([{ name: 'a.txt', version: 1 }])
  expect(await service.list()).toEqual([])
})

test('contexts at once do not mix', async () => {
  const service = createArtifactService(storeInMemory())
  const save = (sessionId: string): Promise<number> =>
    withArtifactSession({ sessionId }, async () => {
      await setImmediate()
      return saveArtifactHelper('a', sessionId)
    })
  expect(await withArtifactService(service, () => Promise.all([save('1'), save('2'), save('3')]))).toEqual([0, 0, 0])
})

test('a save without a session goes to the session without any id', async () => {
  const service = createArtifactService(storeInMemory())
  expect(await withArtifactService(service, () => saveArtifactHelper('a', 'x'))).toBe(0)
  expect(await service.load('a', { session: {} })).toMatchObject({ version: 0 })
})

test('outside of a service, the helpers say what is missing', async () => {
  expect(artifactServiceFromContext()).toBeUndefined()
  for (const call of [saveArtifactHelper('a', 'x'), loadArtifactHelper('a')]) {
    await expect(call).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('withArtifactService') as string,
    })
  }
  expect(() => withArtifactService({} as never, () => 1)).toThrow(TypeError)
  expect(() => withArtifactSession({ id: '1' } as never, () => 1)).toThrow(/^session: unknown key "id"/)
})
