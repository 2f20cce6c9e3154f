import { expect, test } from 'vitest'
import type { CarriedEntry, GuestMessage } from '../../../../src/engines/pyodide/guest/wire.ts'
import { IncomingFiles, packOutgoing } from '../../../../src/engines/pyodide/workspace/carried-files.ts'
import { WorkspaceTree } from '../../../../src/engines/pyodide/workspace/tree.ts'

const BOUNDS = { maxBytes: 1000, maxNodes: 20, maxTextBytes: 10_000 }
const FILE: CarriedEntry = { parent: -1, name: 'a', kind: 'f', mode: 0o644, mtimeMs: 1, size: 3 }
const DIRECTORY: CarriedEntry = { parent: -1, name: 'd', kind: 'd', mode: 0o755, mtimeMs: 1 }
const LINK: CarriedEntry = { parent: -1, name: 'l', kind: 'l', mode: 0o777, mtimeMs: 1, target: 'a' }
const content = (text: string): GuestMessage => ({ type: 'content', payload: Buffer.from(text) })

function receive(...messages: readonly (GuestMessage | Record<string, unknown>)[]): IncomingFiles {
  const tree = new WorkspaceTree('/workspace', BOUNDS)
  tree.put('sent', 0o644, Buffer.from('sent'))
  const incoming = new IncomingFiles(packOutgoing(tree.top).files, BOUNDS)
  for (const message of [...messages, { type: 'kept' }]) incoming.take(message as GuestMessage)
  return incoming
}

test('what an instance left is taken as a whole', () => {
  const entries = [
    DIRECTORY,
    FILE,
    LINK,
    { ...FILE, name: 'moved', size: 4, from: 0 },
    { ...FILE, parent: 0, mode: 0o1777 },
  ]
  const { tree, problem } = receive({ type: 'entries', entries }, content('ab'), content('cdef'))
  expect(problem).toBeUndefined()
  expect(tree?.size).toEqual({ bytes: 10, nodes: 5, textBytes: 10 })
  const [d, a, l, moved] = [...(tree?.top.entries.values() ?? [])]
  const file = { kind: 'file', mode: 0o644, mtimeMs: 1 }
  expect(a).toEqual({ ...file, content: Uint8Array.from(Buffer.from('abc')) })
  expect(l).toEqual({ kind: 'link', mode: 0o777, mtimeMs: 1, target: 'a' })
  expect(moved).toEqual({ ...file, content: Buffer.from('sent') })
  expect(d).toMatchObject({ kind: 'directory', entries: new Map([['a', { mode: 0o777 }]]) })
})

test.each<[string, readonly (GuestMessage | Record<string, unknown>)[]]>([
  ['no list', [{ type: 'entries', entries: 'all' }]],
  ['no entry', [{ type: 'entries', entries: [null] }]],
  ['a parent that is a file', [{ type: 'entries', entries: [FILE, { ...FILE, parent: 0 }] }, content('abcdef')]],
  ['a parent that comes later', [{ type: 'entries', entries: [{ ...FILE, parent: 1 }, DIRECTORY] }, content('abc')]],
  ['a name twice', [{ type: 'entries', entries: [FILE, FILE] }, content('abcdef')]],
  ['a name with a slash', [{ type: 'entries', entries: [{ ...DIRECTORY, name: 'a/b' }] }]],
  ['the name ..', [{ type: 'entries', entries: [{ ...DIRECTORY, name: '..' }] }]],
  ['a name that is too long', [{ type: 'entries', entries: [{ ...DIRECTORY, name: 'n'.repeat(256) }] }]],
  ['an unknown kind', [{ type: 'entries', entries: [{ ...DIRECTORY, kind: 'x' }] }]],
  ['a size that is too large', [{ type: 'entries', entries: [{ ...FILE, size: 2 ** 50 }] }]],
  ['a size below zero', [{ type: 'entries', entries: [{ ...FILE, size: -1 }] }]],
  ['a file that was not sent', [{ type: 'entries', entries: [{ ...FILE, from: 7 }] }]],
  ['a link that is too long', [{ type: 'entries', entries: [{ ...LINK, target: 'x'.repeat(5000) }] }]],
  [
    'too many entries',
    [{ type: 'entries', entries: Array.from({ length: 21 }, (_, at) => ({ ...DIRECTORY, name: `${at}` })) }],
  ],
  [
    'too many bytes of one file many times',
    [
      {
        type: 'entries',
        entries: [
          { ...FILE, size: 600 },
          { ...FILE, name: 'b', size: 600 },
        ],
      },
    ],
  ],
  ['content that is missing', [{ type: 'entries', entries: [FILE] }, content('ab')]],
  ['content of no file', [{ type: 'entries', entries: [FILE] }, content('abcd')]],
])('an instance that sends %s has nothing of it taken', (_, messages) => {
  const { tree, problem } = receive(...messages)
  expect(tree).toBeUndefined()
  expect(problem).toBeTypeOf('string')
})

test('files that do not come to their end are not taken', () => {
  const incoming = new IncomingFiles(new Map(), BOUNDS)
  incoming.take({ type: 'entries', entries: [FILE] })
  incoming.take(content('abc'))
  expect([incoming.tree, incoming.problem]).toEqual([undefined, undefined])
})

test('paths of a tree: links are followed inside alone, and never to write', () => {
  const tree = new WorkspaceTree('/workspace', BOUNDS)
  tree.put('dir/file', 0o644, Buffer.from('x'))
  const links = {
    up: '../..',
    root: '/workspace/dir',
    etc: '/etc',
    self: 'self',
    near: '/workspacex',
    back: 'dir/../dir/file',
  }
  for (const [name, target] of Object.entries(links))
    tree.top.entries.set(name, { kind: 'link', mode: 0o777, mtimeMs: 0, target })
  const codeOf = (call: () => unknown): unknown => {
    try {
      call()
      return undefined
    } catch (error) {
      return (error as { code?: unknown }).code
    }
  }
  expect(tree.find('root/file', true)).toMatchObject({ kind: 'file' })
  expect(tree.find('back', true)).toMatchObject({ kind: 'file' })
  expect(tree.find('etc', false)).toMatchObject({ kind: 'link' })
  for (const path of ['up', 'etc', 'etc/passwd', 'self', 'near', '../x', '/x'])
    expect(codeOf(() => tree.find(path, true))).toBe('outside')
  for (const path of ['root/new', 'etc/new'])
    expect(codeOf(() => tree.put(path, 0o644, Buffer.alloc(0)))).toBe('outside')
  expect(codeOf(() => tree.make('root/deeper', 0o755))).toBe('outside')
  expect(codeOf(() => tree.put('dir', 0o644, Buffer.alloc(0)))).toBe('exists')
  expect(codeOf(() => tree.put('dir/file/x', 0o644, Buffer.alloc(0)))).toBe('not_a_directory')
  expect(codeOf(() => tree.remove('dir', false))).toBe('not_empty')
  expect(codeOf(() => tree.put('__proto__', 0o644, Buffer.alloc(0)))).toBe('invalid')
  expect(codeOf(() => tree.put('large', 0o644, Buffer.alloc(1000)))).toBe('no_space')
  tree.remove('dir', true)
  tree.put('large', 0o644, Buffer.alloc(1000))
  expect(codeOf(() => tree.find('root/file', true))).toBe('not_found')
})

test('a cell gets the content of new files alone, and the same files after a script that left them as they were', () => {
  const tree = new WorkspaceTree('/workspace', BOUNDS)
  tree.put('d/kept', 0o644, Buffer.from('kept'))
  const first = packOutgoing(tree.top, new Map())
  expect(first.message).toMatchObject({ type: 'sync', entries: [{ kind: 'd' }, { name: 'kept', size: 4 }] })
  expect(Buffer.concat(first.contents).toString()).toBe('kept')
  const { version } = tree
  tree.put('new', 0o644, Buffer.from('new'))
  expect(tree.version).not.toBe(version)
  const before = packOutgoing(tree.top)
  const incoming = new IncomingFiles(before.files, BOUNDS)
  incoming.take({
    type: 'entries',
    entries: before.message.entries.map((entry, from) => (entry.kind === 'f' ? { ...entry, from } : entry)),
  })
  incoming.take({ type: 'kept' })
  if (incoming.tree !== undefined) tree.replace(incoming.tree.top, incoming.tree.size)
  const second = packOutgoing(tree.top, first.files)
  expect(second.message.entries.map(({ name, from }) => [name, from])).toEqual([
    ['d', undefined],
    ['new', undefined],
    ['kept', 1],
  ])
  expect(Buffer.concat(second.contents).toString()).toBe('new')
})
