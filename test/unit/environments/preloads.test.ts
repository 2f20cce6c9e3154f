import { expect, test } from 'vitest'
import type { Environment } from '../../../src/environments/index.ts'
import { Preloads } from '../../../src/preloads.ts'

const environment: Environment = {
  key: 'a'.repeat(20),
  path: '/x',
  target: { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.41' },
  packages: {},
  modules: ['pandas', 'matplotlib', 'numpy'],
  bytes: 0,
}

/** Notes a run of a script, and loads ahead what it leads to. */
function follow(preloads: Preloads, imported: readonly string[], script: string = ''): readonly string[] | undefined {
  const modules = preloads.note(environment, { script, imported })
  if (modules !== undefined) preloads.adopt(environment, modules)
  return modules
}

test('after the third run, package modules that at least two of the three loaded are preloaded', () => {
  const preloads = new Preloads()
  expect(follow(preloads, ['pandas', 'mine'])).toBeUndefined()
  expect(follow(preloads, ['matplotlib', 'matplotlib.pyplot', 'pandas', 'mine'])).toBeUndefined()
  expect(follow(preloads, ['matplotlib', 'matplotlib.pyplot', 'numpy'])).toEqual(['matplotlib.pyplot', 'pandas'])
  expect(follow(preloads, ['numpy'])).toBeUndefined()
})

test('an import that no run reached is not preloaded', () => {
  const preloads = new Preloads()
  const script = 'def unused():\n    import pandas'
  expect([1, 2, 3].map(() => follow(preloads, [], script))).toEqual([undefined, undefined, undefined])
})

test('each environment has its own list, and later modules replace those that no line imports any more', () => {
  const preloads = new Preloads()
  for (let run = 0; run < 2; run += 1) follow(preloads, ['pandas'], 'import pandas')
  const run = { script: 'import pandas', imported: ['pandas'] }
  expect(preloads.note({ ...environment, key: 'b'.repeat(20) }, run)).toBeUndefined()
  const later = Array.from({ length: 18 }, () => follow(preloads, ['numpy'], 'import numpy'))
  expect(later.at(0)).toEqual(['pandas'])
  expect(later.at(-1)).toEqual(['numpy'])
})

test('what is loaded ahead stays while lines import it, although runs no longer load it', () => {
  const preloads = new Preloads()
  const script = 'from matplotlib import pyplot'
  for (let run = 0; run < 3; run += 1) follow(preloads, ['matplotlib', 'matplotlib.pyplot'], script)
  const later = Array.from({ length: 40 }, () => follow(preloads, [], script))
  expect([new Set(later), preloads.modulesFor(environment)]).toEqual([new Set([undefined]), ['matplotlib.pyplot']])
})

test('a module that no line imports is preloaded, and stays beside those that lines import', () => {
  const preloads = new Preloads()
  for (let run = 0; run < 3; run += 1) follow(preloads, ['pandas', 'pandas.plotting._matplotlib'], 'import pandas')
  expect(preloads.modulesFor(environment)).toEqual(['pandas.plotting._matplotlib'])
  for (let run = 0; run < 17; run += 1) follow(preloads, ['numpy.fft'], 'import pandas\nload("numpy.fft")')
  expect(preloads.modulesFor(environment)).toEqual(['numpy.fft', 'pandas.plotting._matplotlib'])
})

test('at most eight modules are preloaded, and none that a sandbox could not load', () => {
  const preloads = new Preloads()
  const imported = Array.from({ length: 32 }, (_, number) => `pandas.m${number}`)
  preloads.refuse(environment, ['pandas.m1'])
  for (let run = 0; run < 3; run += 1) follow(preloads, imported)
  expect(preloads.modulesFor(environment)).toEqual([0, 2, 3, 4, 5, 6, 7, 8].map((number) => `pandas.m${number}`))
})

test('a set with which no sandbox starts is not proposed again, others are', () => {
  const preloads = new Preloads()
  const propose = (runs: number, imported: readonly string[]): readonly (readonly string[] | undefined)[] =>
    Array.from({ length: runs }, () => preloads.note(environment, { script: imported.join('\n'), imported }))
  expect(propose(3, ['numpy']).at(-1)).toEqual(['numpy'])
  preloads.giveUp(environment, ['numpy'])
  expect(propose(37, ['numpy']).filter(Boolean)).toEqual([])
  expect(propose(20, ['numpy', 'pandas']).at(-1)).toEqual(['numpy', 'pandas'])
})
