import { sectionOf, withSection } from '../../test/support/page-section.ts'
import type { DriveReport } from './drive.ts'

const MiB = 1024 * 1024
const MARKERS = { begin: '<!-- figures: npm run fuzz -- --write -->', end: '<!-- end of figures -->' }
const HEAD = [
  '| part | cases | seconds | crashes and broken properties | hangs | slowest case | held at a quarter, at the end | seed, machine |',
  '|---|---|---|---|---|---|---|---|',
]

/**
 * Replaces the figures of these parts on a page, and keeps those of other parts.
 * @throws Error when the page has no place for them.
 */
export function withFigures(page: string, reports: readonly DriveReport[], seed: number, machine: string): string {
  const written = sectionOf(page, MARKERS)
    .split('\n')
    .filter((line) => line.startsWith('| '))
  const rows = new Map(written.slice(1).map((row) => [row.split(' ')[1] ?? '', row]))
  for (const report of reports) rows.set(report.side, rowOf(report, `${seed}, ${machine}`))
  return withSection(page, MARKERS, [...HEAD, ...rows.values()].join('\n'))
}

function rowOf(
  { side, cases, seconds, findings, hangs, slowestMs, memoryAtQuarter, memoryAtEnd }: DriveReport,
  where: string,
): string {
  const memory = [memoryAtQuarter, memoryAtEnd].map((bytes) => `${(bytes / MiB).toFixed(1)} MiB`).join(', ')
  // With several cases at once, the time of one case cannot be measured.
  const slowest = slowestMs === 0 ? 'not told' : `${slowestMs.toFixed(0)} ms`
  const count = cases.toLocaleString('en')
  return `| ${[side, count, seconds.toFixed(0), findings.length - hangs, hangs, slowest, memory, where].join(' | ')} |`
}
