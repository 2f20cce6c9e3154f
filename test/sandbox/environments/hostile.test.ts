import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import type { EnvironmentOptions } from '../../../src/index.ts'
import { makeCacheDir, noUv } from '../../support/environments/fixture.ts'
import { type IndexFaults, PackageIndex } from '../../support/environments/package-index.ts'
import { makeBomb, makeWheel, type Wheel } from '../../support/environments/wheel.ts'
import { eventually } from '../../support/eventually.ts'
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

/** The maximum of a measure during some work. */
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

  test('is limited by the size of the cache if the index reports no sizes', async () => {
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
  test('that floods the installer reaches a limit of memory', async () => {
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
  test('makes everything in the cache that the host reads or starts read-only', async () => {
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

describe.skipIf(noUv !== undefined)('a wheel', () => {
  test('gives files no rights and no links', async () => {
    const modes = { 'demo/suid': 0o104755, 'demo/open': 0o100666, 'demo/closed': 0o100000, 'demo/link': 0o120777 }
    const files = {
      ...Object.fromEntries(Object.keys(modes).map((path) => [path, '/etc/passwd'])),
      'demo/__init__.py': '',
    }
    const index = await newIndex([makeWheel({ name: 'demo', files, modes })])
    const path = await install('demo', index, { cacheDir: newCache() })
    const found = Object.keys(modes).map((name) => [name, (lstatSync(join(path, name)).mode & 0o177777).toString(8)])
    expect(Object.fromEntries(found)).toEqual({
      'demo/suid': '100755',
      'demo/open': '100644',
      'demo/closed': '100644',
      'demo/link': '100755',
    })
  })

  test('cannot bring files for the homes of runs', async () => {
    const index = await newIndex([
      makeWheel({ name: 'demo', files: { 'demo/__init__.py': '', '.sandglass/home/.bashrc': 'x' } }),
    ])
    expect(readdirSync(await install('demo', index, { cacheDir: newCache() }))).not.toContain('.sandglass')
  })

  test('with a false list of files is compared with what is there', async () => {
    const index = await newIndex([
      makeWheel({
        name: 'demo',
        record: 'demo/ghost.py,sha256=abc,3\n../../../etc/passwd,sha256=abc,1\n/etc/shadow,,\n',
      }),
    ])
    using environments = disposable(new Environments({ cacheDir: newCache(), index: index.address }))
    const requirements = parseRequirements(['demo'])
    const { environment } = await environments.prepare({ requirements, target: TARGET })
    expect(await environments.verify(environment.key)).toEqual([])
    rmSync(join(environment.path, 'demo/__init__.py'))
    expect(await environments.verify(environment.key)).toEqual([{ path: 'demo/__init__.py', problem: 'missing' }])
  })
})

describe.skipIf(noUv !== undefined)('metadata of a wheel', () => {
  test.each([
    ['names a URL', { requires: ['helper @ git+file:///tmp/helper'] }],
    ['names a file', { requires: ['helper @ file:///etc/passwd'] }],
    ['names an option', { requires: ['-r /etc/passwd'] }],
  ])('that %s is invalid', async (_what, plan) => {
    const index = await newIndex([makeWheel({ name: 'demo', ...plan })])
    await expect(install('demo', index, { cacheDir: newCache() })).rejects.toMatchObject({ code: 'dependency_invalid' })
  })

  test('of another package is invalid', async () => {
    const index = await newIndex([{ ...makeWheel({ name: 'demo' }), metadata: makeWheel({ name: 'other' }).metadata }])
    await expect(install('demo', index, { cacheDir: newCache() })).rejects.toMatchObject({ code: 'dependency_invalid' })
  })
})

describe.skipIf(noUv !== undefined)('the cache', () => {
  test('may be named relative to the working directory', async () => {
    const index = await newIndex([makeWheel({ name: 'demo' })])
    const cacheDir = newCache()
    expect(await install('demo', index, { cacheDir: relative(process.cwd(), cacheDir) })).toContain(cacheDir)
  })

  test('is rid of what a killed installation left when the next one begins', async () => {
    const index = await newIndex([makeWheel({ name: 'demo' })])
    const cacheDir = newCache()
    for (const left of ['uv/.tmpLeft/x', 'work/left.new/packages/x']) {
      mkdirSync(join(cacheDir, left), { recursive: true })
    }
    await install('demo', index, { cacheDir })
    expect(readdirSync(join(cacheDir, 'work'))).toEqual([])
    expect(readdirSync(join(cacheDir, 'uv')).filter((name) => name.startsWith('.tmp'))).toEqual([])
  })

  test('keeps the answers to a thousand requests', async () => {
    const index = await newIndex([makeWheel({ name: 'demo' })])
    const cacheDir = newCache()
    mkdirSync(join(cacheDir, 'requests'), { recursive: true })
    for (let at = 0; at < 1100; at += 1) {
      const path = join(cacheDir, 'requests', `${at}.json`)
      writeFileSync(path, '{}')
      utimesSync(path, at, at)
    }
    await install('demo', index, { cacheDir })
    const left = await eventually(() => {
      const { length } = readdirSync(join(cacheDir, 'requests'))
      return length === 1000 ? undefined : `${length} are left`
    }, 5000)
    expect(left).toBeUndefined()
    expect(existsSync(join(cacheDir, 'requests', '1099.json'))).toBe(true)
  })
})

describe.skipIf(noUv !== undefined)('a caller', () => {
  const requirements = parseRequirements(['demo'])

  test('whose function throws gets its own error', async () => {
    const index = await newIndex([makeWheel({ name: 'demo' })])
    const cacheDir = newCache()
    const fails = (): never => {
      throw new RangeError('mine')
    }
    await expect(install('demo', index, { cacheDir, onProgress: fails })).rejects.toThrow(RangeError)
    using environments = disposable(new Environments({ cacheDir, index: index.address, allow: fails }))
    await expect(environments.prepare({ requirements, target: TARGET, fromScript: true })).rejects.toThrow(RangeError)
  })

  test('that stops waits no longer for what another one asked for', async () => {
    const index = await newIndex([makeWheel({ name: 'demo' })], { endless: 'page' })
    using environments = disposable(new Environments({ cacheDir: newCache(), index: index.address }))
    const both = new AbortController()
    const first = environments.prepare({ requirements, target: TARGET, signal: both.signal })
    const asked = await eventually(() => (index.requests.length > 0 ? undefined : 'nothing was asked'), 20_000)
    expect(asked).toBeUndefined()
    const second = environments.prepare({ requirements, target: TARGET, signal: AbortSignal.timeout(200) })
    await expect(second).rejects.toMatchObject({ code: 'aborted' })
    both.abort()
    await expect(first).rejects.toMatchObject({ code: 'aborted' })
  })

  test('that names another program as uv is told so', async () => {
    const index = await newIndex([])
    await expect(install('demo', index, { cacheDir: newCache(), uv: '/bin/true' })).rejects.toMatchObject({
      code: 'installer_missing',
      message: expect.stringContaining('/bin/true') as string,
    })
  })
})

function disposable(environments: Environments): Environments & Disposable {
  return Object.assign(environments, { [Symbol.dispose]: () => environments.close() })
}
