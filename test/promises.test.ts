import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '..')
const COLUMNS = ['id', 'promise', 'number', 'held by', 'measured by']

interface PromiseRow {
  readonly id: string
  readonly cells: readonly string[]
}

/** The lines of the page's tables, but for heads and rules. */
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

/** What keeps a promise from being held, in words. */
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
    ...(commands.length === 0 ? ['it names no command'] : []),
    ...commands.flatMap((command) => flawOfCommand(command, scripts)),
  ]
}

/** The words must stand in the file, in the title of a test or in what it expects. */
function flawOfTest(file: string, words: string): string[] {
  const path = join(ROOT, file)
  if (!/^(test|src\/testing)\/.*\.ts$/.test(file) || !existsSync(path)) return [`${file} is no file of tests`]
  const source = readFileSync(path, 'utf8')
  const isCalled = /\b(test|it)(\.[a-z]+)*\(/i.test(source)
  return isCalled && source.includes(words) ? [] : [`${file} has no test with ${words}`]
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

  test('a promise without a test, with one that is gone, or without a command is found out', () => {
    const flaws = (line: string): string[] => promisesIn(line).flatMap((row) => flawsOf(row, scripts))
    expect(flaws('| P-99 | it is safe | 1 | nothing | `npm run bench` |')).toEqual([
      'it names no test',
      'beside its tests it says: nothing',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/gone.test.ts` "x" | `npm run bench` |')).toEqual([
      'test/gone.test.ts is no file of tests',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/docs.test.ts` "no such words" | `npm run gone` |')).toEqual([
      'test/docs.test.ts has no test with no such words',
      'there is no npm script gone',
    ])
    expect(flaws('| P-99 | it is safe | 1 | `test/docs.test.ts` "links to pages that exist" | |')).toEqual([
      'it has not the columns id, promise, number, held by, measured by',
    ])
  })
})
