import { createHash } from 'node:crypto'
import type { EntryOnWire } from '../../../protocol/index.ts'
import { FileError } from './file-error.ts'
import type { Flow } from './flow.ts'
import { Globs } from '../guest/globs.ts'
import type { DirectoryNode, TreeNode, WorkspaceTree } from './tree.ts'

const ENTRIES_AT_ONCE = 200
/** Characters of paths and targets in one frame. */
const CHARACTERS_AT_ONCE = 128 * 1024
const MAX_PATH = 4096
const HASHED_AT_ONCE = 1024 * 1024

/** The entry of a node on the wire. */
export function entryOf(path: string, node: TreeNode): EntryOnWire {
  const entry = { path, kind: node.kind, mode: node.mode, mtime_ms: node.mtimeMs }
  if (node.kind === 'file') return { ...entry, size: node.content.length }
  if (node.kind === 'directory') return { ...entry, size: 0 }
  return { ...entry, size: Buffer.byteLength(node.target), target: node.target }
}

/** The request of a listing. */
export interface ListRequest {
  readonly path: string
  readonly patterns: readonly string[] | null
  readonly max_entries: number
  readonly hidden: boolean
  readonly follow: boolean
}

/** Sends what is below a directory. Resolves to the result, or to undefined if the activity ended. @throws FileError */
export async function list(tree: WorkspaceTree, request: ListRequest, flow: Flow): Promise<object | undefined> {
  const { path: top, patterns, max_entries: max, hidden, follow } = request
  const directory = directoryAt(tree, top)
  const globs = patterns === null ? undefined : new Globs(patterns, hidden)
  const isSeen = (name: string): boolean => hidden || !name.startsWith('.')
  const limits: string[] = []
  let entries: EntryOnWire[] = []
  let characters = 0
  let count = 0
  const walk = walkBelow(directory, byName, (path, name) => globs?.canMatchBelow(path) ?? isSeen(name))
  for (const [path, name, node] of walk) {
    if (!(await flow.pause())) return undefined
    if (path.length > MAX_PATH || (count === max && (globs?.matches(path) ?? isSeen(name)))) {
      limits.push('max_entries')
      break
    }
    if (!(globs?.matches(path) ?? isSeen(name))) continue
    const shown = follow && node.kind === 'link' ? (resolveFile(tree, top, path) ?? node) : node
    const entry = entryOf(path, shown)
    entries.push(entry)
    count += 1
    characters += path.length + (entry.target?.length ?? 0)
    if (entries.length < ENTRIES_AT_ONCE && characters <= CHARACTERS_AT_ONCE) continue
    if (!(await flow.frame({ type: 'entries', entries }))) return undefined
    entries = []
    characters = 0
  }
  if (entries.length > 0 && !(await flow.frame({ type: 'entries', entries }))) return undefined
  return { skipped: 0, limits_hit: limits }
}

/**
 * The digest of a file or a directory, as the harness computes it. Resolves to undefined if the activity ended.
 * @throws FileError
 */
export async function digest(tree: WorkspaceTree, path: string, flow: Flow): Promise<object | undefined> {
  const top = tree.find(path, true)
  const counts = { files: 0, bytes: 0 }
  const contentDigest = async (content: Uint8Array): Promise<string | undefined> => {
    const hash = createHash('sha256')
    for (let at = 0; at < content.length; at += HASHED_AT_ONCE) {
      hash.update(content.subarray(at, at + HASHED_AT_ONCE))
      if (!(await flow.pause())) return undefined
    }
    counts.files += 1
    counts.bytes += content.length
    return hash.digest('hex')
  }
  if (top.kind === 'file') {
    const sha256 = await contentDigest(top.content)
    return sha256 === undefined ? undefined : { sha256, ...counts }
  }
  const whole = createHash('sha256')
  for (const [below, , node] of walkBelow(directoryAt(tree, path), byPath, () => true)) {
    if (!(await flow.pause())) return undefined
    if (below.length > MAX_PATH) throw new FileError('too_many', 'a path below it is too long')
    if (node.kind === 'directory') continue
    const content = node.kind === 'file' ? await contentDigest(node.content) : digestOf(node.target)
    if (content === undefined) return undefined
    whole.update(`${node.kind}\0${below}\0${content}\0`)
  }
  return { sha256: whole.digest('hex'), ...counts }
}

/** The directory at a path. @throws FileError */
function directoryAt(tree: WorkspaceTree, path: string): DirectoryNode {
  const node = tree.find(path, true)
  if (node.kind === 'directory') return node
  throw new FileError('not_a_directory', `${JSON.stringify(path)}: it is a file`)
}

/** The regular file in the workspace to which a link leads. */
function resolveFile(tree: WorkspaceTree, top: string, path: string): TreeNode | undefined {
  try {
    const node = tree.find(top === '' || top === '.' ? path : `${top}/${path}`, true)
    return node.kind === 'file' ? node : undefined
  } catch (error) {
    if (error instanceof FileError) return undefined // it leads out, or nowhere
    throw error
  }
}

type Named = readonly [name: string, node: TreeNode]

/** Everything below a directory, in order, without recursion: scripts nest as deep as they like. */
function* walkBelow(
  top: DirectoryNode,
  order: (entries: Iterable<Named>) => Named[],
  enters: (path: string, name: string) => boolean,
): Generator<readonly [path: string, name: string, node: TreeNode], void, void> {
  const levels = [{ base: '', left: order(top.entries).toReversed() }]
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const next = level.left.pop()
    if (next === undefined) {
      levels.pop()
      continue
    }
    const [name, node] = next
    const path = level.base === '' ? name : `${level.base}/${name}`
    yield [path, name, node]
    if (node.kind === 'directory' && enters(path, name))
      levels.push({ base: path, left: order(node.entries).toReversed() })
  }
}

/** Siblings in the order of their names. */
function byName(entries: Iterable<Named>): Named[] {
  return sortBy([...entries], ([name]) => name)
}

/** Siblings so that all paths together are in order: a directory sorts as the paths below it do. */
function byPath(entries: Iterable<Named>): Named[] {
  return sortBy([...entries], ([name, node]) => (node.kind === 'directory' ? `${name}/` : name))
}

/** Sorts by code points, as Python does. The order of UTF-16 differs only where a text has surrogates. */
function sortBy(entries: Named[], keyOf: (entry: Named) => string): Named[] {
  const keyed = entries.map((entry) => ({ entry, key: keyOf(entry) }))
  if (keyed.some(({ key }) => /[\uD800-\uDFFF]/.test(key))) {
    const bytes = new Map(keyed.map(({ key }) => [key, Buffer.from(key)]))
    const empty = Buffer.alloc(0)
    keyed.sort((a, b) => Buffer.compare(bytes.get(a.key) ?? empty, bytes.get(b.key) ?? empty))
  } else keyed.sort((a, b) => (a.key < b.key ? -1 : 1))
  return keyed.map(({ entry }) => entry)
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
