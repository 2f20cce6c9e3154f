import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { findPythons } from '../../../../scripts/find-pythons.ts'
import { Globs } from '../../../../src/engines/pyodide/guest/globs.ts'
import { measureBest } from '../../../support/measure-best.ts'

const MATCH = `
import json, sys
from sandglass_harness.broker.globs import Matcher
globs, paths, hidden = json.load(sys.stdin)
matchers = [Matcher([glob], hidden) for glob in globs]
json.dump([[matcher.matches(path) for path in paths] for matcher in matchers], sys.stdout)
`
const GLOBS = [
  '',
  'a',
  '*',
  '**',
  '/a',
  'a/',
  '*.csv',
  '?.csv',
  'out/*',
  'out/**',
  '**/b',
  '**/b/**',
  'a/**/b',
  '**/**',
  '***',
  'a**',
  '[ab]',
  '[!ab]',
  '[a-c]*',
  '[c-a]',
  '[]]',
  '[!]]',
  '[',
  '[a',
  '[^a]',
  '[a\\]',
  '[a-]',
  '[--0]',
  'a.b',
  'a+b',
  '(a)',
  'a|b',
  '{a,b}',
  '.*',
  '.**',
  '[.]a',
  '.a/**',
  '**/.*',
  '**/.a',
  '.*/**/.b',
  'é',
  '?',
  '??',
  'a//b',
  '**/*.[ch]',
  '[😀]',
  '\\*',
  '*/*',
]
const PATHS = [
  'a',
  'b',
  'c',
  'A',
  '^',
  '!',
  ']',
  '[',
  '[a',
  '\\',
  '\\*',
  '-',
  '.',
  '.a',
  'a.csv',
  'ab.csv',
  'x\ny',
  'a.b',
  'aab',
  'a+b',
  '(a)',
  'a|b',
  '{a,b}',
  'é',
  'e\u0301',
  '😀',
  'out',
  'out/a',
  'out/a/b',
  'a/b',
  'a/x/b',
  'a/x/y/b',
  'b/c',
  'x/b/c',
  'src/a.c',
  'src/deep/a.h',
  '.b',
  '..',
  '.a/b',
  '.a/.b',
  '.a/x/b',
  'a/.b',
  'a/.x/b',
  'x/.a',
]

let executable = 'python3'
beforeAll(() => {
  executable = findPythons()[0]?.executable ?? executable
})

test.each([false, true])('both brokers match the same paths, with hidden names: %s', (hidden) => {
  const { stdout, stderr } = spawnSync(executable, ['-B', '-c', MATCH], {
    cwd: join(import.meta.dirname, '../../../../harness'),
    input: JSON.stringify([GLOBS, PATHS, hidden]),
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  const matches = JSON.parse(stdout) as boolean[][]
  const listMatches = (matched: (glob: number, path: number) => boolean) =>
    GLOBS.map((glob, g) => [glob, PATHS.filter((_, p) => matched(g, p))])
  const expected = listMatches((g, p) => matches[g]?.[p] === true)
  expect(listMatches((g, p) => new Globs([GLOBS[g] ?? ''], hidden).matches(PATHS[p] ?? ''))).toEqual(expected)
})

test('globs take no exponential time', () => {
  const match = (): boolean => new Globs(['*a*a*a*a*a*a*a*a*b'], false).matches('a'.repeat(255))
  expect(match()).toBe(false)
  expect(measureBest(match, 1)).toBeLessThan(100)
})
