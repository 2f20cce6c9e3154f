import { SandglassError } from '../errors/index.ts'
import { pathProblem } from '../executor/index.ts'
import { entryOnWire, type EntryOnWire } from '../protocol/index.ts'
import { formatPath, formatValue } from '../support/index.ts'
import { checkPath } from './check-path.ts'
import { checkWhole, invalid } from './failures.ts'
import type { Link } from './link.ts'
import { Operation, type Question } from './operation.ts'

/** The entry at a path of a workspace. */
export interface FileEntry {
  /** Relative to the workspace, or to the directory that was listed. */
  readonly path: string
  /** `other`: a FIFO, a socket, a device. */
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  readonly size: number
  /** POSIX permission bits. */
  readonly mode: number
  readonly modifiedAt: Date
  /** The target of a link, as it is written there. */
  readonly target?: string
}

/** Options of a listing. */
export interface ListOptions {
  /** Globs relative to the directory: `*`, `?`, `[…]` and `**`. Default: everything below it. */
  readonly patterns?: string | readonly string[]
  /** Includes names that begin with a dot, also where no glob writes the dot. Default false. */
  readonly hidden?: boolean
  /** Maximum number of entries; with more, the listing fails. Default 100,000. */
  readonly maxEntries?: number
  readonly signal?: AbortSignal
}

/** Options of a listing that only a collection or a synchronisation needs. */
interface CollectingOptions {
  /** Lists a link to a regular file in the workspace as that file. */
  readonly follow?: boolean
  /** Does not count as use of the workspace. */
  readonly isInternal?: boolean | undefined
  /** Called at the end: names that are not text, and directories that could not be read. */
  readonly onUnlisted?: (count: number) => void
}

const MAX_ENTRIES = 100_000
/** The maximum of `maxEntries`. */
export const ENTRIES_UPPER_BOUND = 10_000_000
const MAX_PATTERNS = 100
const WINDOW_BYTES = 256 * 1024

/**
 * Lists everything below a directory, each directory sorted by name.
 * @throws SandglassError `invalid_request`, `path_not_found`, `path_refused`, `too_large`, `aborted`
 */
export async function* listFiles(
  link: Link,
  directory: string,
  options: ListOptions & CollectingOptions,
): AsyncGenerator<FileEntry, void, void> {
  for await (const entry of listEntries(link, directory, options)) yield entryOf(entry, entry.path)
}

/** Lists a directory as {@link listFiles} does, with every field that the sandbox reports. */
export async function* listEntries(
  link: Link,
  directory: string,
  {
    patterns,
    hidden = false,
    maxEntries = MAX_ENTRIES,
    signal,
    follow = false,
    onUnlisted,
    isInternal,
  }: ListOptions & CollectingOptions,
): AsyncGenerator<EntryOnWire, void, void> {
  checkWhole('maxEntries', maxEntries, 1, ENTRIES_UPPER_BOUND)
  const question: Question = {
    type: 'file_list',
    path: directory,
    patterns: patterns === undefined ? null : checkPatterns('patterns', patterns),
    // One more than allowed, to detect an excess.
    max_entries: maxEntries + 1,
    hidden,
    follow,
    window: WINDOW_BYTES,
  }
  const options = { signal, window: WINDOW_BYTES, isInternal }
  const operation = new Operation(link, 'a directory could not be listed', question, options)
  let count = 0
  for await (const answer of operation.answers()) {
    if (answer.kind !== 'entries') continue
    for (const entry of answer.entries) {
      count += 1
      if (count > maxEntries) throw tooMany(maxEntries)
      checkNamed(entry.path)
      yield entry
    }
  }
  const { result } = await operation.awaitDone()
  const { limits_hit: limits, skipped } = (result ?? {}) as Record<string, unknown>
  if (Array.isArray(limits) && limits.length > 0) throw tooMany(maxEntries)
  if (typeof skipped === 'number' && skipped > 0) onUnlisted?.(skipped)
}

/** Describes the entry at a path. @throws SandglassError `path_not_found`, `path_refused`, `workspace_io` */
export async function statFile(link: Link, path: string, signal?: AbortSignal): Promise<FileEntry> {
  const question = { type: 'file_stat', path } as const
  const { result } = await new Operation(link, 'a path could not be examined', question, { signal }).awaitDone()
  const parsed = entryOnWire.safeParse(result)
  if (!parsed.success)
    throw new SandglassError('workspace_io', `the sandbox sent an invalid description of ${formatPath(path)}`)
  return entryOf(parsed.data, path)
}

/** @throws SandglassError `invalid_request` */
export function checkPatterns(field: string, given: string | readonly string[]): string[] {
  const patterns: unknown = typeof given === 'string' ? [given] : given
  if (!Array.isArray(patterns)) throw invalid(field, `${formatValue(given)} is neither a glob nor an array of globs`)
  if (patterns.length > MAX_PATTERNS) throw invalid(field, `${patterns.length} globs; at most ${MAX_PATTERNS}`)
  return patterns.map((pattern, index) => checkPath(`${field}[${index}]`, pattern))
}

function tooMany(max: number): SandglassError {
  return new SandglassError(
    'too_large',
    `more than ${max} entries; match or keep fewer, or raise the limit of the call if it has one`,
  )
}

/** Rejects an entry whose path is invalid or leads outside: the sandbox may be hostile. */
function checkNamed(path: string): void {
  const problem = pathProblem(path)
  if (problem === undefined) return
  throw new SandglassError('workspace_io', `the sandbox listed an invalid path: ${problem}`)
}

function entryOf({ kind, size, mode, mtime_ms, target }: EntryOnWire, path: string): FileEntry {
  const link = kind === 'link' && typeof target === 'string' ? { target } : {}
  return { path, kind, size, mode: mode & 0o777, modifiedAt: new Date(mtime_ms), ...link }
}
