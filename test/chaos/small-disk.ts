import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PIECE_BYTES = 4096
const SLACK_BLOCKS = 64

/** A file system of its own in a small file. */
export interface SmallDisk {
  readonly path: string
  /** Fills what is left, and goes on filling what becomes free, until it is called off. */
  fill(): () => void
}

/** Makes one of so many MiB below a directory, and mounts it. */
export function smallDisk(directory: string, mebibytes: number): SmallDisk {
  const [file, path] = [join(directory, 'disk.img'), join(directory, 'disk')]
  writeFileSync(file, '')
  truncateSync(file, mebibytes * 1024 * 1024)
  mkdirSync(path)
  // No blocks that are root's alone: what is full is full for the host, too.
  execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', file])
  execFileSync('mount', ['-o', 'loop', file, path])
  rmSync(join(path, 'lost+found'), { recursive: true })
  return { path, fill: () => keepFull(path) }
}

/** Fills a file system until it is called off, which makes it free again. */
export function keepFull(path: string): () => void {
  const filler = join(path, 'filler')
  writeFileSync(filler, '', { mode: 0o600 })
  // Without writing it: a large disk would take its time. What the file system needs for itself, and what is left over,
  // is found by writing.
  const { bavail, bsize } = statfsSync(path)
  const most = (bavail - SLACK_BLOCKS) * bsize
  if (most > 0) spawnSync('fallocate', ['--length', String(most), filler])
  const once = (): void => {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(PIECE_BYTES), { flag: 'a' })
    } catch {
      // full
    }
  }
  once()
  const again = setInterval(once, 20)
  return () => {
    clearInterval(again)
    rmSync(filler, { force: true })
  }
}
