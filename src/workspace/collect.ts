import { SandglassError } from '../errors/index.ts'
import { formatPath, formatValue } from '../support/index.ts'
import { checkWhole, invalid } from './failures.ts'
import type { Link } from './link.ts'
import { checkPatterns, type FileEntry, listFiles, ENTRIES_UPPER_BOUND } from './list-files.ts'
import { getFile, readFile } from './read-files.ts'

/** Options of {@link WorkspaceActivities.collect} and {@link WorkspaceActivities.save}. */
export interface CollectOptions {
  /** Maximum number of files; with more, the call fails. Default 100. */
  readonly maxFiles?: number
  /** Maximum bytes of a file: a larger one is listed, but its bytes cannot be read. Default 4 MiB. */
  readonly maxFileBytes?: number
  /** Maximum bytes of all files together. Default 64 MiB. */
  readonly maxTotalBytes?: number
  /** Called for each matching entry that is skipped. A file that is too large is not skipped. */
  readonly onSkipped?: (skipped: SkippedFile) => void
  readonly signal?: AbortSignal
}

/** A file of a workspace. Its bytes are fetched on request. */
export interface CollectedEntry {
  readonly path: string
  readonly size: number
  /** POSIX permission bits. */
  readonly mode: number
  readonly modifiedAt: Date
  /** @throws SandglassError `too_large`, `path_not_found`, `path_refused`, `workspace_io` */
  bytes(): Promise<Uint8Array>
  /** Streams the content. @throws SandglassError as `bytes` does. */
  stream(): AsyncIterable<Uint8Array>
}

/** A matching entry that is not collected. */
export interface SkippedFile {
  readonly path: string
  /**
   * `link`: it leads out of the workspace, to a directory or nowhere. `special`: a FIFO, a socket or a device. `unlisted`:
   * names that are not UTF-8 and directories that cannot be read; the message has their number, and the path is empty.
   * `unread`, of a synchronisation: a file that could not be read, or became shorter while it was read; the store keeps its
   * previous version.
   */
  readonly reason: 'link' | 'special' | 'unlisted' | 'unread'
  readonly message: string
}

/** The bounds of a collection, checked. */
export interface CollectBounds {
  readonly maxFiles: number
  readonly maxFileBytes: number
  readonly maxTotalBytes: number
  readonly onSkipped: CollectOptions['onSkipped']
  readonly signal: AbortSignal | undefined
}

/** The names of the options. */
export const COLLECT_OPTIONS: readonly (keyof CollectOptions)[] = [
  'maxFiles',
  'maxFileBytes',
  'maxTotalBytes',
  'onSkipped',
  'signal',
]
const MiB = 1024 * 1024
const DEFAULTS = { maxFiles: 100, maxFileBytes: 4 * MiB, maxTotalBytes: 64 * MiB }
/** Directories match globs as well, and are skipped. */
const ENTRIES_PER_FILE = 100

/** @throws SandglassError `invalid_request` */
export function checkCollectOptions(given: CollectOptions): CollectBounds {
  const { maxFiles, maxFileBytes, maxTotalBytes } = { ...DEFAULTS, ...given }
  return {
    maxFiles: checkWhole('maxFiles', maxFiles, 1, 1_000_000),
    maxFileBytes: checkWhole('maxFileBytes', maxFileBytes, 1, Number.MAX_SAFE_INTEGER),
    maxTotalBytes: checkWhole('maxTotalBytes', maxTotalBytes, 1, Number.MAX_SAFE_INTEGER),
    onSkipped: checkSkipped(given.onSkipped),
    signal: given.signal,
  }
}

function checkSkipped(given: unknown): CollectOptions['onSkipped'] {
  if (given === undefined || typeof given === 'function') return given as CollectOptions['onSkipped']
  throw invalid('onSkipped', `${formatValue(given)} is not a function`)
}

/** Describes an entry that is skipped. Directories are not reported: their files are collected. */
function skippedOf({ kind, path, target = '' }: FileEntry): SkippedFile | undefined {
  if (kind === 'link')
    return { path, reason: 'link', message: `it leads to ${formatPath(target)}, which is not a file in the workspace` }
  if (kind === 'other') return { path, reason: 'special', message: 'it is a FIFO, a socket or a device' }
  return undefined
}

/**
 * Lists the regular files that globs match, each once; also through links that stay in the workspace.
 * @throws SandglassError `too_large` for more than `maxFiles`.
 */
export async function* matchingFiles(
  link: Link,
  globs: string | readonly string[],
  { maxFiles, signal, onSkipped }: CollectBounds,
): AsyncGenerator<FileEntry, void, void> {
  const patterns = checkPatterns('globs', globs)
  if (patterns.length === 0) return
  const seen = new Set<string>()
  const options = {
    patterns,
    maxEntries: Math.min(maxFiles * ENTRIES_PER_FILE, ENTRIES_UPPER_BOUND),
    follow: true,
    onUnlisted: (count: number) => {
      const message = `${count} names that are not UTF-8, or directories that cannot be read`
      onSkipped?.({ path: '', reason: 'unlisted', message })
    },
    ...(signal === undefined ? {} : { signal }),
  }
  for await (const entry of listFiles(link, '', options)) {
    const skipped = skippedOf(entry)
    if (skipped !== undefined) onSkipped?.(skipped)
    if (entry.kind !== 'file' || seen.has(entry.path)) continue
    if (seen.size === maxFiles) throw tooLarge(`more than ${maxFiles} files match; raise maxFiles`)
    seen.add(entry.path)
    yield entry
  }
}

/** Lists the files that globs match, each with functions that read its bytes. */
export async function* collectFiles(
  link: Link,
  globs: string | readonly string[],
  bounds: CollectBounds,
): AsyncGenerator<CollectedEntry, void, void> {
  const budget = { left: bounds.maxTotalBytes }
  for await (const { path, size, mode, modifiedAt } of matchingFiles(link, globs, bounds)) {
    const limits = (): { maxFileBytes: number; maxTotalBytes: null; signal: AbortSignal | undefined } => {
      if (size > bounds.maxFileBytes)
        throw tooLarge(`${formatPath(path)} has ${size} bytes; at most ${bounds.maxFileBytes}, raise maxFileBytes`)
      if (size > budget.left)
        throw tooLarge(`${formatPath(path)}: more than ${bounds.maxTotalBytes} bytes in total; raise maxTotalBytes`)
      budget.left -= size
      // A file that has grown since it was listed must not exceed the counted size.
      return { maxFileBytes: size, maxTotalBytes: null, signal: bounds.signal }
    }
    yield {
      path,
      size,
      mode,
      modifiedAt,
      bytes: async () => getFile(link, path, limits()),
      stream: () => streamOf(link, path, limits),
    }
  }
}

async function* streamOf(
  link: Link,
  path: string,
  limits: () => Parameters<typeof readFile>[2],
): AsyncGenerator<Uint8Array, void, void> {
  yield* readFile(link, path, limits())
}

function tooLarge(problem: string): SandglassError {
  return new SandglassError('too_large', problem)
}
