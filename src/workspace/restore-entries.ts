import type { EntryState, FileState, StoredTrees } from '../persistence/index.ts'
import type { Link } from './link.ts'
import type { PackWriter } from './pack.ts'
import { sendPack } from './put-files.ts'

/** A file of at most this size is read ahead completely. */
const MAX_SMALL_BYTES = 64 * 1024
/** Maximum number of files that are read ahead, because each takes several calls of the store. */
const AHEAD = 16

/**
 * Writes files, links and directories of a store into the workspace. Each file appears complete or not at all.
 * @throws SandglassError of the store and of the sandbox, `aborted`
 */
export async function restoreEntries(
  link: Link,
  trees: StoredTrees,
  entries: readonly EntryState[],
  signal: AbortSignal,
): Promise<void> {
  if (entries.length === 0) return
  await sendPack(link, (pack) => writeEntries(pack, trees, entries, signal), signal)
}

async function writeEntries(
  pack: PackWriter,
  trees: StoredTrees,
  entries: readonly EntryState[],
  signal: AbortSignal,
): Promise<boolean> {
  const files = entries.filter((entry) => entry.kind === 'file')
  for await (const [file, pieces] of contentsOf(trees, files, signal)) {
    if (!(await pack.begin(file.path, file.mode))) return false
    for await (const piece of pieces) if (!(await pack.data(piece))) return false
    if (!(await pack.end())) return false
  }
  for (const entry of entries) {
    if (entry.kind === 'link' && !(await pack.link(entry.path, entry.target))) return false
  }
  // Directories come last: their modes may forbid writing in them.
  for (const entry of entries.toReversed()) {
    if (entry.kind === 'directory' && !(await pack.directory(entry.path, entry.mode))) return false
  }
  return true
}

type Pieces = AsyncIterable<Uint8Array> | readonly Uint8Array[]

/** Yields the files in order, each with its content. */
async function* contentsOf(
  trees: StoredTrees,
  files: readonly FileState[],
  signal: AbortSignal,
): AsyncGenerator<readonly [FileState, Pieces], void, void> {
  const begun: Promise<Pieces>[] = []
  for (const [index, file] of files.entries()) {
    while (begun.length < Math.min(files.length, index + AHEAD)) {
      const opening = contentOf(trees, files[begun.length] ?? file, signal)
      opening.catch(() => undefined) // reported when it is awaited
      begun.push(opening)
    }
    const pieces = await begun[index]
    begun[index] = Promise.resolve([])
    yield [file, pieces ?? []]
  }
}

async function contentOf(trees: StoredTrees, file: FileState, signal: AbortSignal): Promise<Pieces> {
  if (file.size > MAX_SMALL_BYTES) return readLazily(trees, file, signal)
  const pieces: Uint8Array[] = []
  for await (const piece of await trees.open(file, signal)) pieces.push(piece)
  return pieces
}

/** Opens a large file only when it is read. */
async function* readLazily(
  trees: StoredTrees,
  file: FileState,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  yield* await trees.open(file, signal)
}
