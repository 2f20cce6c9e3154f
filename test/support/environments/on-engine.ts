import { expect } from 'vitest'
import { createSandglass, type SandglassOptions } from '../../../src/index.ts'
import { eventually } from '../eventually.ts'
import { makeCacheDir } from './fixture.ts'
import { PackageIndex } from './package-index.ts'
import { makeWheel } from './wheel.ts'

/**
 * Installs packages for an engine and imports them; checks that byte code exists and that imported modules are preloaded, also one
 * that no line of the script imports.
 */
export async function importOn(options: SandglassOptions): Promise<void> {
  using cache = makeCacheDir()
  await using index = await PackageIndex.start(
    makeWheel({ name: 'demo', requires: ['helper', 'lazy'] }),
    makeWheel({ name: 'helper' }),
    makeWheel({ name: 'lazy', files: { 'lazy/__init__.py': '', 'lazy/late.py': '' } }),
    makeWheel({ name: 'foreign', tag: 'cp27-cp27m-win32' }),
  )
  const environments = { cacheDir: cache.path, index: index.address }
  await using sandglass = await createSandglass({ ...options, poolSize: 1, dependencies: ['demo'], environments })
  const script = `import sys
ahead = "demo" in sys.modules and "lazy.late" in sys.modules
import demo, helper, os, importlib
importlib.import_module("lazy.late")
emit_result([demo.VERSION, helper.VERSION, os.path.exists(demo.__cached__), ahead])`
  const first = await sandglass.run(script, { policy: 'standard' })
  expect(first).toMatchObject({
    error: null,
    environment: { packages: { demo: '1.0', helper: '1.0', lazy: '1.0' }, cached: false },
  })
  expect((first.finalData as unknown[]).slice(0, 2)).toEqual(['1.0', '1.0'])
  const late = await eventually(async () => {
    const { finalData } = await sandglass.run(script)
    const [, , hasByteCode, isAhead] = finalData as unknown[]
    return hasByteCode === true && isAhead === true ? undefined : JSON.stringify({ hasByteCode, isAhead })
  }, 60_000)
  expect(late).toBeUndefined()
  expect((await sandglass.run('import demo\nopen(demo.__file__, "a").write("x")')).success).toBe(false)
  await expect(sandglass.prepare(['foreign'])).rejects.toMatchObject({ code: 'dependency_no_wheel' })
}
