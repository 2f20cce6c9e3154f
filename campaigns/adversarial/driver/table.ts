import type { Ledger } from './ledger.ts'

/** One case and the evaluated keys of its expectation. */
export interface Row {
  readonly group: string
  readonly ledger: Ledger
}

/** Formats a table with the number of cases and of evaluated keys per group. */
export function tableOf(rows: readonly Row[]): string {
  const groups = [...new Set(rows.map(({ group }) => group))]
  const lines = groups.map((group) => {
    const ledgers = rows.filter((row) => row.group === group).map(({ ledger }) => ledger)
    return lineOf(group, ledgers)
  })
  const all = lineOf(
    'all',
    rows.map(({ ledger }) => ledger),
  )
  return [columns('group', 'cases', 'evaluated'), ...lines, all].join('\n')
}

function lineOf(name: string, ledgers: readonly Ledger[]): string {
  const count = (pick: (ledger: Ledger) => readonly string[]): string =>
    String(ledgers.reduce((sum, ledger) => sum + pick(ledger).length, 0))
  return columns(
    name,
    String(ledgers.length),
    count(({ evaluated }) => evaluated),
  )
}

function columns(first: string, ...others: readonly string[]): string {
  return first.padEnd(26) + others.map((text) => text.padStart(10)).join('')
}
