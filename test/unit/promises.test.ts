import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FAULTS } from '../../campaigns/chaos/faults/index.ts'
import { MACHINE_ENGINES } from '../support/walls.ts'
import { testTitles } from '../support/test-titles.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** Replaces a command if the test alone shows the promise. */
const NO_FIGURE = 'yes or no'
const COLUMNS = ['id', 'promise', 'number', 'held by', 'measured by']

interface PromiseRow {
  readonly id: string
  readonly cells: readonly string[]
}

/** The rows of the page's tables. */
function promisesIn(page: string): PromiseRow[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith('| P-'))
    .map((line) => {
      const cells = line
        .slice(1, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim())
      return { id: cells[0] ?? '', cells }
    })
}

/** The problems of the row of a promise, one sentence each. */
function flawsOf({ cells }: PromiseRow, scripts: ReadonlySet<string>): string[] {
  if (cells.length !== COLUMNS.length || cells.includes('')) return [`it has not the columns ${COLUMNS.join(', ')}`]
  const [, , , held = '', measured = ''] = cells
  const tests = [...held.matchAll(/`([^`]+)` "([^"]+)"/g)]
  const rest = held.replaceAll(/`[^`]+` "[^"]+"/g, '').trim()
  const commands = [...measured.matchAll(/`([^`]+)`/g)].map(([, command = '']) => command)
  return [
    ...(tests.length === 0 ? ['it names no test'] : []),
    ...(rest === '' ? [] : [`beside its tests it says: ${rest}`]),
    ...tests.flatMap(([, file = '', title = '']) => flawOfTest(file, title)),
    ...(commands.length === 0 && measured !== NO_FIGURE ? ['it names no command'] : []),
    ...commands.flatMap((command) => flawOfCommand(command, scripts)),
  ]
}

/** Checks that the full title of a test in the file contains the words. */
function flawOfTest(file: string, words: string): string[] {
  const path = join(ROOT, file)
  if (!/^(test|campaigns|src\/testing)\/.*\.ts$/.test(file) || !existsSync(path)) return [`${file} is no file of tests`]
  const titles = testTitles(path, readFileSync(path, 'utf8'))
  return titles.some((title) => title.includes(words)) ? [] : [`${file} has no test with ${words}`]
}

function flawOfCommand(command: string, scripts: ReadonlySet<string>): string[] {
  const script = /^npm run ([\w:]+)/.exec(command)?.[1]
  if (script === undefined) return /^sandglass doctor$/.test(command) ? [] : [`${command} is no command of the project`]
  return scripts.has(script) ? [] : [`there is no npm script ${script}`]
}

const scripts = new Set(
  Object.keys(
    (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts,
  ),
)
const page = readFileSync(join(ROOT, 'docs/promises.md'), 'utf8')
const rows = promisesIn(page)

describe('docs/promises.md', () => {
  test('has promises, each with an id of its own', () => {
    expect(rows.length).toBeGreaterThan(30)
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  })

  test.each(rows)('$id is held by tests that exist, and measured by a command that exists', (row) => {
    expect(flawsOf(row, scripts)).toEqual([])
  })

  test('P-51 has the current number of kinds of faults', () => {
    const kinds = MACHINE_ENGINES.map(
      (engine) => `${FAULTS.filter(({ engines }) => engines.includes(engine)).length} on \`${engine}\``,
    )
    const number = `kinds: ${kinds.join(', ')}`
    expect(rows.find(({ id }) => id === 'P-51')?.cells[2]).toBe(number)
  })

  test('words that are not in a title are reported', () => {
    const source = `
      import { test } from 'words of an import'
      // words of a comment
      describe('a group', () => {
        test.each([['a row']])('the title of %s', () => expect('words of an expectation').toBe(/x/.test('a text')))
      })
      describe('a group without a test', () => {})
      at.test(\`one with \${1} value\`, () => {})
      it.skipIf(skip)('one that may be skipped', () => {})`
    expect(testTitles('some.test.ts', source)).toEqual([
      'a group > the title of %s',
      'one with … value',
      'one that may be skipped',
    ])
    expect(flawOfTest('test/unit/promises.test.ts', 'readFileSync')).toEqual([
      'test/unit/promises.test.ts has no test with readFileSync',
    ])
  })

  test('a promise without a test, with a missing one, or without a command is reported', () => {
    const flaws = (line: string): string[] => promisesIn(line).flatMap((row) => flawsOf(row, scripts))
    expect(flaws('| P-99 | it is safe | 1 | nothing | `npm run bench` |')).toEqual([
      'it names no test',
      'beside its tests it says: nothing',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/gone.test.ts` "x" | `npm run bench` |')).toEqual([
      'test/gone.test.ts is no file of tests',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/unit/docs.test.ts` "no such words" | `npm run gone` |')).toEqual([
      'test/unit/docs.test.ts has no test with no such words',
      'there is no npm script gone',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/unit/docs.test.ts` "links to pages that exist" | no |')).toEqual([
      'it names no command',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/unit/docs.test.ts` "links to pages that exist" | |')).toEqual([
      'it has not the columns id, promise, number, held by, measured by',
    ])
  })
})
