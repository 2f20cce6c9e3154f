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
 * the operations, so each operation is replaced once. A file that is deleted while it is open counts until it is closed.
 */
export function limitFiles(FS: FileSystem, scratch: Readonly<Record<string, number>>, budget: MemoryBudget): void {
  const { MEMFS } = FS.filesystems
  const usages = new Map<FileMount, Usage>()
  let nodes = 0
  for (const [path, maxBytes] of Object.entries(scratch)) {
    FS.mkdirTree(path)
    FS.mount(MEMFS, {}, path)
    usages.set(FS.lookupPath(path).node.mount, { maxBytes, bytes: 0 })
  }

  const fail = (errno: number): never => {
    throw new FS.ErrnoError(errno)
  }
  const usageOf = (node: FileNode): Usage => usages.get(node.mount) ?? fail(ERRNO.EROFS)
  const charge = (usage: Usage, bytes: number): void => {
    usage.bytes += bytes
    budget.fileBytes += bytes
  }
  /** The number of these bytes for which there is room. */
  const roomFor = (usage: Usage, bytes: number): number => {
    const room = Math.min(bytes, usage.maxBytes - usage.bytes)
    return room > 0 && budget.holds(room) ? room : 0
  }
  const unlinked = new WeakSet<FileNode>()
  const isOpen = (node: FileNode, but?: FileStream): boolean =>
    FS.streams.some((stream) => stream !== null && stream !== undefined && stream !== but && stream.node === node)
  const free = (node: FileNode): void => {
    nodes -= 1
    const usage = usages.get(node.mount)
    if (usage === undefined || !FS.isFile(node.mode)) return
    if (isOpen(node)) unlinked.add(node)
    else charge(usage, -node.usedBytes)
  }

  const directory = MEMFS.ops_table.dir.node
  const file = MEMFS.ops_table.file
  const wrapCreate =
    (operation: Operation): Operation =>
    (parent: FileNode, ...rest: never[]) => {
      usageOf(parent)
      if (nodes >= MAX_NODES) fail(ERRNO.ENOSPC)
      const made = operation(...([parent, ...rest] as never[]))
      nodes += 1
      return made
    }
  replace(directory, 'mknod', wrapCreate)
  replace(directory, 'symlink', wrapCreate)
  for (const name of ['unlink', 'rmdir']) {
    replace(directory, name, (operation) => (parent: FileNode, child: string) => {
      usageOf(parent)
      const node = FS.lookupNode(parent, child)
      const done = operation(...([parent, child] as never[]))
      free(node)
      return done
    })
  }
  replace(directory, 'rename', (operation) => (node: FileNode, into: FileNode, name: string) => {
    usageOf(node)
    usageOf(into)
    const before = Object.hasOwn(into.contents as object, name) ? FS.lookupNode(into, name) : undefined
    const done = operation(...([node, into, name] as never[]))
    if (before !== undefined) free(before)
    return done
  })
  const wrapSetattr =
    (operation: Operation): Operation =>
    (node: FileNode, wanted: { size?: number }) => {
      const usage = usageOf(node)
      const { size } = wanted
      if (size === undefined || !FS.isFile(node.mode)) return operation(...([node, wanted] as never[]))
      const more = size - node.usedBytes
      if (more > 0 && roomFor(usage, more) < more) fail(ERRNO.ENOSPC)
      const done = operation(...([node, wanted] as never[]))
      charge(usage, more)
      return done
    }
  replace(directory, 'setattr', wrapSetattr)
  replace(file.node, 'setattr', wrapSetattr)

  const plainWrite = file.stream['write'] as WriteOperation
  const write: WriteOperation = (stream, buffer, offset, length, position, canOwn) => {
    const { node } = stream
    const usage = usageOf(node)
    const more = Math.max(0, position + length - node.usedBytes)
    const room = more === 0 ? 0 : roomFor(usage, more)
    const written = length - (more - room)
    if (written <= 0 && length > 0) fail(ERRNO.ENOSPC)
    const before = node.usedBytes
    const done = plainWrite(stream, buffer, offset, written, position, canOwn)
    charge(usage, node.usedBytes - before)
    return done
  }
  file.stream['write'] = write
  MEMFS.stream_ops['write'] = write // used to write back mapped files
  file.stream['close'] = (stream: FileStream): void => {
    const { node } = stream
    const usage = usages.get(node.mount)
    if (usage !== undefined && unlinked.has(node) && !isOpen(node, stream)) charge(usage, -node.usedBytes)
  }
}

function replace(table: Record<string, Operation>, name: string, wrap: (operation: Operation) => Operation): void {
  const operation = table[name]
  if (operation === undefined) throw new Error(`this Pyodide has no file operation ${name}`)
  table[name] = wrap(operation)
}
