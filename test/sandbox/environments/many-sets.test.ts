import { join } from 'node:path'
import { readdirSync, renameSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { localEngine } from '../../../src/engines/local/index.ts'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import { createSandglass } from '../../../src/index.ts'
import type { SandboxEngine } from '../../../src/sandbox/index.ts'
import { makeCacheDir, noUv } from '../../support/environments/fixture.ts'
import { PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { eventually } from '../../support/eventually.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const NAMES = Array.from({ length: 35 }, (_, at) => `p${at}`)

describe.skipIf(skip || noUv !== undefined)('many sets of packages', () => {
  let index: PackageIndex
  const cache = makeCacheDir()
  const options = (): { cacheDir: string; index: string } => ({ cacheDir: cache.path, index: index.address })
  beforeAll(async () => {
    index = await PackageIndex.start(...NAMES.map((name) => makeWheel({ name })))
  })
  afterAll(async () => {
    await index[Symbol.asyncDispose]()
    cache[Symbol.dispose]()
  })

  test('are given back, but those in use and those asked for last', async () => {
    const environments = new Environments(options())
    const keys: string[] = []
    for (const name of NAMES) {
      const requirements = parseRequirements([name])
      keys.push((await environments.prepare({ requirements, target: TARGET })).environment.key)
    }
    const [first = '', second = '', third = '', fourth = ''] = keys
    // Asked for again: no longer among the oldest.
    await environments.prepare({ requirements: parseRequirements(['p1']), target: TARGET })
    environments.releaseUnused((path) => path.includes(first))
    const other = new Environments(options())
    const used = (await other.list()).filter(({ inUse }) => inUse).map(({ key }) => key)
    expect(new Set(used)).toEqual(new Set(keys.filter((key) => key !== third && key !== fourth)))
    expect(used).toContain(second)
    expect(await other.remove(third)).toBe(true)
    const again = await environments.prepare({ requirements: parseRequirements(['p2']), target: TARGET })
    expect(again).toMatchObject({ cached: false, environment: { key: third } })
    environments.close()
  }, 60_000)

  test('are finished one after the other, and again after a removal', async () => {
    const local = localEngine()
    let now = 0
    let most = 0
    const engine: SandboxEngine = {
      name: local.name,
      report: () => local.report(),
      close: () => local.close(),
      async create(spec, given) {
        if (given?.background !== true) return local.create(spec, given)
        most = Math.max(most, ++now)
        const sandbox = await local.create(spec, given)
        void sandbox.closed.then(() => (now -= 1))
        return sandbox
      },
    }
    await using sandglass = await createSandglass({ engine, poolSize: 1, environments: options() })
    const sets = NAMES.slice(0, 3).map((name) => [name])
    await Promise.all(sets.map((dependencies) => sandglass.prepare(dependencies)))
    expect(most).toBe(1)
    const environments = join(cache.path, 'environments')
    renameSync(environments, `${environments}-removed`)
    rmSync(`${environments}-removed`, { recursive: true })
    await sandglass.prepare(['p0'])
    const late = await eventually(() => {
      const files = readdirSync(environments, { recursive: true, encoding: 'utf8' })
      return files.some((name) => name.endsWith('.pyc')) ? undefined : 'no byte code was made'
    }, 5000)
    expect(late).toBeUndefined()
  }, 60_000)
})
