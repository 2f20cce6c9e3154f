import { isUint8Array } from 'node:util/types'
import { formatValue } from '../support/index.ts'
import { readHostFile, sizeOfHostFile } from './host-file.ts'
import { invalid } from './invalid.ts'
import { pathProblem } from './paths.ts'

const MAX_FILES = 1000
const MAX_TOTAL_BYTES = 64 * 1024 * 1024
const MAX_PATTERNS = 100
const DEFAULT_MODE = 0o644

/** The source of a file: bytes, a path on the host, or a stream. */
export type FileSource =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** See `isReal` of {@link readHostFile}. */
  | { readonly kind: 'host'; readonly hostPath: string; readonly isReal?: boolean }
  | { readonly kind: 'stream'; readonly stream: AsyncIterable<Uint8Array | string>; readonly size: number }

/** A file of a request, checked. */
export interface StagedFile {
  readonly path: string
  readonly mode: number
  readonly source: FileSource
}

/**
 * Checks the files of a run without reading them.
 * @param rereadable true if several runs use the files, which refuses streams.
 * @throws SandglassError `invalid_request` naming the path.
 */
export function checkFiles(
  given: unknown,
  { rereadable = false }: { readonly rereadable?: boolean } = {},
): readonly StagedFile[] {
  if (given === undefined) return []
  const files = checkFileList(given)
  if (files.length > MAX_FILES) throw invalid('files', `${files.length} files; at most ${MAX_FILES} in one run`)
  const total = files.reduce((sum, { source }) => sum + (source.kind === 'bytes' ? source.bytes.length : 0), 0)
  if (total > MAX_TOTAL_BYTES) {
    throw invalid(
      'files',
      `${total} bytes; at most ${MAX_TOTAL_BYTES} in one run, pass larger files as { path: 'FILE OF THE HOST' }`,
    )
  }
  refuseFileAsFolder(files)
  const stream = rereadable ? files.find(({ source }) => source.kind === 'stream') : undefined
  if (stream === undefined) return files
  throw invalid(
    `${fieldOf(stream.path)}.stream`,
    'a stream can be read only once, but each script gets the files; pass bytes or { path }, or put it into a workspace',
  )
}

/** Checks any number of files of any size, by their paths. @throws SandglassError `invalid_request` naming the path. */
export function checkFileList(given: unknown): readonly StagedFile[] {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('files', `${formatValue(given)} is not an object of paths and contents`)
  }
  return Object.entries(given).map(([path, value]: [string, unknown]) => checkFile(path, value))
}

/**
 * Checks the sizes of files that are not in memory.
 * @param diskBytes the size of the disk that all files must fit on; undefined if it is not known yet.
 * @throws SandglassError `invalid_request` for a file that cannot be read, and for more bytes than the disk holds.
 */
export async function findHostFiles(files: readonly StagedFile[], diskBytes?: number): Promise<void> {
  if (files.every(({ source }) => source.kind === 'bytes')) return
  const sizes = await Promise.all(files.map(sizeOf))
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (diskBytes === undefined || total <= diskBytes) return
  throw invalid(
    'files',
    `${total} bytes do not fit on a disk of ${diskBytes}; raise limits.diskBytes, or use a workspace: its addInput() mounts large files without a copy`,
  )
}

/** Opens the content of a file as pieces. A piece may be valid only until the next one is requested. */
export function openFile({ path, source }: StagedFile): AsyncIterable<Uint8Array | string> | readonly Uint8Array[] {
  switch (source.kind) {
    case 'bytes':
      return [source.bytes]
    case 'host':
      return readHostFile(source.hostPath, `${fieldOf(path)}.path`, source.isReal)
    case 'stream':
      return source.stream
  }
}

/**
 * Checks the globs of files to collect.
 * @throws SandglassError `invalid_request` naming the pattern.
 */
export function checkCollect(given: unknown): string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) throw invalid('collect', `${formatValue(given)} is not an array of globs`)
  const patterns: unknown[] = given
  if (patterns.length > MAX_PATTERNS) {
    throw invalid('collect', `${patterns.length} globs; at most ${MAX_PATTERNS} in one run`)
  }
  return patterns.map((pattern, index) => {
    const problem = typeof pattern === 'string' ? pathProblem(pattern) : 'it is not a string'
    if (typeof pattern !== 'string' || problem !== undefined) {
      throw invalid(`collect[${index}]`, `${formatValue(pattern)} cannot be used: ${problem}`)
    }
    return pattern
  })
}

function checkFile(path: string, value: unknown): StagedFile {
  const field = fieldOf(path)
  const problem = pathProblem(path)
  if (problem !== undefined) throw invalid(field, `not a path in the workspace: ${problem}`)
  const { content, path: hostPath, stream, size = 0, mode = DEFAULT_MODE } = partsOf(value, field)
  if (typeof mode !== 'number' || !Number.isInteger(mode) || mode < 0 || mode > 0o777) {
    throw invalid(`${field}.mode`, `${formatValue(mode)} is not a number of permission bits from 0 to 0o777`)
  }
  if (hostPath !== undefined) {
    if (typeof hostPath !== 'string') throw invalid(`${field}.path`, `${formatValue(hostPath)} is not a string`)
    return { path, mode, source: { kind: 'host', hostPath } }
  }
  if (stream !== undefined) {
    if (typeof stream !== 'object' || stream === null || !(Symbol.asyncIterator in stream))
      throw invalid(`${field}.stream`, `${formatValue(stream)} is not an async iterable of bytes`)
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
      throw invalid(`${field}.size`, `${formatValue(size)} is not a number of bytes`)
    return { path, mode, source: { kind: 'stream', stream: stream as AsyncIterable<Uint8Array | string>, size } }
  }
  if (!isContent(content))
    throw invalid(`${field}.content`, `${formatValue(content)} is neither a string nor a Uint8Array`)
  return { path, mode, source: { kind: 'bytes', bytes: typeof content === 'string' ? Buffer.from(content) : content } }
}

function partsOf(value: unknown, field: string): Record<'content' | 'path' | 'stream' | 'size' | 'mode', unknown> {
  const none = { content: undefined, path: undefined, stream: undefined, size: undefined, mode: undefined }
  if (isContent(value)) return { ...none, content: value }
  const given = SOURCES.filter((name) => typeof value === 'object' && value !== null && Object.hasOwn(value, name))
  if (given.length === 1) return { ...none, ...(value as object) }
  throw invalid(
    field,
    `${formatValue(value)} is not a file: give a string, a Uint8Array, { content }, { path } or { stream }`,
  )
}

const SOURCES = ['content', 'path', 'stream'] as const

function isContent(value: unknown): value is string | Uint8Array {
  return typeof value === 'string' || isUint8Array(value)
}

function sizeOf({ path, source }: StagedFile): Promise<number> {
  if (source.kind === 'host') return sizeOfHostFile(source.hostPath, `${fieldOf(path)}.path`)
  return Promise.resolve(source.kind === 'bytes' ? source.bytes.length : source.size)
}

function fieldOf(path: string): string {
  return `files[${formatValue(path)}]`
}

function refuseFileAsFolder(files: readonly StagedFile[]): void {
  const paths = new Set(files.map(({ path }) => path))
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end)
      if (paths.has(folder))
        throw invalid('files', `${formatValue(folder)} is both a file and the folder of ${formatValue(path)}`)
    }
  }
}
