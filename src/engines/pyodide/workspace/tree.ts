import { type FileError, problem } from './file-error.ts'

/** A directory of a workspace. */
export interface DirectoryNode {
  readonly kind: 'directory'
  mode: number
  mtimeMs: number
  readonly entries: Map<string, TreeNode>
}

/** A regular file. Its content never changes: a file that is written again is a new node. */
export interface FileNode {
  readonly kind: 'file'
  readonly mode: number
  readonly mtimeMs: number
  readonly content: Uint8Array
}

/** A symbolic link. */
export interface LinkNode {
  readonly kind: 'link'
  readonly mode: number
  readonly mtimeMs: number
  readonly target: string
}

export type TreeNode = DirectoryNode | FileNode | LinkNode

/** The bounds of a tree. */
export interface TreeBounds {
  /** Of the content of all files. */
  readonly maxBytes: number
  readonly maxNodes: number
  /** Of all names and targets, as UTF-8. */
  readonly maxTextBytes: number
}

/** The size of a tree. */
export interface TreeSize {
  bytes: number
  nodes: number
  textBytes: number
}

const MAX_LINKS = 40
const MAX_STEPS = 4096
const MAX_PATH = 4096
const MAX_NAME_BYTES = 255
const NEW_DIRECTORY = 0o755
const MISSING = 'No such file or directory'
const NO_DIRECTORY = 'Not a directory'

export function emptyDirectory(mode: number): DirectoryNode {
  return { kind: 'directory', mode, mtimeMs: Date.now(), entries: new Map() }
}

/** The reason why an entry cannot have a name; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name))
    return 'it is not a plain path below the workspace'
  if (!name.isWellFormed()) return 'it is not UTF-8'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return 'File name too long'
  // The file system of an instance keeps names as keys of plain objects.
  return name === '__proto__' ? 'this name cannot be used on this engine' : undefined
}

/** The size of a node without the nodes below it. */
export function ownSize(name: string, node: TreeNode): TreeSize {
  const target = node.kind === 'link' ? Buffer.byteLength(node.target) : 0
  return {
    bytes: node.kind === 'file' ? node.content.length : 0,
    nodes: 1,
    textBytes: Buffer.byteLength(name) + target,
  }
}

/** True if a tree of this size is within the bounds. */
export function fits({ bytes, nodes, textBytes }: TreeSize, { maxBytes, maxNodes, maxTextBytes }: TreeBounds): boolean {
  return bytes <= maxBytes && nodes <= maxNodes && textBytes <= maxTextBytes
}

/** The files of a workspace, in the memory of the host between the runs. */
export class WorkspaceTree {
  readonly #root: string
  readonly #bounds: TreeBounds
  #top = emptyDirectory(0o777)
  #size: TreeSize = { bytes: 0, nodes: 0, textBytes: 0 }
  #version = 0
  /** Bytes of files that are being written. */
  #reserved = 0

  /** @param root its path in the sandbox: links of scripts name it. */
  constructor(root: string, bounds: TreeBounds) {
    this.#root = root
    this.#bounds = bounds
  }

  get top(): DirectoryNode {
    return this.#top
  }

  /** A number that changes with each change of the files. */
  get version(): number {
    return this.#version
  }

  get bounds(): TreeBounds {
    return this.#bounds
  }

  /** Replaces all files with those of a run. */
  replace(top: DirectoryNode, size: TreeSize): void {
    this.#top = top
    this.#size = size
    this.#version += 1
  }

  /** Reserves space for a file that is being written. @throws FileError */
  reserve(path: string, bytes: number): void {
    if (this.#size.bytes + this.#reserved + bytes > this.#bounds.maxBytes) throw noSpace(path)
    this.#reserved += bytes
  }

  unreserve(bytes: number): void {
    this.#reserved -= bytes
  }

  /**
   * The node at a path ('' or '.': the workspace itself). Links before the last component are followed where they stay in the
   * workspace, the last one if `follow`.
   * @throws FileError
   */
  find(path: string, follow: boolean): TreeNode {
    const above: DirectoryNode[] = []
    let at: TreeNode = this.#top
    let links = 0
    let steps = 0
    const left = path === '' || path === '.' ? [] : plainParts(path).toReversed()
    for (let part = left.pop(); part !== undefined; part = left.pop()) {
      steps += 1
      if (steps > MAX_STEPS) throw problem('invalid', path, `it goes through more than ${MAX_STEPS} directories`)
      if (at.kind !== 'directory') throw problem('not_a_directory', path, NO_DIRECTORY)
      if (part === '..') {
        const parent = above.pop()
        if (parent === undefined) throw problem('outside', path, 'it leads out of the workspace')
        at = parent
        continue
      }
      const node: TreeNode | undefined = at.entries.get(part)
      if (node === undefined) throw problem('not_found', path, MISSING)
      if (node.kind !== 'link' || (left.length === 0 && !follow)) {
        above.push(at)
        at = node
        continue
      }
      links += 1
      if (links > MAX_LINKS) throw problem('outside', path, `it goes through more than ${MAX_LINKS} links`)
      const { target } = node
      if (target.startsWith('/')) {
        if (!`${target}/`.startsWith(`${this.#root}/`))
          throw problem('outside', path, 'a link leads out of the workspace')
        at = this.#top
        above.length = 0
      }
      const inside = target.startsWith('/') ? target.slice(this.#root.length) : target
      left.push(
        ...inside
          .split('/')
          .filter((name) => name !== '' && name !== '.')
          .toReversed(),
      )
    }
    return at
  }

  /** Puts a file in its place, and makes the directories above it. It replaces a file or a link. @throws FileError */
  put(path: string, mode: number, content: Uint8Array): void {
    const parts = plainParts(path)
    const name = parts.pop() ?? ''
    this.checkPlace(path)
    const directory = this.#enter(path, parts, NEW_DIRECTORY)
    this.#set(path, directory, name, { kind: 'file', mode, mtimeMs: Date.now(), content })
  }

  /** Puts a link in its place, as {@link put} does a file. @throws FileError */
  link(path: string, target: string): void {
    const parts = plainParts(path)
    const name = parts.pop() ?? ''
    this.checkPlace(path)
    const directory = this.#enter(path, parts, NEW_DIRECTORY)
    this.#set(path, directory, name, { kind: 'link', mode: 0o777, mtimeMs: Date.now(), target })
  }

  /** @throws FileError if no file can be at this path. */
  checkPlace(path: string): void {
    const parts = plainParts(path)
    const name = parts.pop() ?? ''
    const directory = this.#enterExisting(path, parts)
    if (directory?.entries.get(name)?.kind === 'directory') throw problem('exists', path, 'it is a directory')
  }

  /** Makes a directory and its parents. One that exists stays as it is, unless it must get the mode. @throws FileError */
  make(path: string, mode: number, setsMode: boolean = false): void {
    const parts = plainParts(path)
    const name = parts.at(-1) ?? ''
    const found = this.#enterExisting(path, parts.slice(0, -1))?.entries.get(name)
    if (found !== undefined && found.kind !== 'directory')
      throw found.kind === 'link' ? leadsThroughError(path) : problem('exists', path, 'it exists')
    const made = this.#enter(path, parts, mode)
    if (setsMode) made.mode = mode
    this.#version += 1
  }

  /** Removes a file, a link or a directory. @throws FileError */
  remove(path: string, recursive: boolean): void {
    const parts = plainParts(path)
    const name = parts.pop() ?? ''
    const directory = this.#enterExisting(path, parts)
    const node = directory?.entries.get(name)
    if (directory === undefined || node === undefined) throw problem('not_found', path, MISSING)
    if (node.kind === 'directory' && node.entries.size > 0 && !recursive)
      throw problem('not_empty', path, 'Directory not empty')
    this.#version += 1
    directory.entries.delete(name)
    directory.mtimeMs = Date.now()
    for (const [below, each] of [[name, node] as const, ...nodesBelow(node)]) this.#count(below, each, -1)
  }

  /** The directory of these components, which are made where they are missing. */
  #enter(path: string, parts: readonly string[], mode: number): DirectoryNode {
    let at = this.#top
    for (const [index, part] of parts.entries()) {
      const found = at.entries.get(part)
      if (found === undefined) {
        const made = emptyDirectory(index === parts.length - 1 ? mode : NEW_DIRECTORY)
        this.#set(path, at, part, made)
        at = made
      } else at = asDirectory(path, found)
    }
    return at
  }

  /** The directory of these components, or undefined if one is missing. */
  #enterExisting(path: string, parts: readonly string[]): DirectoryNode | undefined {
    let at = this.#top
    for (const part of parts) {
      const found = at.entries.get(part)
      if (found === undefined) return undefined
      at = asDirectory(path, found)
    }
    return at
  }

  #set(path: string, directory: DirectoryNode, name: string, node: TreeNode): void {
    const before = directory.entries.get(name)
    if (before !== undefined) this.#count(name, before, -1)
    this.#count(name, node, 1)
    if (!fits(this.#size, this.#bounds)) {
      this.#count(name, node, -1)
      if (before !== undefined) this.#count(name, before, 1)
      throw noSpace(path)
    }
    this.#version += 1
    directory.entries.set(name, node)
    directory.mtimeMs = Date.now()
  }

  #count(name: string, node: TreeNode, sign: 1 | -1): void {
    const { bytes, nodes, textBytes } = ownSize(name, node)
    this.#size.bytes += sign * bytes
    this.#size.nodes += sign * nodes
    this.#size.textBytes += sign * textBytes
  }
}

/** All nodes below one, each directory before its content; without recursion, since scripts nest as deep as they like. */
export function* nodesBelow(top: TreeNode): Generator<readonly [name: string, node: TreeNode, parent: DirectoryNode]> {
  const pending = top.kind === 'directory' ? [top] : []
  for (const directory of pending) {
    for (const [name, node] of directory.entries) {
      if (node.kind === 'directory') pending.push(node)
      yield [name, node, directory]
    }
  }
}

/** The components of a path. @throws FileError for one that is not plain and relative. */
function plainParts(path: string): string[] {
  const parts = path.split('/')
  if (path.startsWith('/') || parts.includes('..')) throw problem('outside', path, 'it is not a path in the workspace')
  if (path.length > MAX_PATH) throw problem('invalid', path, `it has more than ${MAX_PATH} characters`)
  for (const part of parts) {
    const reason = nameProblem(part)
    if (reason !== undefined) throw problem('invalid', path, reason)
  }
  return parts
}

function asDirectory(path: string, node: TreeNode): DirectoryNode {
  if (node.kind === 'link') throw leadsThroughError(path)
  if (node.kind !== 'directory') throw problem('not_a_directory', path, NO_DIRECTORY)
  return node
}

function leadsThroughError(path: string): FileError {
  return problem('outside', path, 'a part of the path is a link')
}

function noSpace(path: string): FileError {
  return problem('no_space', path, 'No space left on device')
}
