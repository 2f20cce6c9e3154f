/** Kills writers of a store, owners of a workspace in one, and code agents at a review, at random moments: `npm run kills -- --kills 50`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killPersisting } from './kill-persisting.ts'
import { killReviews } from './kill-reviews.ts'
import { killWriters } from './kill-writers.ts'

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '50' }, only: { type: 'string' } },
})
const isWanted = (name: string): boolean => values.only === undefined || values.only === name
const kills = Number(values.kills)
if (!Number.isSafeInteger(kills) || kills < 1) throw new Error('--kills: must be a whole number of at least 1')
const directory = mkdtempSync(join(tmpdir(), 'sandglass-kills-'))
try {
  const problems: string[] = []
  if (isWanted('writers')) {
    const report = await killWriters(directory, kills)
    console.log(`${report.kills} kills: ${report.saved} versions saved, ${report.deleted} deleted`)
    problems.push(...report.problems)
  }
  for (const work of ['sync', 'restore'] as const) {
    if (!isWanted(work)) continue
    const found = await killPersisting(join(directory, work), kills, work)
    const during = Object.entries(found.during).map(([act, count]) => `${count} while ${act}`)
    console.log(
      `${work}: ${kills} owners of a workspace killed, ${during.join(', ')}; ${found.acknowledged} states acknowledged`,
    )
    problems.push(...found.problems)
  }
  if (isWanted('reviews')) {
    const found = await killReviews(join(directory, 'reviews.sqlite'), directory, kills)
    const after = Object.entries(found.after).map(([word, count]) => `${count} after "${word}"`)
    console.log(
      `reviews: ${kills} code agents killed, ${after.join(', ')}; ${found.ran} scripts ran, ${found.uncertain} perhaps`,
    )
    problems.push(...found.problems)
  }
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(directory, { recursive: true, force: true })
}
