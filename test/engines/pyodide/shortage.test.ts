import { mkdirSync } from 'node:fs'
import * as files from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { prepare } from '../../../src/engines/pyodide/ground.ts'
import { SnapshotCache } from '../../../src/engines/pyodide/snapshot-cache.ts'
import { SandglassError } from '../../../src/errors/index.ts'
import { engineAt, place, runOn, SPEC } from './bed.ts'

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof files>()
  return { ...real, readdir: vi.fn<typeof real.readdir>(real.readdir) }
})

const cache = place()
afterEach(() => void vi.restoreAllMocks())
afterAll(() => cache[Symbol.dispose]())

const noDescriptors = (): Error => Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })

test('a shortage while wheels are read is told as what it is, and not for good', async () => {
  using wheels = place()
  const ground = prepare({ cacheDir: cache.path, wheels: wheels.path })
  vi.mocked(files.readdir).mockRejectedValueOnce(noDescriptors())
  await expect(ground.wheels()).rejects.toMatchObject({
    code: 'sandbox_setup_failed',
    message: expect.stringContaining(
      `pyodide.wheels: ${wheels.path} cannot be read: this process has no file`,
    ) as string,
  })
  expect(await ground.wheels()).toEqual({ files: [], modules: [] })
})

test('a directory of wheels that comes later is found then', async () => {
  using above = place()
  const ground = prepare({ cacheDir: cache.path, wheels: join(above.path, 'wheels') })
  await expect(ground.wheels()).rejects.toMatchObject({ code: 'packages_unreadable' })
  mkdirSync(join(above.path, 'wheels'))
  expect(await ground.wheels()).toEqual({ files: [], modules: [] })
})

test('a shortage while the snapshot is looked at is told as what it is, and the next sandbox is made', async () => {
  await runOn(engineAt(cache.path), '') // so that there is a snapshot to look at
  const engine = engineAt(cache.path)
  const shortage = new SandglassError('sandbox_setup_failed', 'the snapshot cannot be read: no descriptor')
  vi.spyOn(SnapshotCache.prototype, 'isWhole').mockRejectedValueOnce(shortage)
  await expect(engine.create(SPEC)).rejects.toBe(shortage)
  expect((await runOn(engine, 'emit_result(1)')).finalData).toBe(1)
})

test('a snapshot that is found damaged again and again is an error with a code', async () => {
  vi.spyOn(SnapshotCache.prototype, 'isWhole').mockResolvedValue(false)
  await expect(engineAt(cache.path).create(SPEC)).rejects.toMatchObject({ code: 'harness_start_failed' })
})
