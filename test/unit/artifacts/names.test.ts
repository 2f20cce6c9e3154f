import { expect, test } from 'vitest'
import { isUserArtifact, parseArtifactRef } from '../../../src/artifacts/index.ts'
import { createArtifactService, storeInMemory } from '../../../src/artifacts/index.ts'
import { measureBest } from '../../support/measure-best.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

// WS-11
test.each([
  ['item@123', { name: 'item', version: 123 }],
  ['item@0', { name: 'item', version: 0 }],
  ['tail@', { name: 'tail@', version: null }],
  ['a@b@c', { name: 'a@b@c', version: null }],
  ['a@b@2', { name: 'a@b', version: 2 }],
  ['a@1@2', { name: 'a@1', version: 2 }],
  ['item@/', { name: 'item@/', version: null }],
  ['item@1.5', { name: 'item@1.5', version: null }],
  ['item@-1', { name: 'item@-1', version: null }],
  ['item@١', { name: 'item@١', version: null }],
  ['two\nlines@7', { name: 'two\nlines', version: 7 }],
  ['plain', { name: 'plain', version: null }],
])('the reference %j has a name and a version', (ref, parsed) => {
  expect(parseArtifactRef(ref)).toEqual(parsed)
})

test.each(['@123', '', `item@${Number.MAX_SAFE_INTEGER}1`, 7 as never])('the reference %j is refused', (ref) => {
  expect(() => parseArtifactRef(ref)).toThrow(expect.objectContaining({ code: 'invalid_request' }) as Error)
})

test('a long reference is read in linear time', () => {
  const parse = (): void => {
    expect(parseArtifactRef('@'.repeat(1_000_000)).version).toBeNull()
    expect(parseArtifactRef(`${'1@'.repeat(500_000)}x`).version).toBeNull()
  }
  expect(measureBest(parse, 1)).toBeLessThan(500)
})

test.each([
  ...(workspaceCases('artifact_store')['user_namespace'] ?? []).map(({ input, expected }) => [input, expected]),
  ['User:a.txt', false],
] as [string, boolean][])('the name %j belongs to the user: %s', (name, expected) => {
  expect(isUserArtifact(name)).toBe(expected)
})

test.each([
  ['', 'it is empty'],
  ['user:', 'it is empty'],
  ['../a', 'relative path'],
  ['a/../b', 'relative path'],
  ['./a', 'relative path'],
  ['a//b', 'relative path'],
  ['/etc/passwd', 'relative path'],
  ['a/', 'relative path'],
  ['user:/a', 'relative path'],
  ['a\\b', 'backslash'],
  ['a\0b', 'cannot be printed'],
  ['a\nb', 'cannot be printed'],
  ['a\u202Etxt.exe', 'cannot be printed'],
  ['\uD800', 'cannot be printed'],
  ['a@1', 'ends like a version'],
  ['x'.repeat(513), 'more than 512 bytes'],
  ['é'.repeat(257), 'more than 512 bytes'],
  [7 as never, 'must be a string'],
])('the name %j is refused, and named', async (name, problem) => {
  const artifacts = createArtifactService(storeInMemory())
  for (const call of [
    () => artifacts.save(name, 'x'),
    () => artifacts.load(name),
    () => artifacts.open(name),
    () => artifacts.versions(name),
    () => artifacts.delete(name),
  ]) {
    await expect(call()).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(new RegExp(`^artifact name .*${problem}`)) as string,
    })
  }
})

test.each([
  'a.txt',
  'out/chart.png',
  'user:notes/a.md',
  'a b',
  '...',
  'naïve.txt',
  '图.png',
  'a@',
  'a@b',
  'x'.repeat(512),
])('the name %j is taken', async (name) => {
  const artifacts = createArtifactService(storeInMemory())
  await artifacts.save(name, 'x')
  expect(await artifacts.list()).toMatchObject([{ name, version: 0 }])
})
