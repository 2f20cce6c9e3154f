import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findBreaches, packagesLoadedBy, type SourceTree } from './architecture.rules.ts'
import { typesWithoutExport } from './public-types.rules.ts'
import { EXCEPTIONS, HEAVY_PACKAGES, type Room, ROOMS } from './architecture.table.ts'

const root = join(import.meta.dirname, '../..')

function sourceTree(): SourceTree {
  const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const files = paths.filter((path) => path.endsWith('.ts')).map((path) => `src/${path.replaceAll('\\', '/')}`)
  return new Map(files.toSorted().map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

// Parsed outside of a test, because parsing takes half of a test's limit of one second.
const tree = sourceTree()
const breaches = findBreaches(tree, ROOMS)
const loaded = packagesLoadedBy('src/index.ts', tree)
const withoutExport = typesWithoutExport(
  'src/index.ts',
  tree,
  ({ path, name }) => path.startsWith('src/workspace/') || name.includes('Workspace'),
)

test('src/ keeps to the import table of its rooms', () => {
  expect(breaches).toEqual(EXCEPTIONS)
})

test('ARCHITECTURE.md places every module of the harness', () => {
  const folder = join(root, 'harness/sandglass_harness')
  const modules = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.py') && !path.endsWith('__init__.py'))
    .map((path) => path.replaceAll('\\', '/').replace('.py', '').split('/'))
  const rows = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').match(/^\| (`\w+\/`|the top) \|.*$/gmu) ?? []
  const isPlaced = ([room = '', name = '']: readonly string[]): boolean =>
    rows.some(
      (row) => row.startsWith(name === '' ? '| the top' : `| \`${room}/\``) && row.includes(`\`${name || room}\``),
    )
  expect(modules.filter((path) => !isPlaced(path)).map((path) => path.join('/'))).toEqual([])
})

test('importing the package root loads no package but zod', () => {
  expect(loaded.filter((name) => HEAVY_PACKAGES.includes(name))).toEqual([])
  expect(loaded).toEqual(['zod'])
})

test('the package root exports each type that a signature of workspaces names', () => {
  expect(withoutExport).toEqual([])
})

// Types that signatures name are among them: without a name, a caller cannot write a function around a method.
test('the package root exports at most 210 names', () => {
  const source = readFileSync(join(root, 'src/index.ts'), 'utf8')
  const names = [...source.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
    list.split(',').map((name) => name.trim()),
  )
  const exported = new Set(names.filter((name) => name !== ''))
  expect(exported.size).toBeGreaterThan(100)
  expect(exported.size).toBeLessThanOrEqual(210)
})

test('a type of a signature counts wherever it stands, but not what only code names', () => {
  const made = new Map([
    ['src/index.ts', "export { type A, C, f } from './a.ts'"],
    [
      'src/a.ts',
      `import type { Far } from './door.ts'
interface Base { inherited(of: Deep): void }
interface Deep {}
interface Result {}
interface Hidden {}
export interface A extends Base { method(given?: readonly Far[]): Promise<Result>; readonly own: C }
export class C { #a: Hidden; private b(of: Hidden): void {} c(of: Deep): Map<string, A> { const x: Hidden = 1; return x } }
export function f(of: C): Result { const x: Hidden = 1; return x }`,
    ],
    ['src/door.ts', "export type { Far } from './far.ts'"],
    ['src/far.ts', 'export interface Far {}'],
  ])
  expect(typesWithoutExport('src/index.ts', made)).toEqual([
    'Deep of A',
    'Deep of C',
    'Far of A',
    'Result of A',
    'Result of f',
  ])
})

describe('the checker, over a made-up tree', () => {
  const rooms: readonly Room[] = [
    { name: 'low', path: 'src/low/', mayImport: [], packages: [] },
    { name: 'high', path: 'src/high/', mayImport: ['low'], packages: ['zod'] },
    { name: 'root', path: 'src/index.ts', mayImport: ['high'], packages: [] },
  ]
  const sound = {
    'src/low/index.ts': "export { a } from './a.ts'",
    'src/low/a.ts': "import { join } from 'node:path'\nexport const a: string = join('a')",
    'src/high/index.ts':
      "import { a } from '../low/index.ts'\nimport { z } from 'zod'\nexport const h: unknown = [a, z]",
    'src/index.ts': "export { h } from './high/index.ts'",
  }
  const breachesWith = (changes: Record<string, string>, table: readonly Room[] = rooms): string[] =>
    findBreaches(new Map(Object.entries({ ...sound, ...changes })), table)

  test('reports nothing for a tree that keeps the rules', () => {
    expect(breachesWith({})).toEqual([])
  })

  test.each<[string, Record<string, string>, string]>([
    [
      'an import that the table does not list',
      { 'src/low/b.ts': "import { h } from '../index.ts'\nexport const b = h" },
      'src/low/b.ts imports root, which low does not list',
    ],
    [
      'an import of types only that the table does not list',
      { 'src/low/b.ts': "import type { h } from '../index.ts'\nexport type B = typeof h" },
      'src/low/b.ts imports root, which low does not list',
    ],
    [
      'an import() type that the table does not list',
      { 'src/low/b.ts': "export type B = typeof import('../index.ts')" },
      'src/low/b.ts imports root, which low does not list',
    ],
    [
      'a lazy import that the table does not list',
      { 'src/low/b.ts': "export const b = () => import('../index.ts')" },
      'src/low/b.ts imports root, which low does not list',
    ],
    [
      'an import past the door of a room',
      { 'src/high/b.ts': "import { a } from '../low/a.ts'\nexport const b = a" },
      'src/high/b.ts imports src/low/a.ts past the door src/low/index.ts',
    ],
    [
      'a package that the room does not list',
      { 'src/low/b.ts': "export { z } from 'zod/v4'" },
      'src/low/b.ts imports the package zod, which low does not list',
    ],
    [
      'a module of Node without its prefix',
      { 'src/low/b.ts': "import 'fs'" },
      'src/low/b.ts imports the package fs, which low does not list',
    ],
    ['a file outside any room', { 'src/stray.ts': 'export {}' }, 'src/stray.ts is in no room'],
    [
      'an import of a file that does not exist',
      { 'src/low/b.ts': "import './gone.ts'" },
      'src/low/b.ts imports src/low/gone.ts, which does not exist',
    ],
    ['a default export', { 'src/low/b.ts': 'export default 1' }, 'src/low/b.ts has a default export'],
    [
      'a default export by renaming',
      { 'src/low/b.ts': 'const b = 1\nexport { b as default }' },
      'src/low/b.ts has a default export',
    ],
    ['the type any', { 'src/low/b.ts': 'export const b: any[] = []' }, 'src/low/b.ts uses the type any'],
    [
      'an import whose target cannot be read',
      { 'src/low/b.ts': 'export const b = (name: string) => import(name)' },
      'src/low/b.ts imports a computed specifier',
    ],
  ])('%s is a violation', (_what, changes, breach) => {
    expect(breachesWith(changes)).toEqual([breach])
  })

  test('a cycle between files is a violation', () => {
    const changes = { 'src/low/a.ts': "export * from './b.ts'", 'src/low/b.ts': "import './index.ts'" }
    expect(breachesWith(changes)).toEqual([
      'import cycle: src/low/index.ts → src/low/a.ts → src/low/b.ts → src/low/index.ts',
    ])
  })

  test('a room without its door, or without files, is a violation', () => {
    const empty: Room = { name: 'empty', path: 'src/empty/', mayImport: [], packages: [] }
    expect(breachesWith({}, [...rooms, empty])).toEqual(['the room empty has no src/empty/index.ts'])
  })

  test('a table with a cycle, or with an unknown room, is a violation', () => {
    const table = rooms.map((room) => (room.name === 'low' ? { ...room, mayImport: ['root', 'nowhere'] } : room))
    expect(breachesWith({}, table)).toEqual([
      'the table lets low import nowhere, which is no room',
      'the table holds a cycle: low → root → high → low',
    ])
  })

  test('the packages that an entry loads are those of its static value imports', () => {
    const tree = new Map([
      [
        'src/index.ts',
        "import './a.ts'\nimport type { T } from 'only-types'\nexport const lazy = () => import('lazy')",
      ],
      ['src/a.ts', "export * from '@scope/eager/deep'\nimport { readFile } from 'node:fs'"],
    ])
    expect(packagesLoadedBy('src/index.ts', tree)).toEqual(['@scope/eager'])
  })
})
