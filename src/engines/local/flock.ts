import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { errnoOf, shortageError } from '../../errors/index.ts'

/** A file lock that the kernel releases when this process ends, however it ends. */
export interface FileLock {
  release(): void
}

const TAKEN = 75

/**
 * Takes an exclusive lock on a file; returns undefined when another process holds it. Node has no flock(2), but the
 * lock belongs to the open file description: a short-lived `flock` on an inherited descriptor takes it for this process.
 * @throws the error of opening the file, or an Error when neither `flock` nor `python3` can do it, with the reason of each.
 */
export async function tryLock(path: string): Promise<FileLock | undefined> {
  const fd = openSync(path, 'a', 0o600)
  const isLocked = await lock(path, fd, 'exclusive').catch((error: unknown) => {
    closeSync(fd)
    throw error
  })
  if (isLocked) return { release: () => closeSync(fd) }
  closeSync(fd)
  return undefined
}

/** True if a process holds such a lock. Concurrent calls of this function do not count. Throws as {@link tryLock} does. */
export async function isLocked(path: string): Promise<boolean> {
  const fd = openSync(path, 'r')
  try {
    return !(await lock(path, fd, 'shared'))
  } finally {
    closeSync(fd)
  }
}

/** False when another lock excludes this one. */
async function lock(path: string, fd: number, kind: 'exclusive' | 'shared'): Promise<boolean> {
  const programs: readonly [string, readonly string[]][] = [
    ['flock', [`--${kind}`, '-n', '-E', String(TAKEN), '3']],
    ['python3', ['-c', PYTHON, kind]],
  ]
  const problems: string[] = []
  for (const [program, args] of programs) {
    const end = await runProgram(program, args, fd)
    if (end === 0) return true
    if (end === TAKEN) return false
    problems.push(`${program} ${typeof end === 'number' ? `ended with exit code ${end}` : end}`)
  }
  throw new Error(`cannot lock ${path}: ${problems.join(', ')}; install util-linux or python3`)
}

const PYTHON = `import fcntl,sys
kind = fcntl.LOCK_EX if sys.argv[1] == "exclusive" else fcntl.LOCK_SH
try: fcntl.flock(3, kind | fcntl.LOCK_NB)
except BlockingIOError: sys.exit(${TAKEN})`

/** Resolves to the exit code, or to the reason for its absence. Throws if the host lacks resources: no other program helps then. */
function runProgram(program: string, args: readonly string[], fd: number): Promise<number | string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore', fd] })
    child.once('error', (error) => {
      if (shortageError(error, program) === undefined) resolve(`cannot be run (${errnoOf(error) ?? error.message})`)
      else reject(error)
    })
    child.once('exit', (code, signal) => resolve(code ?? `was killed by ${signal ?? 'a signal'}`))
  })
}
