import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import type { EnvironmentOptions } from '../../../src/index.ts'
import { makeCacheDir, noUv } from '../../support/environments/fixture.ts'
import { type IndexFaults, PackageIndex } from '../../support/environments/package-index.ts'
import { makeBomb, makeWheel, type Wheel } from '../../support/environments/wheel.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const MiB = 1024 * 1024

const caches: Disposable[] = []
const indexes: PackageIndex[] = []
afterAll(async () => {
  for (const index of indexes) await index[Symbol.asyncDispose]()
  for (const cache of caches) cache[Symbol.dispose]()
})

async function newIndex(wheels: readonly Wheel[], faults: IndexFaults = {}): Promise<PackageIndex> {
  const index = await PackageIndex.start(...wheels)
  Object.assign(index.faults, faults)
  indexes.push(index)
  return index
}

function newCache(): string {
  const cache = makeCacheDir()
  caches.push(cache)
  return cache.path
}

/** Installs one package and returns the directory of the environment. */
async function install(
  name: string,
  index: PackageIndex,
  options: EnvironmentOptions & { cacheDir: string },
): Promise<string> {
  const environments = new Environments({ index: index.address, ...options })
  try {
    const requirements = parseRequirements([name])
    return (await environments.prepare({ requirements, target: TARGET })).environment.path
  } finally {
    environments.close()
  }
}

/** The most that a measure reads while work goes on. */
async function peakOf<T>(
  measure: () => number,
  work: Promise<T>,
): Promise<{ peak: number; end: PromiseSettledResult<T> }> {
  let peak = 0
  const timer = setInterval(() => (peak = Math.max(peak, measure())), 20)
  const [end] = await Promise.allSettled([work])
  clearInterval(timer)
  return { peak, end }
}

/** Resident bytes of the largest process whose command line names a directory. */
function memoryOf(directory: string): number {
  const sizes = readdirSync('/proc').map((pid) => {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(directory)) return 0
      return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
    } catch {
      return 0
    }
  })
  return Math.max(0, ...sizes)
}

function bytesIn(directory: string): number {
  let bytes = 0
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    bytes += statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

describe.skipIf(noUv !== undefined)('an archive bomb', () => {
  test('of many files is stopped while it unpacks, and nothing of it is kept', async () => {
    const index = await newIndex([makeBomb('bomb', { files: 40, bytes: 100 * MiB })])
    const cacheDir = newCache()
    const { peak, end } = await peakOf(() => bytesIn(join(cacheDir, 'uv')), install('bomb', index, { cacheDir }))
    expect(end).toMatchObject({ status: 'rejected', reason: { code: 'dependency_invalid' } })
    expect(peak).toBeLessThan(2000 * MiB)
    expect(bytesIn(join(cacheDir, 'uv'))).toBeLessThan(MiB)
    expect(readdirSync(join(cacheDir, 'environments'))).toEqual([])
  }, 60_000)

  test('is told from a large package where the index tells no sizes: then the size of the cache is the limit', async () => {
    const index = await newIndex([makeBomb('large', { files: 6, bytes: 100 * MiB })], { plain: true })
    expect(await install('large', index, { cacheDir: newCache() })).toContain('/environments/')
    const cacheDir = newCache()
    await expect(install('large', index, { cacheDir, maxBytes: MiB })).rejects.toMatchObject({
      code: 'dependency_invalid',
      message: expect.stringContaining('environments.maxBytes') as string,
    })
  }, 60_000)
})

describe.skipIf(noUv !== undefined)('an index', () => {
  test('that floods the installer meets a limit of memory', async () => {
    const index = await newIndex([], { flood: true })
    const cacheDir = newCache()
    const { peak, end } = await peakOf(() => memoryOf(cacheDir), install('demo', index, { cacheDir }))
    expect(end).toMatchObject({
      status: 'rejected',
      reason: { code: 'index_unreachable', message: expect.stringContaining('memory') as string },
    })
    expect(peak).toBeLessThan(2200 * MiB)
  }, 60_000)

  test('is not named by a file in a directory above the cache', async () => {
    const [mine, foreign] = [await newIndex([]), await newIndex([makeWheel({ name: 'demo' })])]
    const cacheDir = newCache()
    writeFileSync(join(cacheDir, '..', 'uv.toml'), `[[index]]\nurl = "${foreign.address}"\n`)
    await expect(install('demo', mine, { cacheDir })).rejects.toMatchObject({ code: 'dependency_not_found' })
    expect(foreign.requests).toEqual([])
  })
})

describe.skipIf(noUv !== undefined)('the box of the installer', () => {
  test('closes everything of the cache that the host reads or starts', async () => {
    const index = await newIndex([])
    const cacheDir = newCache()
    const uv = join(cacheDir, '..', 'uv')
    const tries = ['bin/uv-0.13.9', 'environments/x', 'requests/x', 'targets/x', 'locks/x', 'x', 'uv/x', 'work/x']
    writeFileSync(
      uv,
      `#!/bin/sh\n[ "$1" = --version ] && exec echo uv 0.13.9\n${tries
        .map((path) => `(: >> '${cacheDir}/${path}') 2>/dev/null && echo "wrote ${path}" >&2\n`)
        .join('')}exit 1\n`,
      { mode: 0o755 },
    )
    const failure = await install('demo', index, { cacheDir, uv }).catch((error: Error) => error.message)
    expect([...String(failure).matchAll(/wrote (\S+)/g)].map(([, path]) => path)).toEqual(['x', 'uv/x', 'work/x'])
  })
})
