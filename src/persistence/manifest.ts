import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { SandglassError } from '../errors/index.ts'
import { pathProblem } from '../executor/index.ts'
import { formatValue, parseBounded } from '../support/index.ts'

/** A regular file of a manifest. */
export interface FileState {
  readonly kind: 'file'
  readonly path: string
  /** POSIX permission bits. */
  readonly mode: number
  readonly size: number
  readonly sha256: string
}

/** A directory of a manifest. */
export interface DirectoryState {
  readonly kind: 'directory'
  readonly path: string
  readonly mode: number
}

/** A symbolic link of a manifest. */
export interface LinkState {
  readonly kind: 'link'
  readonly path: string
  readonly target: string
}

export type EntryState = FileState | DirectoryState | LinkState

/** Maximum number of entries of one workspace. */
export const MAX_ENTRIES = 200_000
/** Maximum size of a manifest, in bytes. */
export const MAX_MANIFEST_BYTES: number = 64 * 1024 * 1024

const MAX_LINE = 64 * 1024
const LINES_AT_ONCE = 1000
const mode = z.int().min(0).max(0o777)
const path = z.string().refine((given) => pathProblem(given) === undefined)
const SHAPE = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('file'),
    path,
    mode,
    size: z.int().nonnegative(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  }),
  z.strictObject({ kind: z.literal('directory'), path, mode }),
  z.strictObject({ kind: z.literal('link'), path, target: z.string().min(1).max(4096) }),
])

/** Yields a manifest, one line of JSON per entry, and lets other work of this process run in between. */
export async function* formatManifest(entries: Iterable<EntryState>): AsyncGenerator<Uint8Array, void, void> {
  let lines: string[] = []
  for (const entry of entries) {
    lines.push(`${JSON.stringify(entry)}\n`)
    if (lines.length < LINES_AT_ONCE) continue
    yield Buffer.from(lines.join(''))
    lines = []
    await setImmediate()
  }
  yield Buffer.from(lines.join(''))
}

/**
 * The entries of a manifest, by path. A manifest comes from a store, so its size is bounded and its content is checked.
 * @throws SandglassError `store_damaged`
 */
export async function parseManifest(
  pieces: AsyncIterable<Uint8Array>,
  store: string,
  maxEntries: number = MAX_ENTRIES,
): Promise<Map<string, EntryState>> {
  const entries = new Map<string, EntryState>()
  for await (const line of linesOf(pieces, store)) {
    const parsed = SHAPE.safeParse(parseJson(line))
    if (!parsed.success || entries.has(parsed.data.path) || entries.size === maxEntries)
      throw damagedError(store, `the line ${formatValue(line.slice(0, 200))}`)
    entries.set(parsed.data.path, parsed.data)
  }
  return entries
}

/** True if two entries are equal except for their paths. */
export function isSame(a: EntryState, b: EntryState): boolean {
  if (a.kind === 'link') return b.kind === 'link' && a.target === b.target
  if (a.kind === 'directory') return b.kind === 'directory' && a.mode === b.mode
  return b.kind === 'file' && a.mode === b.mode && a.sha256 === b.sha256
}

async function* linesOf(pieces: AsyncIterable<Uint8Array>, store: string): AsyncGenerator<string, void, void> {
  let rest = Buffer.alloc(0)
  let count = 0
  for await (const piece of pieces) {
    let from = 0
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, from)) {
      const line = Buffer.concat([rest, piece.subarray(from, end)])
      rest = Buffer.alloc(0)
      from = end + 1
      yield line.toString('utf8')
      count += 1
      if (count % LINES_AT_ONCE === 0) await setImmediate()
    }
    rest = Buffer.concat([rest, piece.subarray(from)])
    if (rest.length > MAX_LINE) throw damagedError(store, `a line of more than ${MAX_LINE} bytes`)
  }
  if (rest.length > 0) throw damagedError(store, 'an incomplete last line')
}

function damagedError(store: string, what: string): SandglassError {
  return new SandglassError('store_damaged', `${store} has a manifest of a workspace with ${what}`)
}

function parseJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch {
    return undefined
  }
}
