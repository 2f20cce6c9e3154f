import { createSandglass } from './subject.ts'
import { summarize, measureMs } from './measure.ts'
import { ms, type Row } from './row.ts'

/** Compares scripts that import numpy and pandas with and without preloading them; needs BENCH_PACKAGES. */
export async function preloading(): Promise<Row[]> {
  const packages = process.env['BENCH_PACKAGES']
  if (packages === undefined)
    return [{ what: "`preload: ['numpy', 'pandas']`", figure: 'not measured: BENCH_PACKAGES is not set' }]
  const script = 'import numpy, pandas\nemit_result(int(numpy.arange(10).sum()) + len(pandas.DataFrame({"a": [1]})))'
  const shared = { packages, poolSize: 1, maxOverflow: 0, maxUses: 1_000_000 }
  await using plain = await createSandglass(shared)
  await using loaded = await createSandglass({ ...shared, preload: ['numpy', 'pandas'] })
  const inScript: number[] = []
  const ahead: number[] = []
  for (let n = 0; n < 15; n += 1) {
    for (const [sg, list] of [
      [plain, inScript],
      [loaded, ahead],
    ] as const) {
      const taken = await measureMs(async () => {
        const result = await sg.run(script)
        if (result.finalData !== 46) throw new Error(`${result.status}: ${result.error}`)
      })
      if (n >= 3) list.push(taken)
    }
  }
  const a = summarize(inScript).p50
  const b = summarize(ahead).p50
  return [
    { what: 'numpy and pandas imported by the script, p50 (n=12)', figure: ms(a) },
    {
      what: "the same script with `preload: ['numpy', 'pandas']`, p50",
      figure: `${ms(b)} = ${(a / b).toFixed(0)}x faster`,
    },
  ]
}
