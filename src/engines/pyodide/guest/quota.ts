import { ERRNO, type FileMount, type FileNode, type FileStream, type FileSystem } from './emscripten.ts'

type Operation = (...args: never[]) => unknown
type WriteOperation = (
  stream: FileStream,
  buffer: Uint8Array,
  offset: number,
  length: number,
  position: number,
  canOwn?: boolean,
) => number

/** The limit of files and directories together: each costs memory, even an empty one. */
const MAX_NODES = 100_000

/** The memory limit of Python and files together, and its use. */
export class MemoryBudget {
  maxBytes: number
  fileBytes = 0
  /** The current size of Python's memory. */
  readonly #heapBytes: () => number

  constructor(maxBytes: number, heapBytes: () => number) {
    this.maxBytes = maxBytes
    this.#heapBytes = heapBytes
  }

  /** True if this many more bytes are within the limit. */
  holds(more: number): boolean {
    return this.#heapBytes() + this.fileBytes + more <= this.maxBytes
  }
}

interface Usage {
  readonly maxBytes: number
  bytes: number
}

/**
 * Limits the file system in memory: each scratch directory is a mount with a size, everything else is read-only. All nodes share
 * the operations, so each operation is replaced once.
 */
export function limitFiles(
  FS: FileSystem,
  scratch: Readonly<Record<string, number>>,
  budget: MemoryBudget,
): FileChanges {
  const quota = new FileQuota(FS, budget)
  for (const [path, maxBytes] of Object.entries(scratch)) quota.mount(path, maxBytes)
  replaceDirectoryOperations(FS, quota)
  replaceSetattr(FS, quota)
  replaceStreamOperations(FS, quota)
  return quota
}

/** Reports changes of files. */
export interface FileChanges {
  /** Called with each file whose content may have changed. */
  onContent: (node: FileNode) => void
}

/** The use of the scratch directories, and their limits. A file that is deleted while it is open counts until it is closed. */
class FileQuota implements FileChanges {
  onContent: (node: FileNode) => void = () => undefined
  readonly #FS: FileSystem
  readonly #budget: MemoryBudget
  readonly #usages = new Map<FileMount, Usage>()
  readonly #unlinked = new WeakSet<FileNode>()
  #nodes = 0

  constructor(FS: FileSystem, budget: MemoryBudget) {
    this.#FS = FS
    this.#budget = budget
  }

  mount(path: string, maxBytes: number): void {
    this.#FS.mkdirTree(path)
    this.#FS.mount(this.#FS.filesystems.MEMFS, {}, path)
    this.#usages.set(this.#FS.lookupPath(path).node.mount, { maxBytes, bytes: 0 })
  }

  fail(errno: number): never {
    throw new this.#FS.ErrnoError(errno)
  }

  /** The usage of the scratch directory that a node is in. Fails for a node of another file system: it is read-only. */
  usageOf(node: FileNode): Usage {
    return this.#usages.get(node.mount) ?? this.fail(ERRNO.EROFS)
  }

  /** Counts one more file or directory. */
  addNode<T>(make: () => T): T {
    if (this.#nodes >= MAX_NODES) this.fail(ERRNO.ENOSPC)
    const made = make()
    this.#nodes += 1
    return made
  }

  /** Returns how many of these bytes fit. */
  roomFor(usage: Usage, bytes: number): number {
    const room = Math.min(bytes, usage.maxBytes - usage.bytes)
    return room > 0 && this.#budget.holds(room) ? room : 0
  }

  charge(usage: Usage, bytes: number): void {
    usage.bytes += bytes
    this.#budget.fileBytes += bytes
  }

  /** Counts a node that was deleted or replaced. */
  free(node: FileNode): void {
    this.#nodes -= 1
    const usage = this.#usages.get(node.mount)
    if (usage === undefined || !this.#FS.isFile(node.mode)) return
    if (this.#isOpen(node)) this.#unlinked.add(node)
    else this.charge(usage, -node.usedBytes)
  }

  /** Counts a file that was deleted before, when its last stream is closed. */
  close(stream: FileStream): void {
    const { node } = stream
    const usage = this.#usages.get(node.mount)
    if (usage !== undefined && this.#unlinked.has(node) && !this.#isOpen(node, stream)) {
      this.charge(usage, -node.usedBytes)
    }
  }

  #isOpen(node: FileNode, but?: FileStream): boolean {
    return this.#FS.streams.some(
      (stream) => stream !== null && stream !== undefined && stream !== but && stream.node === node,
    )
  }
}

function replaceDirectoryOperations(FS: FileSystem, quota: FileQuota): void {
  const table = FS.filesystems.MEMFS.ops_table.dir.node
  for (const name of ['mknod', 'symlink']) {
    replace(table, name, (operation) => (parent: FileNode, ...rest: never[]) => {
      quota.usageOf(parent)
      return quota.addNode(() => operation(...([parent, ...rest] as never[])))
    })
  }
  for (const name of ['unlink', 'rmdir']) {
    replace(table, name, (operation) => (parent: FileNode, child: string) => {
      quota.usageOf(parent)
      const node = FS.lookupNode(parent, child)
      const done = operation(...([parent, child] as never[]))
      quota.free(node)
      return done
    })
  }
  replace(table, 'rename', (operation) => (node: FileNode, into: FileNode, name: string) => {
    quota.usageOf(node)
    quota.usageOf(into)
    const before = Object.hasOwn(into.contents as object, name) ? FS.lookupNode(into, name) : undefined
    const done = operation(...([node, into, name] as never[]))
    if (before !== undefined) quota.free(before)
    return done
  })
}

function replaceSetattr(FS: FileSystem, quota: FileQuota): void {
  const { dir, file } = FS.filesystems.MEMFS.ops_table
  for (const table of [dir.node, file.node]) {
    replace(table, 'setattr', (operation) => (node: FileNode, wanted: { size?: number }) => {
      const usage = quota.usageOf(node)
      const { size } = wanted
      if (size === undefined || !FS.isFile(node.mode)) return operation(...([node, wanted] as never[]))
      const more = size - node.usedBytes
      if (more > 0 && quota.roomFor(usage, more) < more) quota.fail(ERRNO.ENOSPC)
      const done = operation(...([node, wanted] as never[]))
      quota.onContent(node)
      quota.charge(usage, more)
      return done
    })
  }
}

function replaceStreamOperations(FS: FileSystem, quota: FileQuota): void {
  const { MEMFS } = FS.filesystems
  const { stream: table } = MEMFS.ops_table.file
  const plainWrite = table['write'] as WriteOperation
  const write: WriteOperation = (stream, buffer, offset, length, position, canOwn) => {
    const { node } = stream
    const usage = quota.usageOf(node)
    const more = Math.max(0, position + length - node.usedBytes)
    const room = more === 0 ? 0 : quota.roomFor(usage, more)
    const written = length - (more - room)
    if (written <= 0 && length > 0) quota.fail(ERRNO.ENOSPC)
    const before = node.usedBytes
    quota.onContent(node)
    const done = plainWrite(stream, buffer, offset, written, position, canOwn)
    quota.charge(usage, node.usedBytes - before)
    return done
  }
  table['write'] = write
  MEMFS.stream_ops['write'] = write // used to write back mapped files
  table['close'] = (stream: FileStream): void => quota.close(stream)
}

function replace(table: Record<string, Operation>, name: string, wrap: (operation: Operation) => Operation): void {
  const operation = table[name]
  if (operation === undefined)
    throw new Error(
      `this version of Pyodide has no file operation ${name}; install the version that Sandglass supports`,
    )
  table[name] = wrap(operation)
}
