import { describe, expect, test } from 'vitest'
import { repositoryMadeOf } from '../../../src/support/index.ts'

describe('files that would make a repository', () => {
  const nothing = (): boolean => false

  test.each([
    ['all of a bare repository', ['HEAD', 'config', 'objects/x', 'refs/x'], ''],
    ['one in a directory', ['a.txt', 'out/deep/HEAD', 'out/deep/objects/x', 'out/deep/refs/x'], 'out/deep'],
    ['names in another case, which a file system may ignore', ['out/head', 'out/Objects/x', 'out/REFS/x'], 'out'],
    ['one whose objects are elsewhere', ['out/HEAD', 'out/commondir'], 'out'],
    ['one of Darcs', ['out/_darcs/prefs/defaults'], 'out'],
  ])('%s', (_, paths, expected) => {
    expect(repositoryMadeOf(paths, nothing)).toBe(expected)
  })

  test('what is there already counts', () => {
    const there = new Set(['in', 'in/out', 'in/out/objects', 'in/out/refs'])
    const isThere = (path: string): boolean => there.has(path)
    expect(repositoryMadeOf(['a', 'in/out/HEAD'], isThere)).toBe('in/out')
    expect(repositoryMadeOf(['in/out/hooks/update', 'HEAD'], isThere)).toBeUndefined()
    there.add('in/out/HEAD')
    expect(repositoryMadeOf(['a', 'in/out/hooks/update'], isThere)).toBe('in/out')
    expect(repositoryMadeOf(['a', 'in/b', 'HEAD'], isThere)).toBeUndefined()
  })

  test('parts of one are files like others', () => {
    expect(repositoryMadeOf(['HEAD', 'objects/x', 'a/refs/x', 'b/HEAD', 'config'], nothing)).toBeUndefined()
    expect(repositoryMadeOf([], () => true)).toBeUndefined()
  })
})
