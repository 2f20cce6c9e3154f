import { SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'
import { checkWhole } from './failures.ts'
import type { Link } from './link.ts'
import { checkPatterns, type FileEntry, listFiles } from './list-files.ts'
import { getFile, readFile } from './read-files.ts'

/** Options of {@link WorkspaceActivities.collect} and {@link WorkspaceActivities.save}. */
export interface CollectOptions {
  /** Files; more are an error. Default 100. */
  readonly maxFiles?: number
  /** Bytes of a file; the bytes of a larger one are not given. Default 4 MiB. */
  readonly maxFileBytes?: number
  /** Bytes of all files together. Default 64 MiB. */
  readonly maxTotalBytes?: number
  readonly signal?: AbortSignal
}

/** A file of a workspace. Its bytes are fetched when they are asked for. */
export interface CollectedEntry {
  readonly path: string
  readonly size: number
  /** POSIX permission bits. */
  readonly mode: number
  readonly modifiedAt: Date
  /** @throws SandglassError `too_large`, `path_not_found`, `path_refused`, `workspace_io` */
  bytes(): Promise<Uint8Array>
  /** The same, piece by piece. */
  stream(): AsyncIterable<Uint8Array>
}

/** The bounds of a collection, checked. */
export interface CollectBounds {
  readonly maxFiles: number
  readonly maxFileBytes: number
  readonly maxTotalBytes: number
  readonly signal: AbortSignal | undefined
}

const MiB = 1024 * 1024
const DEFAULTS = { maxFiles: 100, maxFileBytes: 4 * MiB, maxTotalBytes: 64 * MiB }
/** Directories match globs as well, and are left out. */
const ENTRIES_PER_FILE = 100

/** @throws SandglassError `invalid_request` */
export function checkCollectOptions(given: CollectOptions): CollectBounds {
  const { maxFiles, maxFileBytes, maxTotalBytes } = { ...DEFAULTS, ...given }
  return {
    maxFiles: checkWhole('maxFiles', maxFiles, 1, 1_000_000),
    maxFileBytes: checkWhole('maxFileBytes', maxFileBytes, 1, Number.MAX_SAFE_INTEGER),
    maxTotalBytes: checkWhole('maxTotalBytes', maxTotalBytes, 1, Number.MAX_SAFE_INTEGER),
    signal: given.signal,
  }
}

/** The regular files that globs match, each once. @throws SandglassError `too_large` for more than `maxFiles`. */
export async function* matchingFiles(
  link: Link,
  globs: string | readonly string[],
  { maxFiles, signal }: CollectBounds,
): AsyncGenerator<FileEntry, void, void> {
  const patterns = checkPatterns('globs', globs)
  if (patterns.length === 0) return
  const seen = new Set<string>()
  const options = { patterns, maxEntries: maxFiles * ENTRIES_PER_FILE, ...(signal === undefined ? {} : { signal }) }
  for await (const entry of listFiles(link, '', options)) {
    if (entry.kind !== 'file' || seen.has(entry.path)) continue
    if (seen.size === maxFiles) throw tooLarge(`more than ${maxFiles} files match; raise maxFiles`)
    seen.add(entry.path)
    yield entry
  }
}

/** The same, with their bytes. */
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
        throw tooLarge(`${formatPath(path)}: more than ${bounds.maxTotalBytes} bytes in all; raise maxTotalBytes`)
      budget.left -= size
      // It may have grown since it was listed, and must not take more than was counted.
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
