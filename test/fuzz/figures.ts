import type { DriveReport } from './drive.ts'

const MiB = 1024 * 1024
const BEGIN = '<!-- figures: npm run fuzz -- --write -->'
const END = '<!-- end of figures -->'
const HEAD = [
  '| part | cases | seconds | crashes and broken properties | hangs | slowest case | held at a quarter, at the end | seed, machine |',
  '|---|---|---|---|---|---|---|---|',
]

/**
 * A page with the figures of these parts; those of other parts stay.
 * @throws Error when the page has no place for them.
 */
export function withFigures(page: string, reports: readonly DriveReport[], seed: number, machine: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin === -1 || end === -1) throw new Error(`the page has no ${BEGIN} and ${END}`)
  const written = page
    .slice(begin + BEGIN.length, end)
    .split('\n')
    .filter((line) => line.startsWith('| '))
  const rows = new Map(written.slice(1).map((row) => [row.split(' ')[1] ?? '', row]))
  for (const report of reports) rows.set(report.side, rowOf(report, `${seed}, ${machine}`))
  return `${page.slice(0, begin)}${BEGIN}\n${[...HEAD, ...rows.values()].join('\n')}\n${page.slice(end)}`
}

function rowOf(
  { side, cases, seconds, findings, slowestMs, heldAtQuarter, heldAtEnd }: DriveReport,
  where: string,
): string {
  const held = [heldAtQuarter, heldAtEnd].map((bytes) => `${(bytes / MiB).toFixed(1)} MiB`).join(', ')
  // Where several are under way at once, one alone has no time of its own.
  const slowest = slowestMs === 0 ? 'not told' : `${slowestMs.toFixed(0)} ms`
  const count = cases.toLocaleString('en')
  return `| ${[side, count, seconds.toFixed(0), findings.length, 0, slowest, held, where].join(' | ')} |`
}
