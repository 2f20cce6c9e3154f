import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

/** A file lock that the kernel releases when this process ends, however it ends. */
export interface FileLock {
  release(): void
}

const TAKEN = 75

/**
 * Takes an exclusive lock on a file, or gives undefined when another process holds it. Node has no flock(2), but the
 * lock belongs to the open file description: a short-lived `flock` on an inherited descriptor takes it for this process.
 * @throws the error of opening the file, or an Error when neither `flock` nor `python3` can be run.
 */
export async function tryLock(path: string): Promise<FileLock | undefined> {
  const fd = openSync(path, 'a', 0o600)
  try {
    const code =
      (await lockWith('flock', ['-x', '-n', '-E', String(TAKEN), '3'], fd)) ?? (await lockWith('python3', PYTHON, fd))
    if (code === 0) return { release: () => closeSync(fd) }
    if (code === TAKEN) {
      closeSync(fd)
      return undefined
    }
    throw new Error(
      `cannot lock ${path}: neither flock (package util-linux) nor python3 could do it (${code ?? 'not found'})`,
    )
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const PYTHON = [
  '-c',
  `import fcntl,sys\ntry: fcntl.flock(3, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: sys.exit(${TAKEN})`,
]

/** The exit code, or undefined when there is no such program. */
function lockWith(program: string, args: readonly string[], fd: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore', fd] })
    child.once('error', () => resolve(undefined))
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
