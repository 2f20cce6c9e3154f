import { expect, test } from 'vitest'
import { explainFailure } from '../../../src/environments/explain.ts'

const QUESTION = {
  requirements: ['demo'],
  target: { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' },
  index: 'https://index.example/simple',
  excludeNewer: '7 days',
  offline: false,
}
const NO_SOLUTION = '  × No solution found when resolving dependencies:\n  ╰─▶ Because '
const DISABLED =
  '\n\n      hint: Packages were unavailable because the network was disabled. When the network is disabled, …'
const FILTERED =
  '\n\n      hint: `demo` was filtered by `exclude-newer` to only include packages uploaded before 2026-11-18T07:23:01Z.'

/** What uv 0.13.9 wrote, and what is said about it. */
test.each([
  [
    'not in the cache',
    { offline: true },
    `${NO_SOLUTION}demo was not found in the cache and you require demo, we can conclude …${DISABLED}`,
    'index_unreachable',
    'environments.offline is set, and the cache does not have demo: install it once',
  ],
  [
    'a version that is not in the cache',
    { offline: true },
    `${NO_SOLUTION}demo==2.0 needs to be downloaded from a registry and you require demo==2.0, …${DISABLED}`,
    'index_unreachable',
    'the cache does not have demo:',
  ],
  [
    'a version that the cached page does not have',
    { offline: true },
    `${NO_SOLUTION}there is no version of demo==3.0 and you require demo==3.0, we can conclude …`,
    'dependency_conflict',
    '(environments.offline is set: only the cache was asked)',
  ],
  [
    'without times of upload',
    {},
    `${NO_SOLUTION}there are no versions of demo and you require demo, …${FILTERED} The latest version is v2.0.`,
    'dependency_too_new',
    "excludeNewer: 'none' if this index reports no upload times",
  ],
  [
    'of no such version',
    {},
    `${NO_SOLUTION}there is no version of demo==99 and you require demo==99, we can conclude …`,
    'dependency_conflict',
    'the package index https://index.example/simple has none of the requested versions of demo',
  ],
  [
    'of no such version, in other words',
    {},
    `${NO_SOLUTION}only demo<=2.0 is available and you require demo>=3, we can conclude …`,
    'dependency_conflict',
    'the package index https://index.example/simple has none of the requested versions of demo',
  ],
  [
    'too new',
    {},
    `${NO_SOLUTION}there are no versions of demo and you …${FILTERED} The latest version is v2.0, published at 2026-11-25.`,
    'dependency_too_new',
    'demo was uploaded after the limit environments.excludeNewer (7 days)',
  ],
  [
    'unknown',
    {},
    `${NO_SOLUTION}demo was not found in the package registry and you require demo, we can conclude …`,
    'dependency_not_found',
    'the package index https://index.example/simple has no package demo: check its name',
  ],
])('a package that is %s', (_what, given, said, code, message) => {
  const error = explainFailure(said, { ...QUESTION, ...given })
  expect(error.code).toBe(code)
  expect(error.message).toContain(message)
  expect(error.message).toContain('uv said: ')
})
