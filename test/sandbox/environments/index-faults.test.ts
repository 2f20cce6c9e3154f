import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { noUv } from '../../support/environments/fixture.ts'
import { demo, helper, IMPORT, newCache, newIndex, open } from '../../support/environments/indexed.ts'
import type { PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(skip || noUv !== undefined)('a failing index', () => {
  test.concurrent.each<[string, string[], (index: PackageIndex) => void, object, string, RegExp]>([
    ['no such package', ['absent'], () => {}, {}, 'dependency_not_found', /absent/],
    ['only for another Python', ['foreign'], () => {}, {}, 'dependency_no_wheel', /foreign.*Python 3/],
    ['versions that contradict', ['demo', 'helper<1'], () => {}, {}, 'dependency_conflict', /helper/],
    ['too new', ['demo'], () => {}, { excludeNewer: '2019-01-01' }, 'dependency_too_new', /2019-01-01/],
    [
      'another SHA-256 than promised',
      ['other'],
      (index) => (index.faults.lies = true),
      {},
      'dependency_invalid',
      /SHA-256|[Hh]ash/,
    ],
    ['no access', ['demo'], (index) => (index.faults.status = 401), {}, 'index_refused', /user name and password/],
    [
      'an answer that never ends',
      ['demo'],
      (index) => (index.faults.endless = 'page'),
      { timeoutMs: 2000 },
      'index_unreachable',
      /2000 ms/,
    ],
    [
      'a wheel that never ends',
      ['other'],
      (index) => (index.faults.endless = 'wheel'),
      { timeoutMs: 2000 },
      'index_unreachable',
      /2000 ms/,
    ],
    ['offline', ['demo'], () => {}, { offline: true }, 'index_unreachable|dependency_not_found', /demo/],
  ])('%s', async (_what, dependencies, setUp, environments, code, message) => {
    const foreign = makeWheel({ name: 'foreign', tag: 'cp27-cp27m-win32' })
    const index = await newIndex(demo, helper, foreign, makeWheel({ name: 'other' }))
    setUp(index)
    const cacheDir = newCache()
    const began = performance.now()
    await expect(open(index, cacheDir, { dependencies, environments })).rejects.toMatchObject({
      code: expect.stringMatching(code) as string,
      message: expect.stringMatching(message) as string,
    })
    expect(performance.now() - began).toBeLessThan(20_000)
    expect(readdirSync(join(cacheDir, 'environments'))).toEqual([])
    expect(readdirSync(join(cacheDir, 'work'))).toEqual([])
  })

  test('a password in its address is in no message and in no file of the cache', async () => {
    const index = await newIndex(demo)
    const cacheDir = newCache()
    const address = index.address.replace('//', '//user:hunter2secret@')
    await expect(
      open(index, cacheDir, { dependencies: ['demo'], environments: { index: address } }),
    ).rejects.toMatchObject({
      code: 'dependency_not_found',
      message: expect.not.stringContaining('hunter2secret') as string,
    })
    index.add(helper)
    await using sandglass = await open(index, cacheDir, { dependencies: ['demo'], environments: { index: address } })
    expect((await sandglass.run(IMPORT)).success).toBe(true)
    const { status } = spawnSync('grep', ['-rl', 'hunter2secret', cacheDir, '--exclude-dir=bin'])
    expect(status, 'grep found it').toBe(1)
  })
})
