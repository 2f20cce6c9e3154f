import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import type { EnvironmentOptions } from '../../../src/index.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { newCache, newIndex } from '../../support/environments/indexed.ts'
import type { PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel, type Wheel } from '../../support/environments/wheel.ts'
import { eventually } from '../../support/eventually.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const KB = 1000
const DAY_MS = 86_400_000

const packageOf = (name: string): Wheel =>
  makeWheel({ name, files: { [`${name}/__init__.py`]: '', [`${name}/data`]: randomBytes(300 * KB) } })

/** Installs a package as a process of its own would; returns the key of the environment. */
async function install(index: PackageIndex, name: string, options: EnvironmentOptions): Promise<string> {
  const environments = new Environments({ index: index.address, ...options })
  const { environment } = await environments.prepare({ requirements: parseRequirements([name]), target: TARGET })
  environments.close()
  return environment.key
}

const keysIn = (cacheDir: string): string[] => readdirSync(join(cacheDir, 'environments')).toSorted()

function bytesIn(directory: string): number {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).reduce(
    (sum, name) => sum + (statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}

describe.skipIf(noUv !== undefined)('the cache', () => {
  test('frees the downloads, too, when an environment is removed or all are pruned', async () => {
    const index = await newIndex(packageOf('a'), packageOf('b'))
    const cacheDir = newCache()
    const environments = new Environments({ cacheDir })
    const first = await install(index, 'a', { cacheDir })
    expect(bytesIn(join(cacheDir, 'uv'))).toBeGreaterThan(300 * KB)
    expect(await environments.remove(first)).toBe(true)
    expect(bytesIn(join(cacheDir, 'uv'))).toBeLessThan(100 * KB)
    await install(index, 'b', { cacheDir })
    await environments.prune()
    expect([keysIn(cacheDir), bytesIn(join(cacheDir, 'uv')) < 100 * KB]).toEqual([[], true])
  })

  test('counts downloads and gives them up first, then what was used least recently', async () => {
    const index = await newIndex(...['a', 'b', 'c'].map(packageOf))
    const cacheDir = newCache()
    const a = await install(index, 'a', { cacheDir })
    expect(await new Environments({ cacheDir }).downloadBytes()).toBeLessThan(100 * KB)
    writeFileSync(join(cacheDir, 'uv', 'of-no-environment'), randomBytes(500 * KB))
    const b = await install(index, 'b', { cacheDir, maxBytes: 800 * KB })
    const kept = (): string | undefined => (existsSync(join(cacheDir, 'uv', 'of-no-environment')) ? 'kept' : undefined)
    expect(await eventually(kept, 5000)).toBeUndefined()
    expect(keysIn(cacheDir)).toEqual([a, b].toSorted())
    utimesSync(join(cacheDir, 'environments', a, 'record.json'), new Date(), new Date(Date.now() - DAY_MS))
    const c = await install(index, 'c', { cacheDir, maxBytes: 800 * KB })
    const late = await eventually(
      () => (existsSync(join(cacheDir, 'environments', a)) ? 'a is there' : undefined),
      5000,
    )
    expect(late).toBeUndefined()
    expect(keysIn(cacheDir)).toEqual([b, c].toSorted())
  })

  test('gives up what nobody used for so many days', async () => {
    const index = await newIndex(packageOf('a'), packageOf('b'))
    const cacheDir = newCache()
    const a = await install(index, 'a', { cacheDir })
    const used = new Date(Date.now() - 8 * DAY_MS)
    utimesSync(join(cacheDir, 'environments', a, 'record.json'), used, used)
    const b = await install(index, 'b', { cacheDir, maxAgeDays: 7 })
    const late = await eventually(() => (keysIn(cacheDir).join() === b ? undefined : keysIn(cacheDir).join()), 5000)
    expect(late).toBeUndefined()
  })
})
