import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createSandglass, type InstallProgress } from '../../src/index.ts'

const SCRIPT = readFileSync(join(import.meta.dirname, 'chart.py'), 'utf8')
const SALES = readFileSync(join(import.meta.dirname, 'sales.csv'))
const RUNS = 3

/**
 * Draws a chart of a CSV with pandas and matplotlib, which are installed at the first call, and writes it to `chart.png`.
 * `--engine NAME` chooses the engine. Exits with 0 when there is a chart.
 */
async function main(): Promise<number> {
  const at = process.argv.indexOf('--engine')
  const engine = (at === -1 ? 'auto' : (process.argv[at + 1] ?? 'auto')) as 'auto'
  let began = performance.now()
  await using sandglass = await createSandglass({
    engine,
    dependencies: ['pandas>=2', 'matplotlib'],
    environments: { onProgress: showProgress },
  })
  console.log(`engine ${sandglass.engine}, ready in ${seconds(began)}`)
  for (let run = 1; run <= RUNS; run += 1) {
    began = performance.now()
    const result = await sandglass.run(SCRIPT, { files: { 'sales.csv': { content: SALES } }, collect: ['chart.png'] })
    const [chart] = result.files
    if (!result.success || chart === undefined) {
      console.error(result.error, result.traceback ?? '')
      return 1
    }
    const note = run === 1 ? installed(result.environment?.packages ?? {}) : ''
    console.log(`run ${run}: ${seconds(began)} ${note}`)
    if (run < RUNS) continue
    writeFileSync('chart.png', chart.content)
    console.log(result.finalData)
    console.log(`${resolve('chart.png')}: ${chart.size} bytes`)
  }
  return 0
}

let shown = ''

function showProgress({ phase, packages, totalBytes }: InstallProgress): void {
  if (phase === shown) return
  shown = phase
  if (phase === 'resolve') console.log('choosing versions of packages')
  if (phase === 'download') console.log(`installing ${packages} packages, ${(totalBytes / 1e6).toFixed(1)} MB`)
}

function installed(packages: Readonly<Record<string, string>>): string {
  return `(pandas ${packages['pandas']}, matplotlib ${packages['matplotlib']})`
}

function seconds(began: number): string {
  return `${((performance.now() - began) / 1000).toFixed(2)} s`
}

process.exitCode = await main()
