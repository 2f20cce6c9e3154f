import type { FileNode, FileSystem } from './emscripten.ts'
import type { FileChanges } from './quota.ts'
import { type CarriedEntry, PAYLOAD_BYTES, readFully, send, sendWithPayload } from './wire.ts'

const KIND_BITS = { d: 0o040000, f: 0o100000 } as const
const PERMISSIONS = 0o777
/** Characters of names and targets in one message, so that it stays below the longest line. */
const CHARACTERS_AT_ONCE = 64 * 1024
/** The bytes that an entry counts beside its texts. */
const ENTRY_CHARACTERS = 128

/**
 * Brings the files of a workspace into this instance, and sends them back after the script. It works on the nodes themselves: their
 * number, and not the length of their paths, is the cost, and a script that changed its interpreter has no influence.
 */
export class Carrier {
  readonly #FS: FileSystem
  readonly #root: string
  readonly #changes: FileChanges
  /** Files whose content is that with which they came, with their indices. */
  readonly #unchanged = new Map<FileNode, number>()

  constructor(FS: FileSystem, root: string, changes: FileChanges) {
    this.#FS = FS
    this.#root = root
    this.#changes = changes
  }

  /** Makes the files, whose content follows as input. Answers the host. */
  restore(entries: readonly CarriedEntry[]): void {
    const nodes: FileNode[] = []
    try {
      for (const entry of entries) nodes.push(this.#make(entry, nodes[entry.parent] ?? this.#rootNode))
    } catch {
      send({
        type: 'refused',
        path: this.#root,
        reason: 'the files of the workspace do not fit into the memory of the run',
      })
      return
    }
    // Last: a new entry changes the time of its directory.
    for (const [index, { kind, mtimeMs }] of entries.entries()) {
      const node = nodes[index]
      if (node === undefined) continue
      node.mtime = mtimeMs
      if (kind === 'f') this.#unchanged.set(node, index)
    }
    this.#changes.onContent = (node) => void this.#unchanged.delete(node)
    send({ type: 'restored' })
  }

  /** Sends directories, regular files and links, and the content of the files that changed. */
  send(): void {
    const changed: FileNode[] = []
    const pending: { readonly node: FileNode; readonly index: number }[] = [{ node: this.#rootNode, index: -1 }]
    let batch: CarriedEntry[] = []
    let characters = 0
    let count = 0
    for (const { node: directory, index: parent } of pending) {
      for (const [name, node] of Object.entries(directory.contents as Record<string, FileNode>)) {
        const entry = this.#entryOf(parent, name, node)
        if (entry === undefined) continue
        if (entry.kind === 'd') pending.push({ node, index: count })
        else if (entry.kind === 'f' && entry.from === undefined) changed.push(node)
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
      // A file that Python wrote is a view of bytes with a sign.
      const { buffer, byteOffset } = node.contents as Uint8Array
      const content = new Uint8Array(buffer, byteOffset, node.usedBytes)
      for (let at = 0; at < content.length; at += PAYLOAD_BYTES)
        sendWithPayload({ type: 'content' }, content.subarray(at, at + PAYLOAD_BYTES))
    }
    send({ type: 'kept' })
  }

  get #rootNode(): FileNode {
    return this.#FS.lookupPath(this.#root).node
  }

  #make({ kind, name, mode, size = 0, target = '' }: CarriedEntry, parent: FileNode): FileNode {
    const operations = parent.node_ops as unknown as Record<'mknod' | 'symlink', (...args: unknown[]) => FileNode>
    if (kind === 'l') return operations.symlink(parent, name, target)
    const node = operations.mknod(parent, name, KIND_BITS[kind] | mode, 0)
    if (size === 0) return node
    const content = new Uint8Array(size)
    if (!readFully(content)) throw new Error('the input ended')
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
