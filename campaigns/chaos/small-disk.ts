import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../../src/errors/index.ts'

const SLACK_BLOCKS = 64

/** A small file system in a file. */
export interface SmallDisk {
  readonly path: string
  /** Fills the disk and keeps it full until the returned function is called. */
  fill(): () => void
}

/** Makes and mounts a file system of `mebibytes` MiB below a directory. */
export function makeSmallDisk(directory: string, mebibytes: number): SmallDisk {
  const [file, path] = [join(directory, 'disk.img'), join(directory, 'disk')]
  writeFileSync(file, '')
  truncateSync(file, mebibytes * 1024 * 1024)
  mkdirSync(path)
  // No blocks reserved for root: the disk must be full for a host that runs as root.
  execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', file])
  execFileSync('mount', ['-o', 'loop', file, path])
  rmSync(join(path, 'lost+found'), { recursive: true })
  return { path, fill: () => keepFull(path) }
}

/**
 * Keeps a file system full. The returned function frees the space.
 * @param held its directory in which files come and go. All of them stay open: the space of a removed one is free only
 * afterwards. Otherwise a new sandbox can take the space of the last before the filler does.
 */
export function keepFull(path: string, held: string = path): () => void {
  const filler = join(path, 'filler')
  writeFileSync(filler, '', { mode: 0o600 })
  // Allocates without writing, because a large disk would take long. Writing then fills the rest, whose size depends on
  // the file system.
  const { bavail, bsize } = statfsSync(path)
  const most = (bavail - SLACK_BLOCKS) * bsize
  if (most > 0) spawnSync('fallocate', ['--length', String(most), filler])
  // Block by block, because no part of a larger piece that does not fit is written, and a new sandbox needs only one block.
  const once = (): void => {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(bsize), { flag: 'a' })
    } catch {
      // The disk is full.
    }
  }
  once()
  const open = openAll(held)
  const again = setInterval(once, 20)
  return () => {
    clearInterval(again)
    for (const fd of open) closeSync(fd)
    rmSync(filler, { force: true })
  }
}

/** Opens a directory and everything below it. Ignores entries that vanish meanwhile, because their sandbox has just ended. */
function openAll(directory: string): number[] {
  const open = (path: string): number[] => unlessGone(() => [openSync(path, constants.O_RDONLY)])
  const entries = unlessGone(() => readdirSync(directory, { withFileTypes: true }))
  return entries.flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return [...open(path), ...openAll(path)]
    return entry.isFile() ? open(path) : []
  })
}

function unlessGone<T>(read: () => T[]): T[] {
  try {
    return read()
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}
