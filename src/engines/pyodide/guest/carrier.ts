import type { FileNode, FileSystem } from './emscripten.ts'
import type { FileChanges } from './quota.ts'
import { type CarriedEntry, PAYLOAD_BYTES, readFully, send, sendWithPayload } from './wire.ts'

const KIND_BITS = { d: 0o040000, f: 0o100000 } as const
const PERMISSIONS = 0o777
/** Characters of names and targets in one message, so that it stays below the longest line. */
const CHARACTERS_AT_ONCE = 64 * 1024
/** The characters that are counted for an entry in addition to its name and target. */
const ENTRY_CHARACTERS = 128

const NO_ROOM =
  'the files of the workspace do not fit into the memory of the run; remove files, or raise limits.memoryBytes'

/** The content that follows an entry, which is read as input. */
function contentOf({ kind, size = 0, from }: CarriedEntry): Uint8Array {
  const content = new Uint8Array(kind === 'f' && from === undefined ? size : 0)
  if (!readFully(content)) throw new Error('the input ended')
  return content
}

/** Returns the content as unsigned bytes: that of a file that Python wrote is a view of signed ones. */
function bytesOf(node: FileNode): Uint8Array {
  const { buffer, byteOffset } = node.contents as Uint8Array
  return new Uint8Array(buffer, byteOffset, node.usedBytes)
}

function copyOf(node: FileNode | undefined): Uint8Array {
  if (node === undefined) throw new Error('its content is not here')
  return bytesOf(node).slice()
}

function entriesOf(directory: FileNode): [string, FileNode][] {
  return Object.entries(directory.contents as Record<string, FileNode>)
}

/**
 * Makes the files of a workspace in this instance, and sends them back after the script. It works on the nodes themselves: the time
 * depends on their number and not on the length of their paths, and a script that changed its interpreter has no influence.
 */
export class Carrier {
  readonly #FS: FileSystem
  readonly #root: string
  readonly #changes: FileChanges
  /** Files whose content the host has, with their indices when they were sent last. */
  #unchanged = new Map<FileNode, number>()

  constructor(FS: FileSystem, root: string, changes: FileChanges) {
    this.#FS = FS
    this.#root = root
    this.#changes = changes
  }

  /** Makes the files, whose content follows as input. Answers the host. */
  restore(entries: readonly CarriedEntry[]): void {
    const nodes: FileNode[] = []
    try {
      for (const entry of entries)
        nodes.push(this.#make(entry, nodes[entry.parent] ?? this.#rootNode, contentOf(entry)))
    } catch {
      return send({ type: 'refused', path: this.#root, reason: NO_ROOM })
    }
    this.#note(entries, nodes)
    send({ type: 'restored' })
  }

  /**
   * Makes the files those of the host: files that it does not name are removed. Answers the host, which may retry after a
   * refusal.
   */
  sync(entries: readonly CarriedEntry[]): void {
    const nodes: FileNode[] = []
    // A script outside this session may have moved a file. It is removed here from its old place.
    const moved = new Map([...this.#unchanged].map(([node, index]) => [index, node]))
    let isRefused = false
    this.#FS.ignorePermissions = true // a cell may have removed its own permissions
    try {
      this.#prune(entries)
      for (const [index, entry] of entries.entries()) {
        const content = contentOf(entry) // also after a refusal: the next message follows it
        if (isRefused) continue
        const parent = nodes[entry.parent] ?? this.#rootNode
        try {
          const there = parent.contents as Record<string, FileNode>
          const kept = Object.hasOwn(there, entry.name) ? there[entry.name] : undefined // `toString` is in each object
          nodes[index] =
            kept ?? this.#make(entry, parent, entry.from === undefined ? content : copyOf(moved.get(entry.from)))
          if (kept !== undefined && entry.kind !== 'l') kept.mode = (kept.mode & ~PERMISSIONS) | entry.mode
        } catch {
          isRefused = true
        }
      }
    } finally {
      this.#FS.ignorePermissions = false
    }
    if (isRefused) return send({ type: 'refused', path: this.#root, reason: NO_ROOM })
    this.#note(entries, nodes)
    return send({ type: 'restored' })
  }

  /** Removes everything that does not match an entry. */
  #prune(entries: readonly CarriedEntry[]): void {
    const named = new Map<number, Map<string, number>>()
    for (const [index, { parent, name }] of entries.entries()) {
      const names = named.get(parent) ?? new Map<string, number>()
      named.set(parent, names.set(name, index))
    }
    const pending = [{ directory: this.#rootNode, path: this.#root, index: -1 }]
    for (const { directory, path, index } of pending) {
      for (const [name, node] of entriesOf(directory)) {
        const at = named.get(index)?.get(name)
        const entry = at === undefined ? undefined : entries[at]
        if (at === undefined || entry === undefined || !this.#isAs(node, entry)) this.#remove(`${path}/${name}`, node)
        else if (entry.kind === 'd') pending.push({ directory: node, path: `${path}/${name}`, index: at })
      }
    }
  }

  #isAs(node: FileNode, { kind, target, from }: CarriedEntry): boolean {
    const FS = this.#FS
    if (kind === 'd') return FS.isDir(node.mode)
    if (kind === 'l') return FS.isLink(node.mode) && node.link === target
    return FS.isFile(node.mode) && from !== undefined && this.#unchanged.get(node) === from
  }

  #remove(path: string, node: FileNode): void {
    if (!this.#FS.isDir(node.mode)) return this.#FS.unlink(path)
    for (const [name, child] of entriesOf(node)) this.#remove(`${path}/${name}`, child)
    return this.#FS.rmdir(path)
  }

  /** Notes the files that the host has. */
  #note(entries: readonly CarriedEntry[], nodes: readonly FileNode[]): void {
    this.#unchanged = new Map()
    // Last: a new entry changes the time of its directory.
    for (const [index, { kind, mtimeMs }] of entries.entries()) {
      const node = nodes[index]
      if (node === undefined) continue
      node.mtime = mtimeMs
      if (kind === 'f') this.#unchanged.set(node, index)
    }
    this.#changes.onContent = (node) => void this.#unchanged.delete(node)
  }

  /**
   * Sends directories, regular files and links, and the content of the files that changed. After that, the host has the
   * content.
   */
  send(): void {
    const changed: FileNode[] = []
    const sent = new Map<FileNode, number>()
    const pending: { readonly node: FileNode; readonly index: number }[] = [{ node: this.#rootNode, index: -1 }]
    let batch: CarriedEntry[] = []
    let characters = 0
    let count = 0
    for (const { node: directory, index: parent } of pending) {
      for (const [name, node] of entriesOf(directory)) {
        const entry = this.#entryOf(parent, name, node)
        if (entry === undefined) continue
        if (entry.kind === 'd') pending.push({ node, index: count })
        else if (entry.kind === 'f') {
          sent.set(node, count)
          if (entry.from === undefined) changed.push(node)
        }
        count += 1
        batch.push(entry)
        characters += ENTRY_CHARACTERS + name.length + (entry.target?.length ?? 0)
        if (characters < CHARACTERS_AT_ONCE) continue
        send({ type: 'entries', entries: batch })
        batch = []
        characters = 0
      }
    }
    send({ type: 'entries', entries: batch })
    for (const node of changed) {
      const content = bytesOf(node)
      for (let at = 0; at < content.length; at += PAYLOAD_BYTES)
        sendWithPayload({ type: 'content' }, content.subarray(at, at + PAYLOAD_BYTES))
    }
    this.#unchanged = sent
    send({ type: 'kept' })
  }

  get #rootNode(): FileNode {
    return this.#FS.lookupPath(this.#root).node
  }

  #make({ kind, name, mode, target = '' }: CarriedEntry, parent: FileNode, content: Uint8Array): FileNode {
    const size = content.length
    const operations = parent.node_ops as unknown as Record<'mknod' | 'symlink', (...args: unknown[]) => FileNode>
    if (kind === 'l') return operations.symlink(parent, name, target)
    const node = operations.mknod(parent, name, KIND_BITS[kind] | mode, 0)
    if (size === 0) return node
    const write = node.stream_ops['write'] as (...args: unknown[]) => number
    if (write({ node }, content, 0, size, 0, true) !== size) throw new Error('there is no room')
    return node
  }

  #entryOf(parent: number, name: string, node: FileNode): CarriedEntry | undefined {
    const FS = this.#FS
    const entry = { parent, name, mode: node.mode & PERMISSIONS, mtimeMs: Math.trunc(node.mtime) || 0 }
    if (FS.isDir(node.mode)) return { ...entry, kind: 'd' }
    if (FS.isLink(node.mode)) return { ...entry, kind: 'l', target: node.link ?? '' }
    if (!FS.isFile(node.mode)) return undefined
    const from = this.#unchanged.get(node)
    return { ...entry, kind: 'f', size: node.usedBytes, ...(from === undefined ? {} : { from }) }
  }
}
