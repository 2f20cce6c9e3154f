import { mkdirSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { findEnvironment } from '../../../../src/engines/pyodide/environment.ts'
import { SnapshotCache } from '../../../../src/engines/pyodide/snapshot-cache.ts'
import { SandglassError } from '../../../../src/errors/index.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, place, runOn, SPEC } from './fixture.ts'

const cache = sharedCache()
afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})
afterAll(() => cache[Symbol.dispose]())

const noDescriptors = (): Error => Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })

test('a shortage while wheels are read is reported as a shortage, and not remembered', async () => {
  using wheels = place()
  const environment = findEnvironment({ cacheDir: cache.path, wheels: wheels.path })
  vi.spyOn(files, 'readdir').mockRejectedValueOnce(noDescriptors())
  syncBuiltinESMExports()
  await expect(environment.wheels()).rejects.toMatchObject({
    code: 'sandbox_setup_failed',
    message: expect.stringContaining(
      `pyodide.wheels: ${wheels.path} cannot be read: this process has no file`,
    ) as string,
  })
  expect(await environment.wheels()).toEqual([])
})

test('a directory of wheels that is created later is found', async () => {
  using above = place()
  const environment = findEnvironment({ cacheDir: cache.path, wheels: join(above.path, 'wheels') })
  await expect(environment.wheels()).rejects.toMatchObject({ code: 'packages_unreadable' })
  mkdirSync(join(above.path, 'wheels'))
  expect(await environment.wheels()).toEqual([])
})

test('a shortage while the snapshot is read is reported as a shortage, and the next sandbox is made', async () => {
  await runOn(engineAt(cache.path), '') // so that there is a snapshot to look at
  const engine = engineAt(cache.path)
  const shortage = new SandglassError('sandbox_setup_failed', 'the snapshot cannot be read: no descriptor')
  vi.spyOn(SnapshotCache.prototype, 'isIntact').mockRejectedValueOnce(shortage)
  await expect(engine.create(SPEC)).rejects.toBe(shortage)
  expect((await runOn(engine, 'emit_result(1)')).finalData).toBe(1)
})

test('a snapshot that is damaged at every try is an error with a code', async () => {
  vi.spyOn(SnapshotCache.prototype, 'isIntact').mockResolvedValue(false)
  await expect(engineAt(cache.path).create(SPEC)).rejects.toMatchObject({ code: 'harness_start_failed' })
})
