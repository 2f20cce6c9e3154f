import { Buffer } from 'node:buffer'
import type { FileNode, FileSystem } from './emscripten.ts'
import { tell } from './wire.ts'

const MAX_FILES = 100
const MAX_FILE_BYTES = 4 * 1024 * 1024
const MAX_TOTAL_BYTES = 64 * 1024 * 1024
const MAX_ENTRIES = 200_000
const MAX_WALK_DEPTH = 64
const MAX_WARNINGS = 20
const CHUNK_BYTES = 192 * 1024

type Part = RegExp | '**'

/**
 * Tells the host the regular files below a directory that match, in the order of their paths, within the caps. It looks at
 * the nodes themselves: whatever the script made of its interpreter, or left of it, has no say here.
 */
export function collect(FS: FileSystem, root: string, globs: readonly string[], deadlineMs: number): void {
  const limitsHit = new Set<string>()
  const skipped: string[] = []
  const warn = (message: string): void => {
    if (skipped.length < MAX_WARNINGS) skipped.push(message)
  }
  const isOver = (): boolean => performance.now() > deadlineMs && limitsHit.add('max_time').size > 0

  let total = 0
  let count = 0
  for (const [path, node] of matching(FS, root, globs.map(compiled), { limitsHit, isOver })) {
    if (isOver()) break
    const bytes = (node.contents as Uint8Array).subarray(0, node.usedBytes)
    if (bytes.length > MAX_FILE_BYTES) {
      limitsHit.add('max_file_bytes')
      warn(`${path}: ${bytes.length} bytes are over the ${MAX_FILE_BYTES} of a collected file`)
      continue
    }
    if (count >= MAX_FILES) {
      limitsHit.add('max_files')
      break
    }
    if (total + bytes.length > MAX_TOTAL_BYTES) {
      limitsHit.add('max_total_bytes')
      continue
    }
    count += 1
    total += bytes.length
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += CHUNK_BYTES) {
      const piece = bytes.subarray(offset, offset + CHUNK_BYTES)
      tell({ type: 'file', path, size: bytes.length, offset, contentBase64: Buffer.from(piece).toString('base64') })
    }
  }
  tell({ type: 'collected', limitsHit: [...limitsHit], skipped })
}

function matching(
  FS: FileSystem,
  root: string,
  globs: readonly (readonly Part[])[],
  { limitsHit, isOver }: { limitsHit: Set<string>; isOver: () => boolean },
): [string, FileNode][] {
  const found: [string, FileNode][] = []
  const pending: [string, FileNode][] = [['', FS.lookupPath(root).node]]
  let seen = 0
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [base, directory] = next
    for (const [name, node] of Object.entries(directory.contents as Record<string, FileNode>)) {
      seen += 1
      if (seen > MAX_ENTRIES) limitsHit.add('max_entries')
      if (seen > MAX_ENTRIES || (seen % 256 === 0 && isOver())) return sorted(found)
      const path = base === '' ? name : `${base}/${name}`
      if (FS.isDir(node.mode)) {
        if (path.split('/').length > MAX_WALK_DEPTH) limitsHit.add('max_entries')
        else if (globs.some((glob) => after(glob, path).some((state) => state < glob.length)))
          pending.push([path, node])
      } else if (FS.isFile(node.mode) && globs.some((glob) => closure(glob, after(glob, path)).includes(glob.length))) {
        found.push([path, node])
      }
    }
  }
  return sorted(found)
}

/** As Python sorts text: by code points. */
function sorted(found: [string, FileNode][]): [string, FileNode][] {
  return found.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

/** The parts of a glob over whole paths: `**` is any number of parts, the rest matches within one part. */
function compiled(glob: string): Part[] {
  const parts = glob.replace(/^\/+|\/+$/g, '').split('/')
  if (parts.at(-1) === '**') parts.push('*') // at the end it needs a name to match
  return parts.map((part) => (part === '**' ? part : expressionOf(part)))
}

/** What Python's fnmatch makes of a pattern. */
function expressionOf(pattern: string): RegExp {
  let text = ''
  for (let at = 0; at < pattern.length; at += 1) {
    const sign = pattern.charAt(at)
    if (sign === '*') text += '[^]*'
    else if (sign === '?') text += '[^]'
    else if (sign !== '[') text += escaped(sign)
    else {
      const negated = pattern.charAt(at + 1) === '!'
      const first = at + (negated ? 2 : 1)
      const end = pattern.indexOf(']', first + 1)
      if (end === -1) text += '\\['
      else {
        const set = pattern.slice(first, end).replace(/[\\\]^&|~[]/g, '\\$&')
        text += `[${negated ? '^' : ''}${set}]`
        at = end
      }
    }
  }
  try {
    return new RegExp(`^${text}$`, 'u')
  } catch {
    return /(?!)/ // a range that runs backwards matches nothing
  }
}

function escaped(sign: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(sign) ? `\\${sign}` : sign
}

/** The places in a glob that are reached when the whole path is read. */
function after(glob: readonly Part[], path: string): number[] {
  let states = [0]
  for (const part of path.split('/')) {
    const next = new Set<number>()
    for (const state of closure(glob, states)) {
      const wanted = glob[state]
      if (wanted === '**') next.add(state)
      else if (wanted?.test(part) === true) next.add(state + 1)
    }
    states = [...next]
  }
  return states
}

/** `**` may stand for no part at all. */
function closure(glob: readonly Part[], states: readonly number[]): number[] {
  const all = new Set(states)
  for (let state of states) while (glob[state] === '**') all.add((state += 1))
  return [...all]
}
