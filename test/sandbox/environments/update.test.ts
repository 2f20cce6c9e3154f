import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Environments, parseRequirements } from '../../../src/environments/index.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { demo, helper, newCache, newIndex } from '../../support/environments/indexed.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)
const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const request = { requirements: parseRequirements(['demo']), target: TARGET }
const newer = makeWheel({ name: 'demo', version: '2.0', requires: ['helper'] })

describe.skipIf(noUv !== undefined)('the update of an environment', () => {
  test('that fails leaves the answer of the last time', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    using first = disposable(new Environments({ cacheDir, index: index.address }))
    const { environment } = await first.prepare(request)
    index.faults.status = 404
    using other = disposable(new Environments({ cacheDir }))
    await expect(other.update(environment.key, {})).rejects.toMatchObject({ code: 'dependency_not_found' })
    using offline = disposable(new Environments({ cacheDir, index: index.address, offline: true }))
    expect(await offline.prepare(request)).toMatchObject({ cached: true, environment: { key: environment.key } })
  })

  test('asks the index that was asked, and later runs get what it found', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    const address = index.address.replace('://', '://user:pass@')
    using first = disposable(new Environments({ cacheDir, index: address }))
    const { environment } = await first.prepare(request)
    await first.prepare({ ...request, requirements: parseRequirements(['demo<2']) })
    index.add(newer)
    using other = disposable(new Environments({ cacheDir }))
    const updated = await other.update(environment.key, {})
    expect(new Set(updated?.map((one) => one.environment.packages['demo']))).toEqual(new Set(['2.0', '1.0']))
    using later = disposable(new Environments({ cacheDir, index: address, offline: true }))
    expect(await later.prepare(request)).toMatchObject({ cached: true, environment: { packages: { demo: '2.0' } } })
    const saved = readdirSync(join(cacheDir, 'requests')).map((name) =>
      readFileSync(join(cacheDir, 'requests', name), 'utf8'),
    )
    expect(saved.join()).not.toContain('pass@')
  })

  test('keeps the limit of age, and asks again who may be installed', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    const options = { cacheDir, index: index.address, excludeNewer: '2021-01-01' }
    using first = disposable(new Environments(options))
    const { environment } = await first.prepare(request)
    index.faults.uploaded = '2022-01-01T00:00:00Z'
    using other = disposable(new Environments({ cacheDir }))
    await expect(other.update(environment.key, {})).rejects.toMatchObject({ code: 'dependency_too_new' })

    index.faults.uploaded = '2020-01-01T00:00:00Z'
    const own = newCache()
    using scripts = disposable(new Environments({ cacheDir: own, index: index.address, allow: ['demo', 'helper'] }))
    const { environment: named } = await scripts.prepare({ ...request, fromScript: true })
    index.add(makeWheel({ name: 'demo', version: '3.0', requires: ['evil'] }), makeWheel({ name: 'evil' }))
    using updater = disposable(new Environments({ cacheDir: own }))
    await expect(updater.update(named.key, {})).rejects.toMatchObject({
      code: 'dependency_not_allowed',
      message: /evil/,
    })
    expect(index.downloads).not.toContain('evil-1.0-py3-none-any.whl')
  })
})

function disposable(environments: Environments): Environments & Disposable {
  return Object.assign(environments, { [Symbol.dispose]: () => environments.close() })
}
