import { describe, expect, test } from 'vitest'
import { createSandglass } from '../../../src/index.ts'
import { makeCacheDir, noUv } from '../../support/environments/fixture.ts'
import { importOn } from '../../support/environments/on-engine.ts'
import { PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { skipFor } from '../../support/required.ts'

if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(noUv !== undefined)('packages on demand in WebAssembly', () => {
  test('pyodide imports declared packages', async () => {
    await expect(importOn({ engine: 'pyodide' })).resolves.toBeUndefined()
  })

  test('a graph by networkx, and an extension module of the public index in a run and by a preload', async ({
    skip,
  }) => {
    using cache = makeCacheDir()
    const open = { engine: 'pyodide', poolSize: 1, environments: { cacheDir: cache.path } } as const
    await using sandglass = await createSandglass(open)
    try {
      await sandglass.prepare(['msgpack==1.2.4', 'networkx'])
    } catch (error) {
      if ((error as { code?: string }).code === 'index_unreachable') skip(String(error))
      throw error
    }
    const script = 'import msgpack._cmsgpack as m\nemit_result(m.Packer().pack([1, 2]).hex())'
    expect(await sandglass.run(script, { dependencies: ['msgpack==1.2.4'] })).toMatchObject({ finalData: '920102' })
    const graph =
      'import networkx as nx\ng = nx.Graph([("a", "b"), ("b", "c"), ("a", "d")])\nemit_result(nx.shortest_path(g, "d", "c"))'
    const shortest = await sandglass.run(graph, { dependencies: ['msgpack==1.2.4', 'networkx'] })
    expect(shortest.finalData).toEqual(['d', 'a', 'b', 'c'])
    await using ahead = await createSandglass({ ...open, dependencies: ['msgpack==1.2.4'], preload: ['msgpack'] })
    expect(await ahead.run(script)).toMatchObject({ finalData: '920102' })
  })

  test("Pyodide's own packages come from the address that is named, and only with their digests", async () => {
    using cache = makeCacheDir()
    const numpy = makeWheel({ name: 'numpy', version: '2.4.6', tag: 'cp314-cp314-pyemscripten_2026_0_wasm32' })
    await using index = await PackageIndex.start(numpy)
    const pyodidePackages = index.address.replace(/simple$/, 'files')
    await using empty = await PackageIndex.start()
    const environments = { cacheDir: cache.path, index: empty.address, pyodidePackages }
    await using sandglass = await createSandglass({ engine: 'pyodide', poolSize: 0, environments })
    await expect(sandglass.prepare(['numpy'])).rejects.toMatchObject({ code: 'dependency_invalid' })
    expect(index.downloads).toContain(numpy.filename)
  })
})
