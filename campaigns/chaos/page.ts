import { withSection } from '../../test/support/page-section.ts'
import type { Entry } from './campaign.ts'
import { summaryOf, tableOf } from './summary.ts'

/** A finished campaign, as written by `--json`. */
export interface ChaosRun {
  readonly command: string
  readonly machine: string
  readonly minutes: number
  readonly entries: readonly Entry[]
}

const MARKERS = { begin: '<!-- chaos: begin -->', end: '<!-- chaos: end -->' }

/** Replaces the text between the markers of a page with the figures of a campaign. */
export function fillPage(page: string, run: ChaosRun): string {
  return withSection(page, MARKERS, figuresOf(run))
}

function figuresOf({ command, machine, minutes, entries }: ChaosRun): string {
  const breached = entries.filter(({ breaches }) => breaches.length > 0)
  const left = entries.reduce((sum, one) => sum + one.left.length, 0)
  return [
    `Command: \`${command}\`, ${minutes} minutes. Machine: ${machine}.`,
    `**${entries.length} faults: ${breached.length} unexpected, ${left} things left.**`,
    tableOf(summaryOf(entries)),
    ...(breached.length === 0 ? [] : ['Unexpected:', breached.map(breachOf).join('\n')]),
  ].join('\n\n')
}

function breachOf({ number, engine, name, breaches }: Entry): string {
  return `* ${number}, ${engine}, ${name}: ${breaches.map((breach) => breach.replace(/\s+/g, ' ').slice(0, 300)).join('; ')}`
}
