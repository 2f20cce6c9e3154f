import { FileError, problem } from './file-error.ts'
import type { Flow } from './flow.ts'
import type { FileNode, WorkspaceTree } from './tree.ts'

/* Packs (docs/protocol.md): the length of a header (4 bytes, big-endian), the header, then chunks, each a length and as many
 * bytes; the length 0 ends a file. */
const LENGTH_BYTES = 4
const MAX_HEADER_BYTES = 16 * 1024
const MAX_CHUNK_BYTES = 1024 * 1024
const DEFAULT_MODE = 0o644
const PIECE_BYTES = 60 * 1024
const FIRST_BYTES = 4096

/** The header of an entry, checked. Only a file has content. */
type PackHeader = { readonly path: string; readonly mode: number } & (
  | { readonly kind: 'file' | 'directory' }
  | { readonly kind: 'link'; readonly target: string }
)

type Expected = 'header-length' | 'header' | 'chunk-length' | 'chunk'

/** Takes the files of a pack into a tree, in pieces of any size. A file appears when it is complete. */
export class PackIntake {
  files = 0
  bytes = 0
  readonly #tree: WorkspaceTree
  readonly #commit: (write: () => void) => void
  #expected: Expected = 'header-length'
  #needed = LENGTH_BYTES
  #held = Buffer.alloc(0)
  #file: PackHeader | undefined
  #content = Buffer.alloc(0)
  #size = 0

  /** @param commit runs the function that puts a complete file into the tree, or throws a FileError. */
  constructor(tree: WorkspaceTree, commit: (write: () => void) => void) {
    this.#tree = tree
    this.#commit = commit
  }

  /** @throws FileError */
  feed(given: Uint8Array): void {
    for (let bytes = given; bytes.length > 0;) {
      const part = bytes.subarray(0, this.#needed - (this.#expected === 'chunk' ? 0 : this.#held.length))
      bytes = bytes.subarray(part.length)
      if (this.#expected === 'chunk') {
        this.#append(part)
        this.#needed -= part.length
        if (this.#needed === 0) this.#expect('chunk-length', LENGTH_BYTES)
        continue
      }
      this.#held = Buffer.concat([this.#held, part])
      if (this.#held.length === this.#needed) this.#take(this.#held)
    }
  }

  /** @throws FileError if the pack ends within a file. */
  finish(): void {
    if (this.#file !== undefined) throw problem('invalid', this.#file.path, 'the pack ends within it')
    if (this.#expected !== 'header-length' || this.#held.length > 0)
      throw new FileError('invalid', 'the pack ends within a header')
  }

  /** Drops the incomplete file. */
  abort(): void {
    this.#tree.unreserve(this.#size)
    this.#size = 0
    this.#content = Buffer.alloc(0)
    this.#file = undefined
  }

  #take(held: Buffer): void {
    if (this.#expected === 'header') {
      this.#file = headerOf(held)
      if (this.#file.kind !== 'directory') this.#tree.checkPlace(this.#file.path)
      return this.#expect('chunk-length', LENGTH_BYTES)
    }
    const length = held.readUInt32BE()
    if (this.#expected === 'header-length') {
      if (length === 0 || length > MAX_HEADER_BYTES)
        throw new FileError('invalid', `a header of ${length} bytes; it may have 1 to ${MAX_HEADER_BYTES}`)
      return this.#expect('header', length)
    }
    const path = this.#file?.path ?? ''
    if (length > MAX_CHUNK_BYTES)
      throw problem('invalid', path, `a chunk of ${length} bytes; it may have ${MAX_CHUNK_BYTES}`)
    if (length > 0 && this.#file?.kind !== 'file') throw problem('invalid', path, 'only a file has content')
    if (length > 0) return this.#expect('chunk', length)
    this.#complete()
    this.#expect('header-length', LENGTH_BYTES)
  }

  #complete(): void {
    const file = this.#file
    if (file === undefined) return
    const content = Buffer.from(this.#content.subarray(0, this.#size))
    this.#tree.unreserve(this.#size)
    this.#size = 0
    this.#content = Buffer.alloc(0)
    this.#file = undefined
    this.#commit(() => {
      if (file.kind === 'file') this.#tree.put(file.path, file.mode, content)
      else if (file.kind === 'link') this.#tree.link(file.path, file.target)
      else this.#tree.make(file.path, file.mode, true)
    })
    this.files += 1
    this.bytes += content.length
  }

  #append(part: Uint8Array): void {
    this.#tree.reserve(this.#file?.path ?? '', part.length)
    if (this.#size + part.length > this.#content.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(this.#size + part.length, this.#content.length * 2, FIRST_BYTES))
      this.#content.copy(grown, 0, 0, this.#size)
      this.#content = grown
    }
    this.#content.set(part, this.#size)
    this.#size += part.length
  }

  #expect(expected: Expected, needed: number): void {
    this.#expected = expected
    this.#needed = needed
    this.#held = Buffer.alloc(0)
  }
}

function headerOf(held: Buffer): PackHeader {
  let header: unknown
  try {
    header = JSON.parse(held.toString('utf8'))
  } catch {
    throw new FileError('invalid', 'a header is not a JSON object')
  }
  const { path, mode = DEFAULT_MODE, kind = 'file', target = '', error } = (header ?? {}) as Record<string, unknown>
  if (typeof path !== 'string') throw new FileError('invalid', 'a header has no path')
  if (!Number.isInteger(mode) || Number(mode) < 0 || Number(mode) > 0o777)
    throw problem('invalid', path, 'its mode is not one of 0 to 0o777')
  if (error !== undefined) throw problem('invalid', path, 'the entry reports an error')
  if (kind !== 'file' && kind !== 'link' && kind !== 'directory')
    throw problem('invalid', path, 'its kind is not file, link or directory')
  if (typeof target !== 'string' || (kind === 'link') !== (target !== '') || target.includes('\0'))
    throw problem('invalid', path, 'a link needs a target, and nothing else has one')
  return kind === 'link' ? { path, mode: Number(mode), kind, target } : { path, mode: Number(mode), kind }
}

/** Sends files as a pack. Resolves to false if the activity ended. */
export async function sendPack(
  tree: WorkspaceTree,
  paths: readonly string[],
  limits: { readonly maxFileBytes: number | null; readonly maxTotalBytes: number | null },
  flow: Flow,
): Promise<boolean> {
  let buffered: Uint8Array[] = []
  let size = 0
  let total = 0
  const put = async (...parts: readonly Uint8Array[]): Promise<boolean> => {
    buffered.push(...parts)
    for (const { length } of parts) size += length
    return size < PIECE_BYTES || flush()
  }
  const flush = async (): Promise<boolean> => {
    const bytes = Buffer.concat(buffered)
    buffered = []
    size = 0
    return bytes.length === 0 || flow.bytes(bytes)
  }
  for (const path of paths) {
    let file: FileNode
    try {
      file = fileAt(tree, path, limits, total)
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      if (!(await put(...frameHeader({ path, error: { code: error.code, message: error.message } })))) return false
      continue
    }
    const { content, mode, mtimeMs } = file
    total += content.length
    if (!(await put(...frameHeader({ path, mode, size: content.length, mtime_ms: mtimeMs })))) return false
    for (let at = 0; at < content.length; at += PIECE_BYTES) {
      const piece = content.subarray(at, at + PIECE_BYTES)
      if (!(await put(lengthOf(piece.length), piece))) return false
    }
    if (!(await put(lengthOf(0)))) return false
  }
  return flush()
}

function fileAt(
  tree: WorkspaceTree,
  path: string,
  { maxFileBytes, maxTotalBytes }: { readonly maxFileBytes: number | null; readonly maxTotalBytes: number | null },
  total: number,
): FileNode {
  const node = tree.find(path, true)
  if (node.kind === 'directory') throw problem('not_a_file', path, 'it is a directory')
  if (node.kind === 'link') throw problem('outside', path, 'a link leads out of the workspace')
  const size = node.content.length
  if (maxFileBytes !== null && size > maxFileBytes)
    throw problem('too_large', path, `it has ${size} bytes; a file may have ${maxFileBytes}`)
  if (maxTotalBytes !== null && total + size > maxTotalBytes)
    throw problem('too_large', path, `its ${size} bytes exceed the limit of ${maxTotalBytes} for all files`)
  return node
}

function frameHeader(header: object): readonly [Uint8Array, Uint8Array] {
  const body = Buffer.from(JSON.stringify(header))
  return [lengthOf(body.length), body]
}

function lengthOf(count: number): Uint8Array {
  const bytes = Buffer.alloc(LENGTH_BYTES)
  bytes.writeUInt32BE(count)
  return bytes
}
