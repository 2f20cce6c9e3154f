import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withSection } from '../../test/support/page-section.ts'
import type { Comparison, MeasuredRow, Row, Seen, Series } from './result.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The markers around the generated part of a page. */
const MARKERS = { begin: '<!-- bench:peers -->', end: '<!-- /bench:peers -->' }

/** The pages that hold figures of the record, with the function that writes them. */
export const PAGES: Readonly<Record<string, (comparison: Comparison) => string>> = {
  'docs/comparison.md': tables,
}

/** Writes the record's figures into the pages. */
export function fillPages(comparison: Comparison): void {
  for (const [page, show] of Object.entries(PAGES)) {
    const path = join(ROOT, page)
    writeFileSync(path, filled(readFileSync(path, 'utf8'), show(comparison)))
  }
}

/**
 * Replaces the text between the markers.
 * @throws Error if the markers are missing.
 */
export function filled(text: string, part: string): string {
  return withSection(text, MARKERS, part)
}

/** Formats the whole record as Markdown. */
export function tables(comparison: Comparison): string {
  const rows = comparison.rows.filter(isMeasured)
  const missing = comparison.rows.filter((row) => !isMeasured(row))
  const versions = Object.entries(comparison.versions).map(([name, version]) => `${name} ${version}`)
  return [
    `Machine: ${comparison.machine}. Date: ${comparison.date}. ${versions.join(', ')}.${commandOf(rows)}`,
    '',
    '### Time',
    '',
    ...table(
      ['', 'version', 'cold start', 'warm run', 'tool call', 'answer after the deadline', 'loop dead'],
      rows.map((row) => [
        row.name,
        Object.values(row.versions).join(', ') || 'this tree',
        series(row.cold, true),
        series(row.warm, true),
        series(row.toolCall, true),
        'absent' in row.timeout ? row.timeout.absent : series(row.timeout, true),
        'absent' in row.timeout ? '' : row.timeout.loopDead ? 'yes' : '**no**',
      ]),
    ),
    '',
    '### What remains and what is visible',
    '',
    ...table(
      [
        '',
        'left 10 s after `kill -9`',
        'variable',
        'file',
        'process',
        'environment',
        'home',
        '/tmp',
        '127.0.0.1',
        'bridge',
      ],
      rows.map((row) => [
        row.name,
        orphanText(row),
        ...[...Object.values(row.leaks), ...Object.values(row.exposed)].map(seen),
      ]),
    ),
    ...missing.flatMap((row) => ['', `Not measured: ${row.name}: ${'missing' in row ? row.missing : ''}`]),
  ].join('\n')
}

/** The command that repeats the measurement with as many rounds. */
function commandOf(rows: readonly MeasuredRow[]): string {
  const counts = rows.flatMap(({ warm }) => ('absent' in warm ? [] : [warm.n]))
  return counts.length === 0 ? '' : ` Command: \`npm run bench:peers -- --write --rounds ${Math.max(...counts)}\`.`
}

function isMeasured(row: Row): row is MeasuredRow {
  return 'cold' in row
}

function series(found: Series, withCount = false): string {
  if ('absent' in found) return found.absent
  const { p50Ms, n } = found
  const time = duration(p50Ms)
  return withCount ? `${time} (n=${n})` : time
}

function duration(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 0.1) return `${(ms * 1000).toFixed(1)} µs`
  return `${ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2)} ms`
}

function orphanText({ orphans: { processes, containers, files } }: MeasuredRow): string {
  const counted = [
    [processes.length, 'process', 'processes'],
    [containers, 'container', 'containers'],
    [files.length, 'file', 'files'],
  ] as const
  const parts = counted
    .filter(([count]) => count > 0)
    .map(([count, one, many]) => `${count} ${count === 1 ? one : many}`)
  return parts.join(', ') || 'nothing'
}

function seen({ seen: word }: Seen): string {
  return word === 'yes' ? '**yes**' : word
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)]
}
