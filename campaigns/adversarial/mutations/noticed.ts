import { readFileSync } from 'node:fs'
import { withSection as withinMarkers } from '../../../test/support/page-section.ts'
import { MUTATIONS } from './mutations.ts'

/** The findings of the long form, as `npm run adversarial -- --mutate --write` records them. */
export interface Noticed {
  readonly engine: 'local'
  /** The machine of the run. */
  readonly machine: string
  /** Duration of one run over all mutations; absent when they were tried in several runs. */
  readonly minutes?: number
  /** Names of the tests that notice, by the name of the mutation. */
  readonly noticed: Readonly<Record<string, readonly string[]>>
}

/** The record. */
export const RECORD: URL = new URL('noticed.json', import.meta.url)

/** Reads the record. */
export function readNoticed(): Noticed {
  return JSON.parse(readFileSync(RECORD, 'utf8')) as Noticed
}

const MARKERS = {
  begin: '<!-- mutations: written by `npm run adversarial -- --mutate --write` -->',
  end: '<!-- end of mutations -->',
}
const SHOWN = 6

/**
 * Replaces the section of mutations on a page with the content of the record.
 * @throws Error for a page without the two markers.
 */
export function withSection(page: string, record: Noticed): string {
  return withinMarkers(page, MARKERS, section(record))
}

/** Formats the table and its source. */
function section({ machine, minutes, noticed }: Noticed): string {
  const rows = MUTATIONS.map(({ name, defence, instead, doubled }) => {
    const also = doubled === undefined ? '' : ` Also removed: ${doubled}.`
    return `| ${defence} | ${instead}.${also} | ${formatNames(noticed[name] ?? [])} |`
  })
  const took = minutes === undefined ? '' : `, in ${minutes} minutes`
  return [
    `Measured on ${machine}, engine \`local\`, by \`npm run adversarial -- --mutate\`${took}.`,
    '',
    '| defence | what the copy does instead | tests that fail |',
    '|---|---|---|',
    ...rows,
  ].join('\n')
}

function formatNames(names: readonly string[]): string {
  const short = names.map(shortened)
  const rest = short.length > SHOWN ? [`${short.length - SHOWN + 1} more`] : []
  return [...short.slice(0, rest.length > 0 ? SHOWN - 1 : SHOWN), ...rest].join('; ')
}

/** A case by its id; other tests by their title. */
function shortened(name: string): string {
  return /^cases: .*> ([A-Z]+-\d+) /.exec(name)?.[1] ?? name.replaceAll('|', String.raw`\|`)
}
