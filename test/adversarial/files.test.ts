import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesOf } from './files.ts'

const HERE = import.meta.dirname
const ENGINES = ['local', 'docker', 'pyodide']

test('the files of all engines together are all that run scripts on one', () => {
  const named = filesOf(ENGINES)
  const all = readdirSync(HERE, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test/adversarial', file))
  const about = all.filter((file) => ENGINES.some((engine) => file.includes(engine)))
  expect(about.filter((file) => !named.some((name) => file.startsWith(name)))).toEqual([])
  expect(named.filter((name) => !about.some((file) => file.startsWith(name)))).toEqual([])
  expect(all.every((file) => file.startsWith(filesOf()[0] ?? ''))).toBe(true)
})
