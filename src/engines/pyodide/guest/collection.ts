import { Buffer } from 'node:buffer'
import type { FileNode, FileSystem } from './emscripten.ts'
import { Globs } from './globs.ts'
import { type CollectOrder, send } from './wire.ts'

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
  for (const [path, node] of findMatches(FS, root, new Globs(globs, false), { caps, limitsHit, isOver })) {
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

function findMatches(
  FS: FileSystem,
  root: string,
  globs: Globs,
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
        else if (globs.canMatchBelow(path)) pending.push([path, node])
      } else if (FS.isFile(node.mode) && globs.matches(path)) {
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
