import { type FileHandle, readlink, realpath, stat } from 'node:fs/promises'

/**
 * True if an open file or directory is the one at a path without symbolic links. A link that replaced a directory of the path is
 * followed by `open`, but /proc names the file that was really opened. Without /proc the path is looked up once more, which leaves a
 * race with somebody who replaces it twice.
 */
export async function isAt(file: FileHandle, path: string): Promise<boolean> {
  const opened = await readlink(`/proc/self/fd/${file.fd}`).catch(() => undefined)
  if (opened !== undefined) return opened === path
  const [found, expected] = await Promise.all([file.stat({ bigint: true }), stat(path, { bigint: true })])
  return (await realpath(path)) === path && found.ino === expected.ino && found.dev === expected.dev
}
