import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSandglass } from '../../src/index.ts'

/** The cell after those that end badly, and what it gives if their changes are undone. */
const AFTER = 'sales.eur.tolist()'
const KEPT = '[120,95,180,210]'
const CELLS = [
  'import pandas as pd\nsales = pd.DataFrame({"month": ["Jan", "Feb", "Mar", "Apr"], "eur": [120, 95, 180, 210]})\nsales.eur.sum().item()',
  'sales["eur"] *= 1.1\nimport ctypes; ctypes.string_at(0)',
  'sales["eur"] = 0\nwhile True: pass',
  AFTER,
  'import matplotlib.pyplot as plt\nplt.bar(sales.month, sales.eur)\nplt.title("Sales in EUR");',
]

/**
 * Runs cells of a session in which one crashes and one runs out of time, and draws a chart of what the others made: `notebook.png`.
 * `--engine NAME` chooses the engine. Exits with 0 when the variables survived and there is a chart.
 */
async function main(): Promise<number> {
  const at = process.argv.indexOf('--engine')
  const engine = (at === -1 ? 'auto' : (process.argv[at + 1] ?? 'auto')) as 'auto'
  await using sandglass = await createSandglass({ engine, poolSize: 0, dependencies: ['pandas>=2', 'matplotlib'] })
  await using session = await sandglass.session()
  let chart: string | undefined
  let after: string | undefined
  for (const cell of CELLS) {
    const { number, status, state, value, error, displays, durationMs } = await session.run(cell, {
      timeoutSec: cell.includes('while True') ? 1 : 30,
    })
    console.log(`\n[${number}] ${cell.replaceAll('\n', '\n    ')}`)
    const outcome = state === 'kept' ? JSON.stringify(value) : `${state}, ${error ?? ''}`
    console.log(`    # ${status} in ${durationMs.toFixed(0)} ms: ${outcome}`)
    if (cell === AFTER) after = JSON.stringify(value)
    chart = displays.map(({ data }) => data['image/png']).find((png) => png !== undefined) ?? chart
  }
  if (after !== KEPT) console.error(`\nthe variables did not survive: ${after} in place of ${KEPT}`)
  if (after !== KEPT || chart === undefined) return 1
  writeFileSync('notebook.png', chart, 'base64')
  console.log(`\n${resolve('notebook.png')}`)
  return 0
}

process.exitCode = await main()
