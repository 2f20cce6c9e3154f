import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import { makeCacheDir, noUv, uv } from '../../support/environments/fixture.ts'
import { type IndexFaults, PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { eventually } from '../../support/eventually.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)
const HOST = join(import.meta.dirname, '../../support/environments/install-host.main.ts')
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const demo = makeWheel({
  name: 'demo',
  requires: ['helper'],
  // The zeros take no space in the wheel: a disk that has room for the download can be full afterwards.
  files: { 'demo/__init__.py': '', 'demo/data': randomBytes(300_000), 'demo/zeros': Buffer.alloc(4_000_000) },
})
const helper = makeWheel({ name: 'helper' })

const indexes: PackageIndex[] = []
const caches: Disposable[] = []
afterAll(async () => {
  for (const index of indexes) await index[Symbol.asyncDispose]()
  for (const cache of caches) cache[Symbol.dispose]()
})

async function setUp(faults: IndexFaults = {}): Promise<{ index: PackageIndex; cacheDir: string }> {
  const index = await PackageIndex.start(demo, helper)
  Object.assign(index.faults, faults)
  indexes.push(index)
  const cache = makeCacheDir()
  caches.push(cache)
  return { index, cacheDir: cache.path }
}

interface Host {
  readonly key: Promise<string>
  /** Its output so far, and at least this many lines unless it ends before. */
  readonly lines: (count: number) => Promise<readonly string[]>
  readonly kill: () => Promise<void>
}

function startHost(cacheDir: string, index: PackageIndex): Host {
  const child = spawn(process.execPath, [HOST, cacheDir, index.address, 'demo'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  const lines = (): string[] => said.split('\n').slice(0, -1)
  return {
    key: ended.then(() => lines().at(-1) ?? ''),
    async lines(count) {
      const over = ended.then(() => true)
      while (lines().length < count && (await Promise.race([once(child.stdout, 'data'), over])) !== true);
      return lines()
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Processes whose command line names a directory. */
function processesIn(directory: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return line.includes(directory) ? [line] : []
      } catch {
        return []
      }
    })
}

async function prepare(cacheDir: string, index: PackageIndex): Promise<string> {
  const environments = new Environments({ cacheDir, index: index.address })
  try {
    const { environment } = await environments.prepare({ requirements: parseRequirements(['demo']), target: TARGET })
    expect(await environments.verify(environment.key)).toEqual([])
    return environment.key
  } finally {
    environments.close()
  }
}

describe.skipIf(noUv !== undefined)('a host that is killed', () => {
  test.concurrent.each<[string, IndexFaults['endless']]>([
    ['while versions are chosen', 'page'],
    ['while wheels arrive', 'wheel'],
  ])('%s leaves no uv behind, and the next one installs', async (_when, endless) => {
    const { index, cacheDir } = await setUp({ endless })
    const host = startHost(cacheDir, index)
    const asked = endless === 'page' ? '/simple/demo/' : `/files/${demo.filename}`
    expect(
      await eventually(() => (index.requests.includes(asked) ? undefined : 'nothing was asked'), 20_000),
    ).toBeUndefined()
    await host.kill()
    expect(await eventually(() => processesIn(cacheDir)[0], 5000)).toBeUndefined()
    index.faults.endless = undefined
    expect(await prepare(cacheDir, index)).toMatch(/^[0-9a-f]{20}$/)
  })

  test('at any moment leaves nothing that is taken as complete', async () => {
    const { index, cacheDir } = await setUp()
    const reached = new Set<string>()
    // After its first report, after its second one, and so on, until one ends before that.
    for (let count = 1, isOver = false; !isOver; count += 1) {
      const host = startHost(cacheDir, index)
      const lines = await host.lines(count)
      await host.kill()
      for (const line of lines) reached.add(line.split(' ')[0] ?? '')
      isOver = lines.length < count
      const environments = new Environments({ cacheDir })
      for (const { key } of await environments.list()) expect(await environments.verify(key)).toEqual([])
      environments.close()
    }
    expect([...reached]).toEqual(expect.arrayContaining(['resolve', 'download']))
    expect(await prepare(cacheDir, index)).toMatch(/^[0-9a-f]{20}$/)
  }, 60_000)
})

describe.skipIf(noUv !== undefined)('several hosts', () => {
  test('that need the same environment at the same time install it once', async () => {
    const { index, cacheDir } = await setUp()
    const keys = await Promise.all(Array.from({ length: 4 }, () => startHost(cacheDir, index).key))
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^[0-9a-f]{20}$/)
    expect(index.downloads.filter((name) => name === demo.filename)).toHaveLength(1)
  }, 30_000)

  test('that look at the same time who uses what do not take each other for users', async () => {
    const { index, cacheDir } = await setUp()
    await prepare(cacheDir, index)
    const lists = await Promise.all(Array.from({ length: 10 }, () => new Environments({ cacheDir }).list()))
    expect(lists.flat().map(({ inUse }) => inUse)).toEqual(Array(10).fill(false))
  })

  test('keep what they use: another one can neither remove nor prune it', async () => {
    const { index, cacheDir } = await setUp()
    const user = new Environments({ cacheDir, index: index.address })
    const { environment } = await user.prepare({ requirements: parseRequirements(['helper']), target: TARGET })
    const other = new Environments({ cacheDir })
    expect(await other.remove(environment.key)).toBe(false)
    expect(await other.prune()).toEqual([])
    expect(await other.list()).toMatchObject([{ key: environment.key, inUse: true }])
    user.close()
    expect(await other.list()).toMatchObject([{ inUse: false }])
    expect(await other.prune()).toEqual([environment.key])
  })
})

/** Installs on a disk of this size. Returns the code of the error, 'complete', or a description of what is left half done. */
async function prepareOnDisk(kib: number, cacheDir: string, index: PackageIndex): Promise<string> {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k,mode=0755`, 'tmpfs', cacheDir])
  const environments = new Environments({ cacheDir, index: index.address, ...('path' in uv ? { uv: uv.path } : {}) })
  try {
    const wanted = { requirements: parseRequirements(['demo']), target: TARGET }
    const { environment } = await environments.prepare(wanted)
    const problems = await environments.verify(environment.key)
    return problems?.length === 0 ? 'complete' : JSON.stringify(problems)
  } catch (error) {
    const left = await environments.list()
    return left.length === 0 ? (error as { code: string }).code : `left: ${JSON.stringify(left)}`
  } finally {
    environments.close()
    execFileSync('umount', ['-l', cacheDir])
  }
}

describe.skipIf(noUv !== undefined || process.getuid?.() !== 0)('a disk that is full', () => {
  test('at any point is reported, and nothing incomplete is left', async () => {
    const { index, cacheDir } = await setUp()
    const reached = new Set<string>()
    let outcome: string
    // With more space each time, until it is enough.
    for (let kib = 16; ; kib = Math.ceil(kib * 1.5)) {
      const before = index.requests.length
      outcome = await prepareOnDisk(kib, cacheDir, index)
      if (outcome !== 'no_space') break
      const asked = index.requests.slice(before)
      const isWheel = (path: string): boolean => path.startsWith('/files/') && path.endsWith('.whl')
      reached.add(asked.length === 0 ? 'nothing was asked' : asked.some(isWheel) ? 'wheels' : 'versions')
    }
    expect(outcome).toBe('complete')
    expect([...reached]).toEqual(['nothing was asked', 'versions', 'wheels'])
  }, 60_000)
})
