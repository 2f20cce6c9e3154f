import { truncateLikeHarness } from '../../../protocol/index.ts'
import type { CarriedEntry, GuestMessage, RestoreMessage, SyncMessage } from '../guest/wire.ts'
import {
  type DirectoryNode,
  emptyDirectory,
  type FileNode,
  fits,
  nameProblem,
  nodesBelow,
  ownSize,
  type TreeBounds,
  type TreeNode,
  type TreeSize,
} from './tree.ts'

const MAX_PATH = 4096
const PERMISSIONS = 0o777
const MAX_QUOTED = 200
/** Small files are written together, because each write has a fixed cost. */
const GATHERED_BYTES = 256 * 1024

/** The files of a workspace on their way into an instance. */
export interface OutgoingFiles {
  readonly message: RestoreMessage | SyncMessage
  /** The content of the files, in order. */
  readonly contents: readonly Uint8Array[]
  /** The files by their indices among the entries. */
  readonly files: ReadonlyMap<number, FileNode>
}

/** Packs a tree for an instance. @param known the files that the instance has, by their indices; absent: it has none. */
export function packOutgoing(top: DirectoryNode, known?: ReadonlyMap<number, FileNode>): OutgoingFiles {
  // Keyed by content, because an unchanged file comes back as a new node object.
  const indexOf = new Map([...(known ?? [])].map(([index, { content }]) => [content, index]))
  const indices = new Map<DirectoryNode, number>([[top, -1]])
  const entries: CarriedEntry[] = []
  const contents: Uint8Array[] = []
  const files = new Map<number, FileNode>()
  let small: Uint8Array[] = []
  let smallBytes = 0
  const gather = (): void => {
    contents.push(small.length === 1 && small[0] !== undefined ? small[0] : Buffer.concat(small))
    small = []
    smallBytes = 0
  }
  for (const [name, node, directory] of nodesBelow(top)) {
    const entry = { parent: indices.get(directory) ?? -1, name, mode: node.mode, mtimeMs: node.mtimeMs }
    if (node.kind === 'directory') {
      indices.set(node, entries.length)
      entries.push({ ...entry, kind: 'd' })
    } else if (node.kind === 'link') entries.push({ ...entry, kind: 'l', target: node.target })
    else {
      const from = indexOf.get(node.content)
      files.set(entries.length, node)
      if (from !== undefined) {
        entries.push({ ...entry, kind: 'f', size: node.content.length, from })
        continue
      }
      small.push(node.content)
      smallBytes += node.content.length
      if (smallBytes >= GATHERED_BYTES) gather()
      entries.push({ ...entry, kind: 'f', size: node.content.length })
    }
  }
  gather()
  return { message: { type: known === undefined ? 'restore' : 'sync', entries }, contents, files }
}

/** The files of a workspace after a run. */
export interface IncomingTree {
  readonly top: DirectoryNode
  readonly size: TreeSize
}

/**
 * Takes the files that an instance sends back. The instance is hostile: everything is checked and bounded, and if
 * any entry is invalid, the whole tree is rejected.
 */
export class IncomingFiles {
  readonly #sent: ReadonlyMap<number, FileNode>
  readonly #bounds: TreeBounds
  readonly #top = emptyDirectory(PERMISSIONS)
  readonly #size: TreeSize = { bytes: 0, nodes: 0, textBytes: 0 }
  /** The directories by their indices, with the lengths of their paths. */
  readonly #directories = new Map<number, { readonly node: DirectoryNode; readonly pathLength: number }>()
  /** Files whose content has not been received yet, in order. */
  readonly #open: { readonly content: Uint8Array; filled: number }[] = []
  /** The files by their indices, for the next exchange. */
  readonly files: Map<number, FileNode> = new Map()
  #next = 0
  #count = 0
  #isComplete = false
  #problem: string | undefined

  constructor(sent: ReadonlyMap<number, FileNode>, bounds: TreeBounds) {
    this.#sent = sent
    this.#bounds = bounds
    this.#directories.set(-1, { node: this.#top, pathLength: 0 })
  }

  /** The received files, or undefined until all have arrived. */
  get tree(): IncomingTree | undefined {
    return this.#isComplete && this.#problem === undefined ? { top: this.#top, size: this.#size } : undefined
  }

  /** The reason why the files were rejected, or undefined. */
  get problem(): string | undefined {
    return this.#problem
  }

  take(message: GuestMessage): void {
    if (this.#problem !== undefined || this.#isComplete) return
    if (message.type === 'entries') this.#takeEntries(message.entries)
    else if (message.type === 'content') this.#takeContent(message.payload ?? Buffer.alloc(0))
    else if (message.type === 'kept') {
      if (this.#next === this.#open.length) this.#isComplete = true
      else this.#problem = `the content of ${this.#open.length - this.#next} files is missing`
    }
  }

  #takeEntries(entries: unknown): void {
    if (!Array.isArray(entries)) {
      this.#problem = 'the instance sent something else than a list of files'
      return
    }
    for (const entry of entries) {
      this.#problem = this.#takeEntry(entry as Partial<Record<keyof CarriedEntry, unknown>> | null)
      if (this.#problem !== undefined) return
      this.#count += 1
    }
  }

  /** Takes one entry. Returns the problem with it, or undefined. */
  #takeEntry(entry: Partial<Record<keyof CarriedEntry, unknown>> | null): string | undefined {
    const { parent, name, mode, mtimeMs } = entry ?? {}
    const directory = typeof parent === 'number' ? this.#directories.get(parent) : undefined
    const at = `entry ${this.#count}`
    if (directory === undefined) return `${at}: unknown parent directory`
    if (typeof name !== 'string') return `${at}: invalid name`
    if (typeof mode !== 'number') return `${at}: invalid mode`
    const reason = nameProblem(name)
    if (reason !== undefined) return `${at}: the name ${quote(name)} cannot be kept: ${reason}`
    if (directory.node.entries.has(name)) return `${at}: duplicate name ${quote(name)}`
    const pathLength = directory.pathLength + name.length + 1
    if (pathLength > MAX_PATH) return `${at}: its path has more than ${MAX_PATH} characters`
    const time = typeof mtimeMs === 'number' && Number.isSafeInteger(mtimeMs) ? mtimeMs : 0
    const node = this.#nodeOf(entry ?? {}, mode & PERMISSIONS, time)
    if (typeof node === 'string') return `${at}: ${node}`
    directory.node.entries.set(name, node)
    if (node.kind === 'file') this.files.set(this.#count, node)
    if (node.kind === 'directory') this.#directories.set(this.#count, { node, pathLength })
    const own = ownSize(name, node)
    this.#size.nodes += 1
    this.#size.textBytes += own.textBytes
    if (node.kind === 'file') this.#size.bytes += own.bytes
    return fits(this.#size, this.#bounds) ? undefined : this.#describeExcess()
  }

  #nodeOf(
    { kind, size, target, from }: Partial<Record<keyof CarriedEntry, unknown>>,
    mode: number,
    mtimeMs: number,
  ): TreeNode | string {
    if (kind === 'd') return { kind: 'directory', mode, mtimeMs, entries: new Map() }
    if (kind === 'l' && typeof target === 'string')
      return target.length > MAX_PATH
        ? `the target of the link has more than ${MAX_PATH} characters`
        : { kind: 'link', mode, mtimeMs, target }
    if (kind !== 'f') return 'unknown kind'
    if (from !== undefined) {
      const before = typeof from === 'number' ? this.#sent.get(from) : undefined
      return before === undefined ? 'unknown earlier file' : { ...before, mode, mtimeMs }
    }
    // Checked before the memory is allocated.
    if (typeof size !== 'number' || !Number.isInteger(size) || size < 0) return 'invalid size'
    if (this.#size.bytes + size > this.#bounds.maxBytes) return this.#describeExcess()
    const content = new Uint8Array(size)
    if (size > 0) this.#open.push({ content, filled: 0 })
    return { kind: 'file', mode, mtimeMs, content }
  }

  #describeExcess(): string {
    const { maxBytes, maxNodes, maxTextBytes } = this.#bounds
    return `the files exceed the workspace limit of ${maxBytes} bytes, ${maxNodes} entries or ${maxTextBytes} bytes of names`
  }

  #takeContent(payload: Uint8Array): void {
    for (let bytes = payload; bytes.length > 0;) {
      const file = this.#open[this.#next]
      if (file === undefined) {
        this.#problem = 'the instance sent more content than the files have'
        return
      }
      const part = bytes.subarray(0, file.content.length - file.filled)
      file.content.set(part, file.filled)
      file.filled += part.length
      bytes = bytes.subarray(part.length)
      if (file.filled === file.content.length) this.#next += 1
    }
  }
}

/** The name may hold a secret: it is quoted as JSON writes it, which the host redacts. */
function quote(name: string): string {
  return truncateLikeHarness(JSON.stringify(name), MAX_QUOTED)
}
