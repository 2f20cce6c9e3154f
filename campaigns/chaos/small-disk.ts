import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PIECE_BYTES = 4096
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

/** Keeps a file system full. The returned function frees the space. */
export function keepFull(path: string): () => void {
  const filler = join(path, 'filler')
  writeFileSync(filler, '', { mode: 0o600 })
  // Allocates without writing, because a large disk would take long. Writing then fills the rest, whose size depends on
  // the file system.
  const { bavail, bsize } = statfsSync(path)
  const most = (bavail - SLACK_BLOCKS) * bsize
  if (most > 0) spawnSync('fallocate', ['--length', String(most), filler])
  const once = (): void => {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(PIECE_BYTES), { flag: 'a' })
    } catch {
      // The disk is full.
    }
  }
  once()
  const again = setInterval(once, 20)
  return () => {
    clearInterval(again)
    rmSync(filler, { force: true })
  }
}
