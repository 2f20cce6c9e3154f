import { type FileHandle, readlink, realpath, stat } from 'node:fs/promises'

/**
 * True if an open file or directory is the one at a path without links. Opening by such a path follows a link that took the place
 * of a directory in it meanwhile; the kernel's answer for the open file cannot be changed. Without /proc the path is looked up once
 * more, which somebody who is fast enough may answer twice.
 */
export async function isAt(file: FileHandle, path: string): Promise<boolean> {
  const opened = await readlink(`/proc/self/fd/${file.fd}`).catch(() => undefined)
  if (opened !== undefined) return opened === path
  const [found, expected] = await Promise.all([file.stat({ bigint: true }), stat(path, { bigint: true })])
  return (await realpath(path)) === path && found.ino === expected.ino && found.dev === expected.dev
}
