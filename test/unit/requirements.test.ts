import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { LATER } from '../requirements.later.ts'

/*
 * `requirements.json` holds every behaviour that the original assignment asks for. A test cites the ids it shows in its
 * title or in a comment; a requirement that no test cites counts as not done.
 */

const root = join(import.meta.dirname, '../..')
const ids = readIds()
const citations = findCitations()

test('every requirement of this version is cited by a test', () => {
  expect(ids.filter((id) => !isLater(id) && !citations.has(id))).toEqual([])
})

test('tests cite only requirements that exist', () => {
  expect([...citations].filter(([id]) => !ids.includes(id))).toEqual([])
})

test('every entry of the table of later requirements names one that exists', () => {
  expect(Object.keys(LATER).filter((key) => !ids.some((id) => id === key || familyOf(id) === key))).toEqual([])
})

function readIds(): string[] {
  const text = readFileSync(join(import.meta.dirname, '../requirements.json'), 'utf8')
  const { requirements } = JSON.parse(text) as { requirements: { id: string }[] }
  return requirements.map(({ id }) => id)
}

/** The files that cite each id. */
function findCitations(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const path of [
    ...testFiles('test', /\.ts$/),
    ...testFiles('campaigns', /\.ts$/),
    ...testFiles('harness/tests', /\.py$/),
  ]) {
    const text = readFileSync(path, 'utf8')
    for (const id of new Set(text.match(/\b(?:EX|HA|PO|OR|CA|WS)-\d\d\b/g))) {
      found.set(id, [...(found.get(id) ?? []), relative(root, path)])
    }
  }
  return found
}

function testFiles(folder: string, name: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => name.test(path) && !path.startsWith('requirements.'))
    .map((path) => join(root, folder, path))
}

function isLater(id: string): boolean {
  return Object.hasOwn(LATER, id) || Object.hasOwn(LATER, familyOf(id))
}

function familyOf(id: string): string {
  return id.slice(0, 2)
}
