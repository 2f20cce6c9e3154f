import { readCases } from '../../campaigns/adversarial/driver/case.ts'
import { plannedCases, type PlannedCase } from '../../campaigns/adversarial/plan.ts'
import { TESTED_ENGINES } from '../../test/support/walls.ts'
import { code, markdownTable } from './table.ts'

/** The number of cases that run on each engine, of the suites that are written for every engine. */
export function testedTable(): string {
  const groups = new Map(readCases().map(({ id, group }) => [id, group]))
  const rows = new Map<string, PlannedCase[]>()
  for (const one of plannedCases()) {
    const row = rowOf(one, groups)
    rows.set(row, [...(rows.get(row) ?? []), one])
  }
  const counted = [...rows].map(([row, cases]) => [row, ...TESTED_ENGINES.map((engine) => countOn(engine, cases))])
  return markdownTable(['cases', ...TESTED_ENGINES.map(code)], counted)
}

function rowOf({ suite, name }: PlannedCase, groups: ReadonlyMap<string, string>): string {
  if (suite === 'conformance') return 'conformance'
  return suite === 'fresh' ? 'attacks: second set' : `attacks: ${groups.get(name.split(' ')[0] ?? '') ?? ''}`
}

function countOn(engine: string, cases: readonly PlannedCase[]): string {
  const count = cases.filter(({ engines }) => engines.includes(engine)).length
  return count === 0 ? '–' : String(count)
}
