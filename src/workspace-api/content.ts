import { isUtf8 } from 'node:buffer'
import { posix } from 'node:path'
import type { OpenWorkspace } from './open-workspaces.ts'
import { isMetadataDraft } from './metadata.ts'
import { isTextMime } from './text-mime.ts'
import type { SkippedFile } from '../workspace/index.ts'

/** A file in a workspace that globs match. */
export interface FoundFile {
  readonly path: string
  readonly size: number
}

const MAX_LINKS = 40
/** Maximum number of entries that a collection examines; more are an error. */
const MAX_ENTRIES = 100_000
const BINARY = 'application/octet-stream'

/**
 * The regular files that globs match, sorted by path. A file that a link also names is listed once.
 * @param maxFiles one more file is returned if there are more.
 */
export async function findFiles(
  { sandbox }: OpenWorkspace,
  globs: readonly string[],
  { maxFiles, signal }: { readonly maxFiles: number; readonly signal: AbortSignal | undefined },
): Promise<{ readonly files: FoundFile[]; readonly skipped: SkippedFile[] }> {
  if (globs.length === 0) return { files: [], skipped: [] }
  const options = signal === undefined ? {} : { signal }
  const links = new Map<string, string>()
  for await (const { path, kind, target } of sandbox.list('', { patterns: globs, maxEntries: MAX_ENTRIES, ...options }))
    if (kind === 'link' && target !== undefined) links.set(path, target)
  const files = new Map<string, FoundFile>()
  const skipped: SkippedFile[] = []
  const onSkipped = (file: SkippedFile): void => void skipped.push(file)
  const bounds = { maxFiles: MAX_ENTRIES, maxTotalBytes: Number.MAX_SAFE_INTEGER, onSkipped, ...options }
  for await (const { path, size } of sandbox.collect(globs, bounds)) {
    if (isMetadataDraft(path)) continue
    const real = followLinks(path, links)
    // The path of the file itself takes precedence over a link to it.
    if (!files.has(real) || real === path) files.set(real, { path, size })
    if (files.size > maxFiles) break
  }
  return { files: [...files.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1)), skipped }
}

/** Reads at most `maxBytes` of a file. */
export async function readBeginning(
  { sandbox }: OpenWorkspace,
  path: string,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let left = maxBytes
  if (left === 0) return new Uint8Array()
  for await (const piece of sandbox.read(path, signal === undefined ? {} : { signal })) {
    pieces.push(Uint8Array.from(piece.subarray(0, left)))
    left -= Math.min(left, piece.length)
    if (left === 0) break
  }
  return Buffer.concat(pieces)
}

/** The MIME type of a file, by its name; otherwise `text/plain` for UTF-8 without NUL. */
export async function mimeTypeOf(path: string, data: Uint8Array | undefined): Promise<string> {
  // Imported only if there are files, because loading its table takes 10 ms.
  const { default: mime } = await import('mime')
  const known = mime.getType(path)
  if (known !== null) return known
  return data !== undefined && data.length > 0 && !data.includes(0) && isUtf8(completeCharacters(data))
    ? 'text/plain'
    : BINARY
}

/** The text of a text file; `''` for any other. An incomplete last character is left out. */
export function textOf(mimeType: string, data: Uint8Array): string {
  return isTextMime(mimeType) ? Buffer.from(completeCharacters(data)).toString('utf8') : ''
}

function completeCharacters(data: Uint8Array): Uint8Array {
  for (let back = 1; back <= Math.min(3, data.length); back += 1) {
    const byte = data[data.length - back] as number
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? data.subarray(0, data.length - back) : data
  }
  return data
}

/** Resolves a chain of links by their paths. */
function followLinks(path: string, links: ReadonlyMap<string, string>): string {
  let at = path
  for (let count = 0; count < MAX_LINKS; count += 1) {
    const target = links.get(at)
    if (target === undefined) return at
    at = posix.isAbsolute(target) ? posix.relative('/workspace', target) : posix.join(posix.dirname(at), target)
  }
  return path
}
