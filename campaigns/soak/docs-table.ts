import { withSection } from '../../test/support/page-section.ts'
import { summarize } from '../../bench/measure.ts'
import type { Sample } from './sample.ts'
import { growthsOf, type Summary } from './summary.ts'

const MARKERS = { begin: '<!-- soak: written by campaigns/soak/report.ts -->', end: '<!-- soak: end -->' }

/** Replaces the text between the markers of a page. @throws Error for a page without markers. */
export function fillSection(page: string, content: string): string {
  return withSection(page, MARKERS, content)
}

/** A table of soaks, one column each, with command, machine and picture. */
export function soakTable(summaries: readonly Summary[]): string {
  const row = (name: string, cell: (summary: Summary) => string): string =>
    `| ${name} | ${summaries.map(cell).join(' | ')} |`
  const samples = (value: (sample: Sample) => number) => (summary: Summary) =>
    summarize(summary.samples.map(value).filter(Number.isFinite))
  const quick = samples(({ p50Ms }) => p50Ms)
  const slow = samples(({ p99Ms }) => p99Ms)
  const lines = [
    row('', ({ options }) => `\`${options.engine}\``),
    `| --- |${summaries.map(() => ' ---: |').join('')}`,
    row('minutes of load', ({ options }) => String(options.minutes)),
    row('runs at once', ({ options }) => String(options.concurrency)),
    row('runs', ({ runs }) => runs.toLocaleString('en')),
    row('runs with another outcome than expected', ({ unexpectedRuns }) => String(unexpectedRuns)),
    row('sandboxes made', ({ sandboxesMade }) => sandboxesMade.toLocaleString('en')),
    row('leaks', ({ leaks }) => String(leaks.length)),
    row('leaks per 1,000,000 runs', rateText),
    row('runs/s', ({ samples: all }) => summarize(all.map(({ runsPerSec }) => runsPerSec)).p50.toFixed(1)),
    row('p50 of a quick run: median of the minutes', (summary) => `${quick(summary).p50.toFixed(1)} ms`),
    row('p99 of a quick run: median and worst of the minutes', (summary) => {
      const { p50, max } = slow(summary)
      return `${p50.toFixed(1)} ms, ${max.toFixed(1)} ms`
    }),
    row('resident memory: first, last, most', ({ samples: all }) => {
      const peak = Math.max(...all.map(({ peakRssMiB }) => peakRssMiB))
      return `${mib(all[0]?.rssMiB)}, ${mib(all.at(-1)?.rssMiB)}, ${mib(peak)}`
    }),
    row('resident memory: slope, lower bound at 99%', ({ growth }) => slope(growth.rss)),
    row('held memory: first, last', ({ samples: all }) => `${mib(all[0]?.heldMiB)}, ${mib(all.at(-1)?.heldMiB)}`),
    row('held memory: slope, lower bound at 99%', ({ growth }) => slope(growth.held)),
    row(
      'descriptors at the pauses: first, last',
      edges(({ descriptors }) => descriptors),
    ),
    row(
      'processes of sandboxes: first, last',
      edges(({ processes }) => processes),
    ),
    row('slopes whose lower bound would count as growth: resident, held', ({ samples: all }) => {
      const { rss, held } = growthsOf(all)
      return [rss, held].map((one) => (one.judged ? `${Math.round(one.countsFromMibPerHour)}` : 'none')).join(', ')
    }),
    row('verdict', verdict),
  ]
  return [lines.join('\n'), '', ...summaries.flatMap(provenance)].join('\n')
}

function verdict({ problems, growth }: Summary): string {
  if (problems.length > 0) return problems.join('; ')
  return growth.rss.judged ? 'passed' : 'passed, resident memory not judged'
}

/** No leak in n runs says, with 95% certainty, that there are fewer than 3 / n (the rule of three). */
function rateText({ leaks, runs }: Summary): string {
  if (leaks.length === 0) return `0 (below ${Math.ceil((3 / runs) * 1e6).toLocaleString('en')} at 95%)`
  return ((leaks.length / runs) * 1e6).toFixed(0)
}

function provenance({ options, machine, versions, startedAt }: Summary): string[] {
  const { engine, minutes, concurrency, seed } = options
  const command = `npm run soak -- --minutes ${minutes} --engine ${engine} --concurrency ${concurrency} --seed ${seed}`
  return [
    `\`${engine}\`: \`${command}\`, ${startedAt.slice(0, 10)}, ${machine}, ${versions}.`,
    '',
    `![Memory and latency of the soak of the engine ${engine} over ${minutes} minutes](reliability/soak-${engine}.svg)`,
    '',
  ]
}

function edges(value: (sample: Sample) => number) {
  return ({ samples }: Summary): string =>
    [samples[0], samples.at(-1)].map((one) => (one === undefined ? '-' : value(one))).join(', ')
}

function slope({ judged, mibPerHour, atLeastMibPerHour }: Summary['growth']['rss']): string {
  return judged ? `${mibPerHour.toFixed(2)}, ${atLeastMibPerHour.toFixed(2)} MiB/h` : 'too few samples'
}

function mib(value: number | undefined): string {
  return value === undefined ? '-' : `${value.toFixed(1)} MiB`
}
