import { describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass, type SandglassOptions } from '../../../src/index.ts'
import { makeCacheDir } from '../../support/environments/fixture.ts'
import { lacksIndex } from '../../support/environments/real-index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

const SCRIPT = `
import numpy, pandas
frame = pandas.DataFrame({"country": ["DE", "FR", "DE"], "kind": ["a", "b", "b"], "total": [10.0, 3.0, 2.5]})
by_country = frame.groupby("country")
emit_result({
    "column": frame["total"],
    "sum_by_country": by_country["total"].sum(),
    "value_counts": frame["country"].value_counts(),
    "row": frame.loc[0],
    "frame_by_country": by_country[["total"]].sum(),
    "pivot_table": frame.pivot_table(index="country", columns="kind", values="total"),
    "levels": frame.groupby(["country", "kind"])["total"].sum().head(1),
    "own_index": frame.set_index("country")["total"].tail(1),
    "describe": frame.describe().head(1),
    "deviation_of_one": frame["total"].head(1).std(),
    "numpy": {
        "integer": numpy.int64(1),
        "array": numpy.arange(4).reshape(2, 2),
        "bool": numpy.bool_(True),
        "float32": numpy.float32(0.5),
    },
})
`

describe.skipIf(skip || lacksIndex)('the package index of this machine', () => {
  test('has joblib, whose worker processes run in scripts, in cells, and again after a rollback', async () => {
    using cache = makeCacheDir()
    const limits = { executionTimeoutSec: 60, memoryBytes: 1024 ** 3 }
    await using sandglass = await openWith('joblib', cache.path, { poolSize: 0, limits })
    const work = 'from joblib import Parallel, delayed\ndef square(n): return n * n\n'
    const call = 'Parallel(n_jobs=2)(delayed(square)(n) for n in range(3))'
    const squares = [0, 1, 4]
    expect(await sandglass.run(`${work}emit_result(${call})`)).toMatchObject({ error: null, finalData: squares })
    await using session = await sandglass.session()
    expect(await session.run(`${work}${call}`)).toMatchObject({ error: null, value: squares })
    expect(await session.run('import os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
    expect(await session.run(call)).toMatchObject({ error: null, value: squares })
  }, 120_000)

  test('has pandas, whose results keep their labels', async () => {
    using cache = makeCacheDir()
    await using sandglass = await openWith('pandas', cache.path, { poolSize: 1 })
    const result = await sandglass.run(SCRIPT, { limits: { executionTimeoutSec: 60 } })
    expect(result).toMatchObject({ error: null, environment: { cached: false } })
    expect(Object.keys(result.environment?.packages ?? {})).toEqual(expect.arrayContaining(['numpy', 'pandas']))
    expect(result.finalData).toEqual({
      column: [10, 3, 2.5],
      sum_by_country: { DE: 12.5, FR: 3 },
      value_counts: { DE: 2, FR: 1 },
      row: { country: 'DE', kind: 'a', total: 10 },
      frame_by_country: [
        { country: 'DE', total: 12.5 },
        { country: 'FR', total: 3 },
      ],
      pivot_table: [
        { country: 'DE', a: 10, b: 2.5 },
        { country: 'FR', a: null, b: 3 },
      ],
      levels: [{ country: 'DE', kind: 'a', total: 10 }],
      own_index: { DE: 2.5 },
      describe: [{ index: 'count', total: 3 }],
      deviation_of_one: null,
      numpy: {
        integer: 1,
        array: [
          [0, 1],
          [2, 3],
        ],
        bool: true,
        float32: 0.5,
      },
    })
    expect(result.warnings).toMatchObject([{ code: 'nan_as_null' }])
  }, 120_000)
})

function openWith(dependency: string, cacheDir: string, options: SandglassOptions): Promise<Sandglass> {
  return createSandglass({ ...options, engine: 'local', dependencies: [dependency], environments: { cacheDir } })
}
