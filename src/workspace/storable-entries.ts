import { MAX_ENTRIES } from '../persistence/index.ts'
import type { EntryOnWire } from '../protocol/index.ts'
import { INSIDE } from '../sandbox/index.ts'
import { formatPath } from '../support/index.ts'
import type { SkippedFile } from './collect.ts'
import type { Link } from './link.ts'
import { listEntries } from './list-files.ts'

/** Everything in a workspace: the entries that can be stored, and those that cannot. */
export interface StorableEntries {
  readonly entries: readonly EntryOnWire[]
  readonly skipped: SkippedFile[]
}

const TOO_LARGE = 'with it, the files exceed the disk of the workspace; raise limits.diskBytes'

/**
 * Lists everything in a workspace, and decides what can be stored.
 * @param maxBytes maximum of all files together; files beyond it are skipped.
 * @throws SandglassError `too_large` for too many entries, `aborted`
 */
export async function listStorable(link: Link, maxBytes: number, signal: AbortSignal): Promise<StorableEntries> {
  const entries: EntryOnWire[] = []
  const skipped: SkippedFile[] = []
  const options = {
    hidden: true,
    maxEntries: MAX_ENTRIES,
    signal,
    isInternal: true,
    onUnlisted: (count: number) => {
      const message = `${count} names that are not UTF-8, or directories that cannot be read`
      skipped.push({ path: '', reason: 'unlisted', message })
    },
  }
  let bytes = 0
  for await (const entry of listEntries(link, '', options)) {
    const fits = entry.kind !== 'file' || bytes + entry.size <= maxBytes
    const left = fits ? skipReasonOf(entry) : { path: entry.path, reason: 'unread' as const, message: TOO_LARGE }
    if (left !== undefined) skipped.push(left)
    else {
      entries.push(entry)
      bytes += entry.size
    }
  }
  return { entries, skipped }
}

/** The reason why an entry is not stored; undefined for one that is. */
function skipReasonOf({ kind, path, target }: EntryOnWire): SkippedFile | undefined {
  if (kind === 'other') return { path, reason: 'special', message: 'it is a FIFO, a socket or a device' }
  if (kind !== 'link' || staysInside(path, target ?? '')) return undefined
  return { path, reason: 'link', message: `it leads out of the workspace, to ${formatPath(target ?? '')}` }
}

/** True if the target of a link is a path in the workspace, whether it exists or not. */
function staysInside(path: string, target: string): boolean {
  if (target === '' || target.includes('\0')) return false
  const isAbsolute = target.startsWith('/')
  if (isAbsolute && !`${target}/`.startsWith(`${INSIDE.workspace}/`)) return false
  const parts = isAbsolute ? [] : path.split('/').slice(0, -1)
  for (const part of (isAbsolute ? target.slice(INSIDE.workspace.length) : target).split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return false
  }
  return true
}
