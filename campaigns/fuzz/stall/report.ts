import { readFileSync, writeFileSync } from 'node:fs'
import { withSection } from '../../../test/support/page-section.ts'
import { stallCampaign, stallRows } from './stall.ts'

const PAGE = new URL('../../../docs/reliability/stalls.md', import.meta.url)
const MARKERS = { begin: '<!-- figures: npm run fuzz -- --stall --write -->', end: '<!-- end of figures -->' }
const HEAD = [
  '| from | entry point | largest input | longest stall | power of the cost | growth of memory | end | promise |',
  '|---|---|---|---|---|---|---|---|',
]
const REPETITIONS = 3

/** Drives the entry points, prints a row of the table for each, and returns the exit code: 1 when one breaks the promise. */
export async function reportStalls({
  only,
  write,
  machine,
}: {
  only?: string
  write: boolean
  machine: string
}): Promise<number> {
  console.log(HEAD.join('\n'))
  const verdicts = await stallCampaign({
    repetitions: REPETITIONS,
    ...(only === undefined ? {} : { only }),
    onVerdict: (verdict) => console.log(stallRows([verdict])[0]),
  })
  const broken = verdicts.filter(({ problems }) => problems.length > 0)
  for (const { entryPoint, problems } of broken) console.log(`${entryPoint.name}: ${problems.join('; ')}`)
  console.log(`${verdicts.length} entry points, ${broken.length} of which break the promise`)
  if (write) {
    const table = [...HEAD, ...stallRows(verdicts), '', `Measured on ${machine}.`].join('\n')
    writeFileSync(PAGE, withSection(readFileSync(PAGE, 'utf8'), MARKERS, table))
  }
  return broken.length > 0 ? 1 : 0
}
