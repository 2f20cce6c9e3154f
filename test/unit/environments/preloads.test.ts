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

test('after the third run, package modules that at least two of the three imported are preloaded', () => {
  const preloads = new Preloads()
  expect(preloads.note(environment, 'import pandas, json')).toBeUndefined()
  expect(preloads.note(environment, 'import matplotlib.pyplot as plt\nimport pandas')).toBeUndefined()
  expect(preloads.note(environment, 'import matplotlib.pyplot\nimport numpy')).toEqual(['matplotlib.pyplot', 'pandas'])
  expect(preloads.note(environment, 'import numpy')).toBeUndefined()
})

test('each environment has its own list, and later environments replace the first', () => {
  const preloads = new Preloads()
  for (const script of ['import pandas', 'import pandas']) preloads.note(environment, script)
  expect(preloads.note({ ...environment, key: 'b'.repeat(20) }, 'import pandas')).toBeUndefined()
  const later = Array.from({ length: 18 }, () => preloads.note(environment, 'import numpy'))
  expect(later.at(0)).toEqual(['pandas'])
  expect(later.at(-1)).toEqual(['numpy'])
})
