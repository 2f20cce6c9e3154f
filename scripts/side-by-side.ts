import { TESTED_ENGINES } from '../test/support/walls.ts'
/** The parts of vitest's JSON report that are read here. */
export interface ReportedFile {
  /** Path of the test file. */
  readonly name: string
  readonly status: string
  readonly assertionResults: readonly ReportedTest[]
}

/** One test of a file. */
export interface ReportedTest {
  /** Titles of the `describe`s around it, outermost first. */
  readonly ancestorTitles: readonly string[]
  readonly status: string
}

interface Count {
  passed: number
  failed: number
  leftOut: number
}

/** Counts by row, then by engine. */
type Table = Map<string, Map<string, Count>>

const SUITES = ['conformance', 'adversarial'] as const
const ORDER: readonly string[] = TESTED_ENGINES
const LOADING = 'did not load'
/** The files of cases have one row per group; every other adversarial file is one row. */
const CASES = 'cases'

/**
 * Compares the engines in the suites that run on several of them: passed / failed / skipped for each part of the
 * conformance suite and each group of adversarial tests. Empty when the report has no such suite.
 */
export function sideBySide(files: readonly ReportedFile[]): string {
  return SUITES.map((suite) => formatTable(suite, tableOf(suite, files)))
    .filter((text) => text !== '')
    .join('\n\n')
}

function tableOf(suite: (typeof SUITES)[number], files: readonly ReportedFile[]): Table {
  const table: Table = new Map()
  for (const file of files) {
    const place = placeOf(suite, file.name)
    if (place === undefined) continue
    for (const test of file.assertionResults) count(table, place.rowOf(test), place.engine, test.status)
    // A file that does not load has no failed tests.
    const isCounted = file.assertionResults.some(({ status }) => status === 'failed')
    if (file.status === 'failed' && !isCounted) count(table, LOADING, place.engine, 'failed')
  }
  return table
}

function placeOf(
  suite: (typeof SUITES)[number],
  path: string,
): { readonly engine: string; readonly rowOf: (test: ReportedTest) => string } | undefined {
  if (suite === 'conformance') {
    const [, engine] = /(?:^|\/)test\/\w+\/conformance\/([\w-]+)\.test\.ts$/.exec(path) ?? []
    // engine > part > test; a test outside all parts belongs to the clean-up of the fixture
    return engine === undefined ? undefined : { engine, rowOf: ({ ancestorTitles }) => ancestorTitles[1] ?? 'clean-up' }
  }
  const [, engine, name] =
    /(?:^|\/)test\/(?:campaign|cluster)\/adversarial\/([\w-]+)\/([\w-]+)\.test\.ts$/.exec(path) ?? []
  if (engine === undefined || name === undefined) return undefined
  return { engine, rowOf: ({ ancestorTitles }) => (name === CASES ? (ancestorTitles[1] ?? 'the list of cases') : name) }
}

function count(table: Table, row: string, engine: string, status: string): void {
  const engines = table.get(row) ?? new Map<string, Count>()
  const counts = engines.get(engine) ?? { passed: 0, failed: 0, leftOut: 0 }
  counts[status === 'passed' ? 'passed' : status === 'failed' ? 'failed' : 'leftOut'] += 1
  engines.set(engine, counts)
  table.set(row, engines)
}

function formatTable(suite: string, table: Table): string {
  if (table.size === 0) return ''
  const engines = inOrder([...new Set([...table.values()].flatMap((row) => [...row.keys()]))])
  const lines = [...table].map(([name, row]) =>
    line(
      name,
      engines.map((engine) => cell(row.get(engine))),
    ),
  )
  const totals = engines.map((engine) => cell(total([...table.values()].flatMap((row) => row.get(engine) ?? []))))
  const head = [
    line(suite, engines),
    line(
      '',
      engines.map(() => HEADINGS),
    ),
  ]
  return [...head, ...lines, line('all', totals)].join('\n')
}

/** Puts known engines first, in their usual order. */
function inOrder(engines: readonly string[]): string[] {
  const known = ORDER.filter((engine) => engines.includes(engine))
  return [...known, ...engines.filter((engine) => !ORDER.includes(engine)).toSorted()]
}

function total(counts: readonly Count[]): Count {
  const sum = (pick: (one: Count) => number): number => counts.reduce((so, one) => so + pick(one), 0)
  return { passed: sum((one) => one.passed), failed: sum((one) => one.failed), leftOut: sum((one) => one.leftOut) }
}

const WIDTH = 8
const HEADINGS = ['passed', 'failed', 'left out'].map((name) => name.padStart(WIDTH)).join(' ')

function cell(counts: Count | undefined): string {
  if (counts === undefined) return '-'.padStart(WIDTH)
  return [counts.passed, counts.failed, counts.leftOut].map((number) => String(number).padStart(WIDTH)).join(' ')
}

function line(first: string, cells: readonly string[]): string {
  return `${first.padEnd(26)}${cells.map((text) => text.padEnd(HEADINGS.length)).join(' | ')}`.trimEnd()
}
