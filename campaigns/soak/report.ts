import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fillSection, soakTable } from './docs-table.ts'
import { pictureOf } from './picture.ts'
import type { Summary } from './summary.ts'

/**
 * `node campaigns/soak/report.ts DIR...`: fills the table of docs/reliability.md from the summaries that `npm run soak -- --out DIR`
 * wrote, and draws docs/reliability/soak-ENGINE.svg of each.
 */
const docs = resolve(import.meta.dirname, '../../docs')
const summaries = process.argv.slice(2).map((directory) => read(join(directory, 'summary.json')))
if (summaries.length === 0)
  throw new TypeError('give the directory of at least one soak: node campaigns/soak/report.ts DIR...')
for (const summary of summaries) {
  writeFileSync(join(docs, 'reliability', `soak-${summary.options.engine}.svg`), pictureOf(summary))
}
const page = join(docs, 'reliability.md')
writeFileSync(page, fillSection(readFileSync(page, 'utf8'), soakTable(summaries)))

function read(path: string): Summary {
  return JSON.parse(readFileSync(path, 'utf8')) as Summary
}
