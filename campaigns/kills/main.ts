/** Kills writers of a store, and owners of a workspace in one, at random moments: `npm run kills -- --kills 50`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killPersisting } from './kill-persisting.ts'
import { killWriters } from './kill-writers.ts'

const { values } = parseArgs({ options: { kills: { type: 'string', default: '50' } } })
const kills = Number(values.kills)
if (!Number.isSafeInteger(kills) || kills < 1) throw new Error('--kills: must be a whole number of at least 1')
const directory = mkdtempSync(join(tmpdir(), 'sandglass-kills-'))
try {
  const report = await killWriters(directory, kills)
  console.log(`${report.kills} kills: ${report.saved} versions saved, ${report.deleted} deleted`)
  for (const problem of report.problems) console.error(problem)
  const persisting = await killPersisting(join(directory, 'workspaces'), kills)
  console.log(`${persisting.kills} kills of owners of a workspace: ${persisting.synced} states synchronised`)
  for (const problem of persisting.problems) console.error(problem)
  process.exitCode = report.problems.length + persisting.problems.length === 0 ? 0 : 1
} finally {
  rmSync(directory, { recursive: true, force: true })
}
