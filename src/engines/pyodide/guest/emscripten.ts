/** The parts that are used of a node of Emscripten's file system. */
export interface FileNode {
  readonly id: number
  name: string
  mode: number
  readonly mount: FileMount
  readonly parent: FileNode
  usedBytes: number
  /** In milliseconds. */
  mtime: number
  /** Of a link: its target. */
  readonly link?: string
  /** For a directory, its entries by name. For a file, a buffer that may be longer than the content. */
  contents: unknown
  node_ops: Record<string, (...args: never[]) => unknown>
  stream_ops: Record<string, unknown>
}

/** A file system that is mounted somewhere. */
export interface FileMount {
  readonly mountpoint: string
}

/** An open file. */
export interface FileStream {
  readonly fd: number
  readonly node: FileNode
  seekable?: boolean
}

/** The operations on an open device. */
export interface DeviceOps {
  read?(stream: FileStream, buffer: Uint8Array, offset: number, length: number): number
  write?(stream: FileStream, buffer: Uint8Array, offset: number, length: number): number
  llseek?(stream: FileStream, offset: number, whence: number): number
}

/** Operations of the file system in memory, shared by all its nodes. */
export interface OpsTable {
  readonly dir: { readonly node: Record<string, (...args: never[]) => unknown> }
  readonly file: {
    readonly node: Record<string, (...args: never[]) => unknown>
    readonly stream: Record<string, unknown>
  }
}

/** Emscripten's file system. */
export interface FileSystem {
  readonly filesystems: {
    readonly MEMFS: { readonly ops_table: OpsTable; readonly stream_ops: Record<string, unknown> }
  }
  readonly ErrnoError: new (errno: number) => Error & { readonly errno: number }
  readonly streams: readonly (FileStream | null | undefined)[]
  ignorePermissions: boolean
  mkdirTree(path: string, mode?: number): void
  mkdir(path: string, mode?: number): void
  rmdir(path: string): void
  mount(type: unknown, options: object, path: string): unknown
  lookupPath(path: string, options?: object): { readonly node: FileNode }
  lookupNode(parent: FileNode, name: string): FileNode
  open(path: string, flags: string | number, mode?: number): FileStream
  close(stream: FileStream): void
  write(stream: FileStream, bytes: Uint8Array, offset: number, length: number, position?: number): number
  writeFile(path: string, bytes: Uint8Array | string, options?: object): void
  unlink(path: string): void
  chmod(path: string, mode: number): void
  chdir(path: string): void
  makedev(major: number, minor: number): number
  registerDevice(device: number, ops: DeviceOps): void
  mkdev(path: string, mode: number, device: number): void
  isDir(mode: number): boolean
  isFile(mode: number): boolean
  isLink(mode: number): boolean
}

/** The parts that are used of the result of `loadPyodide`. */
export interface Pyodide {
  readonly FS: FileSystem
  readonly _module: EmscriptenModule
  runPython(source: string): unknown
  pyimport(name: string): Readonly<Record<string, (...args: unknown[]) => unknown>>
  setInterruptBuffer(buffer: unknown): void
  makeMemorySnapshot(): Uint8Array
}

/** The Emscripten module of Pyodide. */
export interface EmscriptenModule {
  readonly HEAPU8: Uint8Array
}

/** The part of WebAssembly's interface that is used here; Node's types do not contain it. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}

/** The type of the global `WebAssembly`. */
export interface WasmApi {
  instantiateStreaming: unknown
  instantiate(
    bytes: Uint8Array,
    imports: unknown,
  ): Promise<{ readonly instance: { readonly exports: Readonly<Record<string, unknown>> } }>
}

/** Error numbers of Emscripten. */
export const ERRNO: {
  readonly EACCES: 2
  readonly ENOSPC: 51
  readonly EROFS: 69
  readonly EINVAL: 28
  readonly EINTR: 27
} = {
  EACCES: 2,
  ENOSPC: 51,
  EROFS: 69,
  EINVAL: 28,
  EINTR: 27,
}
