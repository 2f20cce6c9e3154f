import { SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'
import { type CollectBounds, type CollectOptions, matchingFiles } from './collect.ts'
import { FileWriter } from './file-writer.ts'
import type { Link } from './link.ts'
import type { FileEntry } from './list-files.ts'
import { readFiles } from './read-files.ts'
import { SmallFiles } from './small-files.ts'
import { TargetDirectory } from './target-directory.ts'
import { writeSmall } from './target-file.ts'

/** Options of {@link WorkspaceActivities.save}. */
export interface SaveOptions extends CollectOptions {
  /**
   * Replaces existing files. Default false: then nothing is saved if a file exists, or if a directory is or would become a
   * repository, whose files tools obey.
   */
  readonly overwrite?: boolean
}

/** A file that was saved. */
export interface SavedFile {
  /** Relative to the directory, and to the workspace. */
  readonly path: string
  readonly size: number
}

/** Paths in one request, which is a single line on the wire. */
const BATCH = 256
/** From this number of files on, starting a thread saves time. */
const MANY_FILES = 500

/**
 * Saves what globs match below a directory of the host. Names and sizes are hostile: nothing is written outside of it or
 * through a link, and names that are equal on a case-insensitive file system are rejected.
 * @throws SandglassError `too_large`, `path_refused`, `no_space`, `workspace_io`, `aborted`
 */
export async function saveFiles(
  link: Link,
  globs: string | readonly string[],
  directory: string,
  bounds: CollectBounds,
  overwrite: boolean,
): Promise<readonly SavedFile[]> {
  const entries: FileEntry[] = []
  let total = 0
  for await (const entry of matchingFiles(link, globs, bounds)) {
    entries.push(entry)
    total += entry.size
    if (entry.size > bounds.maxFileBytes)
      throw tooLarge(entry, `it has ${entry.size} bytes; at most ${bounds.maxFileBytes}, raise maxFileBytes`)
    if (total > bounds.maxTotalBytes)
      throw tooLarge(entry, `with it, more than ${bounds.maxTotalBytes} bytes in total; raise maxTotalBytes`)
  }
  refuseTwins(entries)
  await using thread = entries.length < MANY_FILES ? undefined : new SmallFiles(writeSmall)
  const target = new TargetDirectory(directory, overwrite)
  await target.prepare(entries.map(({ path }) => path))
  await using writer = new FileWriter(target, thread)
  const saved: SavedFile[] = []
  let left = bounds.maxTotalBytes
  for (let at = 0; at < entries.length; at += BATCH) {
    // A file may have grown since it was listed.
    const batch = await saveBatch(link, entries.slice(at, at + BATCH), writer, { ...bounds, maxTotalBytes: left })
    for (const { size } of batch) left -= size
    saved.push(...batch)
  }
  await writer.drain()
  return saved
}

async function saveBatch(
  link: Link,
  entries: readonly FileEntry[],
  writer: FileWriter,
  { maxFileBytes, maxTotalBytes, signal }: CollectBounds,
): Promise<readonly SavedFile[]> {
  const paths = entries.map(({ path }) => path)
  const saved: SavedFile[] = []
  let size = 0
  for await (const part of readFiles(link, paths, { maxFileBytes, maxTotalBytes, signal })) {
    if (part.kind === 'header') {
      writer.begin(part.header.path, part.header.mode)
      size = 0
    } else if (part.kind === 'bytes') {
      await writer.write(part.bytes)
      size += part.bytes.length
    } else if (part.kind === 'end') {
      await writer.finish()
      saved.push({ path: entries[saved.length]?.path ?? '', size })
    }
  }
  return saved
}

function tooLarge({ path }: FileEntry, problem: string): SandglassError {
  return new SandglassError('too_large', `${formatPath(path)}: ${problem}`)
}

/** Throws for names, also of directories, that differ only by case or by Unicode normalization. */
function refuseTwins(entries: readonly FileEntry[]): void {
  const names = new Map<string, string>()
  for (const { path } of entries) {
    for (let end = path.indexOf('/'); ; end = path.indexOf('/', end + 1)) {
      const part = end === -1 ? path : path.slice(0, end)
      const folded = part.normalize('NFC').toUpperCase().toLowerCase()
      const other = names.get(folded) ?? part
      if (other !== part)
        throw new SandglassError(
          'path_refused',
          `${formatPath(part)} and ${formatPath(other)} are the same name on a file system that ignores case; rename one`,
        )
      names.set(folded, part)
      if (end === -1) break
    }
  }
}
