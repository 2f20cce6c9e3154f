import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
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
  files: { 'demo/__init__.py': '', 'demo/data': randomBytes(300_000) },
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

function startHost(cacheDir: string, index: PackageIndex): { key: Promise<string>; kill: () => Promise<void> } {
  const child = spawn(process.execPath, [HOST, cacheDir, index.address, 'demo'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  return {
    key: text(child.stdout).then((said) => said.trim()),
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
    for (const ms of [150, 250, 350, 450, 550]) {
      const host = startHost(cacheDir, index)
      await sleep(ms)
      await host.kill()
    }
    expect(await prepare(cacheDir, index)).toMatch(/^[0-9a-f]{20}$/)
  }, 30_000)
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

describe.skipIf(noUv !== undefined || process.getuid?.() !== 0)('a disk that is full', () => {
  test('is reported, and nothing incomplete is left', async () => {
    const { index, cacheDir } = await setUp()
    execFileSync('rm', ['-r', cacheDir])
    execFileSync('mkdir', [cacheDir])
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0755', 'tmpfs', cacheDir])
    try {
      const environments = new Environments({
        cacheDir,
        index: index.address,
        ...('path' in uv ? { uv: uv.path } : {}),
      })
      const wanted = { requirements: parseRequirements(['demo']), target: TARGET }
      await expect(environments.prepare(wanted)).rejects.toMatchObject({ code: 'no_space' })
      expect(readdirSync(join(cacheDir, 'environments'))).toEqual([])
      environments.close()
    } finally {
      execFileSync('umount', ['-l', cacheDir])
    }
  })
})
