import { Buffer } from 'node:buffer'
import type { FileNode, FileSystem } from './emscripten.ts'
import { type CollectOrder, send } from './wire.ts'

type Part = RegExp | '**'

/**
 * Sends the host the regular files below a directory that match, in the order of their paths, within the caps. It reads the
 * nodes themselves, so that a script that changed its interpreter has no influence.
 */
export function collect(FS: FileSystem, root: string, { globs, maxMs, caps }: CollectOrder): void {
  const deadlineMs = performance.now() + maxMs
  const limitsHit = new Set<string>()
  const skipped: string[] = []
  const warn = (message: string): void => {
    if (skipped.length < caps.warnings) skipped.push(message)
  }
  const isOver = (): boolean => performance.now() > deadlineMs && limitsHit.add('max_time').size > 0

  let total = 0
  let count = 0
  for (const [path, node] of findMatches(FS, root, globs.map(compileGlob), { caps, limitsHit, isOver })) {
    if (isOver()) break
    const bytes = (node.contents as Uint8Array).subarray(0, node.usedBytes)
    if (bytes.length > caps.fileBytes) {
      limitsHit.add('max_file_bytes')
      warn(`${path}: it has ${bytes.length} bytes; a collected file may have ${caps.fileBytes}`)
      continue
    }
    if (count >= caps.files) {
      limitsHit.add('max_files')
      break
    }
    if (total + bytes.length > caps.totalBytes) {
      limitsHit.add('max_total_bytes')
      continue
    }
    count += 1
    total += bytes.length
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += caps.fileChunkBytes) {
      const piece = bytes.subarray(offset, offset + caps.fileChunkBytes)
      send({ type: 'file', path, size: bytes.length, offset, contentBase64: Buffer.from(piece).toString('base64') })
    }
  }
  send({ type: 'collected', limitsHit: [...limitsHit], skipped })
}

/** True if a glob matches a whole path. */
export function matchesGlob(glob: string, path: string): boolean {
  const parts = compileGlob(glob)
  return closure(parts, statesAfter(parts, path)).includes(parts.length)
}

function findMatches(
  FS: FileSystem,
  root: string,
  globs: readonly (readonly Part[])[],
  { caps, limitsHit, isOver }: { caps: CollectOrder['caps']; limitsHit: Set<string>; isOver: () => boolean },
): [string, FileNode][] {
  const found: [string, FileNode][] = []
  const pending: [string, FileNode][] = [['', FS.lookupPath(root).node]]
  let seen = 0
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [base, directory] = next
    for (const [name, node] of Object.entries(directory.contents as Record<string, FileNode>)) {
      seen += 1
      if (seen > caps.entries) limitsHit.add('max_entries')
      if (seen > caps.entries || (seen % 256 === 0 && isOver())) return sortByCodePoints(found)
      const path = base === '' ? name : `${base}/${name}`
      if (FS.isDir(node.mode)) {
        if (path.split('/').length > caps.fileDepth) limitsHit.add('max_entries')
        else if (globs.some((glob) => statesAfter(glob, path).some((state) => state < glob.length)))
          pending.push([path, node])
      } else if (
        FS.isFile(node.mode) &&
        globs.some((glob) => closure(glob, statesAfter(glob, path)).includes(glob.length))
      ) {
        found.push([path, node])
      }
    }
  }
  return sortByCodePoints(found)
}

/** Sorts paths by code points, as Python does. */
function sortByCodePoints(found: [string, FileNode][]): [string, FileNode][] {
  return found.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

/** Splits a glob into parts: `**` matches any number of path segments, every other part matches one. */
function compileGlob(glob: string): Part[] {
  const parts = glob.replace(/^\/+|\/+$/g, '').split('/')
  if (parts.at(-1) === '**') parts.push('*') // at the end it needs a name to match
  return parts.map((part) => (part === '**' ? part : compilePattern(part)))
}

/** Translates a pattern as Python's fnmatch does. A name that begins with a dot matches only where the pattern writes the dot. */
function compilePattern(pattern: string): RegExp {
  let text = pattern.startsWith('.') ? '' : '(?!\\.)'
  for (let at = 0; at < pattern.length; at += 1) {
    const sign = pattern.charAt(at)
    if (sign === '*') text += '[^]*'
    else if (sign === '?') text += '[^]'
    else if (sign !== '[') text += escapeSign(sign)
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

function escapeSign(sign: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(sign) ? `\\${sign}` : sign
}

/** The positions in a glob that are reached after the whole path. */
function statesAfter(glob: readonly Part[], path: string): number[] {
  let states = [0]
  for (const part of path.split('/')) {
    const next = new Set<number>()
    for (const state of closure(glob, states)) {
      const wanted = glob[state]
      if (wanted === '**') {
        if (!part.startsWith('.')) next.add(state)
      } else if (wanted?.test(part) === true) next.add(state + 1)
    }
    states = [...next]
  }
  return states
}

/** Adds the positions behind `**`, which may match no segment. */
function closure(glob: readonly Part[], states: readonly number[]): number[] {
  const all = new Set(states)
  for (let state of states) while (glob[state] === '**') all.add((state += 1))
  return [...all]
}
