import { describe, expect, test } from 'vitest'
import { noUv } from '../../support/environments/fixture.ts'
import { declares, demo, helper, newCache, newIndex, open } from '../../support/environments/indexed.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(skip || noUv !== undefined)('a package that a script names', () => {
  test('is refused with a hint, unless the host named it as well', async () => {
    const index = await newIndex(demo, helper)
    await using sandglass = await open(index, newCache())
    await expect(sandglass.run(declares('demo'))).rejects.toMatchObject({
      code: 'dependency_not_allowed',
      message: expect.stringContaining("fromScript: 'declared'") as string,
    })
    expect(index.requests).toEqual([])
    expect((await sandglass.run(declares('demo'), { dependencies: ['demo'] })).finalData).toBe(1)
  })

  test('is accepted if the host allows it; every package of the lock is checked before a wheel is downloaded', async () => {
    const index = await newIndex(demo, helper)
    const asked: string[] = []
    const allow = ({ name }: { name: string }): boolean => {
      asked.push(name)
      return name !== 'helper'
    }
    const cacheDir = newCache()
    await using sandglass = await open(index, cacheDir, { environments: { fromScript: 'declared', allow } })
    await expect(sandglass.run(declares('demo'))).rejects.toMatchObject({
      code: 'dependency_not_allowed',
      message: /helper/,
    })
    expect(asked).toEqual(['demo', 'helper'])
    expect(index.downloads).toEqual([])
    await using other = await open(index, cacheDir, {
      environments: { fromScript: 'declared', allow: ['demo', 'helper'] },
    })
    expect((await other.run(declares('demo'))).finalData).toBe(1)
    await using known = await open(index, cacheDir, { environments: { fromScript: 'declared' } })
    await expect(known.run(declares('demo'))).rejects.toMatchObject({ code: 'dependency_not_allowed' })
  })

  test('stays on the host if no version of it is admitted: the index does not hear of it', async () => {
    const index = await newIndex(demo, helper, makeWheel({ name: 'other' }))
    for (const allow of ['known', ['demo', 'helper']] as const) {
      await using sandglass = await open(index, newCache(), { environments: { fromScript: 'declared', allow } })
      await expect(sandglass.run(declares('secret-of-a-script'))).rejects.toMatchObject({
        code: 'dependency_not_allowed',
        message: /^the script requires secret-of-a-script, which/,
      })
      const options = { untrusted: true, partial: true } as const
      await expect(sandglass.prepare(['secret-of-a-script', 'another-secret'], options)).resolves.toMatchObject({
        failed: [{ code: 'dependency_not_allowed' }, { code: 'dependency_not_allowed' }],
      })
    }
    expect(index.requests).toEqual([])
  })

  test('must be at least a week old', async () => {
    const index = await newIndex(demo, helper)
    index.faults.uploaded = new Date(Date.now() - 86_400_000).toISOString()
    await using sandglass = await open(index, newCache(), { environments: { fromScript: 'declared', allow: 'any' } })
    await expect(sandglass.run(declares('demo'))).rejects.toMatchObject({ code: 'dependency_too_new' })
    const dependencies = ['demo']
    expect((await sandglass.run('import demo\nemit_result(1)', { dependencies })).finalData).toBe(1)
    // A script that repeats a requirement of the host names nothing new.
    expect((await sandglass.run(declares('demo'), { dependencies })).error).toBeNull()
  })

  test('is derived from its imports only if a well-known package provides them', async () => {
    const index = await newIndex(makeWheel({ name: 'pyyaml', files: { 'yaml/__init__.py': 'VERSION = "1"\n' } }))
    await using sandglass = await open(index, newCache(), { environments: { fromScript: 'imports' } })
    const result = await sandglass.run('import yaml, json\nemit_result(yaml.VERSION)')
    expect(result).toMatchObject({ finalData: '1', environment: { packages: { pyyaml: '1.0' } } })
  })

  test('is installed only if the sandbox has the Python that the script requires', async () => {
    const index = await newIndex(demo, helper)
    await using sandglass = await open(index, newCache(), { dependencies: ['demo'] })
    const requires = (python: string): string =>
      declares('demo').replace('# dependencies', `# requires-python = "${python}"\n# dependencies`)
    expect((await sandglass.run(requires('>=3.10'))).finalData).toBe(1)
    await expect(sandglass.run(requires('>=4'))).rejects.toMatchObject({
      code: 'dependency_conflict',
      message: /requires-python of the script \(# \/\/\/ script\) is >=4, and the sandbox has Python 3\.\d+/,
    })
    await expect(sandglass.run(requires('3.x'))).rejects.toMatchObject({ code: 'dependency_invalid' })
  })
})

describe.skipIf(skip || noUv !== undefined)('packages that the host names beside those of a script', () => {
  test('are trusted in the versions that the host alone would get, with what they need', async () => {
    const index = await newIndex(demo, helper, makeWheel({ name: 'other' }))
    const environments = { fromScript: 'declared', allow: ['other'] } as const
    await using sandglass = await open(index, newCache(), { dependencies: ['demo'], environments })
    expect((await sandglass.run(declares('other'))).environment?.packages).toEqual({
      demo: '1.0',
      helper: '1.0',
      other: '1.0',
    })
    // The same name in a version of the script's choice is another package.
    index.add(makeWheel({ name: 'demo', version: '0.1' }))
    await expect(sandglass.run(declares('demo').replace('"demo"', '"demo<1"'))).rejects.toMatchObject({
      code: 'dependency_not_allowed',
      message: /demo/,
    })
    expect(index.downloads).not.toContain('demo-0.1-py3-none-any.whl')
  })
})
