import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { errnoOf, shortageError } from '../errors/index.ts'

/** A file lock that the kernel releases when this process ends, however it ends. */
export interface FileLock {
  /** The descriptor that holds the lock. A child that inherits it also holds the lock until it exits. */
  readonly fd: number
  release(): void
}

/** A shared lock excludes exclusive ones only. */
type LockKind = 'exclusive' | 'shared'

/** The exit code if another process holds the lock. */
const EXIT_TAKEN = 75

/**
 * Takes a lock on a file; returns undefined if another process holds a lock that excludes it. Node has no flock(2), but the
 * lock belongs to the open file description: a short-lived `flock` on an inherited descriptor takes it for this process.
 * @throws the error of opening the file, or an Error with the reasons why neither `flock` nor `python3` can lock it.
 */
export async function tryLock(path: string, kind: LockKind = 'exclusive'): Promise<FileLock | undefined> {
  return hold(path, (fd) => lock(path, fd, kind))
}

/**
 * Waits for a lock on a file.
 * @throws the reason of the signal when it fires first; else as {@link tryLock} does.
 */
export async function awaitLock(path: string, kind: LockKind, signal?: AbortSignal): Promise<FileLock> {
  const held = await hold(path, (fd) => lock(path, fd, kind, { signal }))
  signal?.throwIfAborted()
  if (held === undefined) throw new Error(`cannot lock ${path}: the wait ended early`)
  return held
}

/** True if a process holds an exclusive lock on a file. Concurrent calls of this function do not count. Throws as {@link tryLock} does. */
export async function isLocked(path: string): Promise<boolean> {
  const fd = openSync(path, 'r')
  try {
    return !(await lock(path, fd, 'shared'))
  } finally {
    closeSync(fd)
  }
}

async function hold(path: string, take: (fd: number) => Promise<boolean>): Promise<FileLock | undefined> {
  const fd = openSync(path, 'a', 0o600)
  const isAcquired = await take(fd).catch((error: unknown) => {
    closeSync(fd)
    throw error
  })
  if (isAcquired) return { fd, release: () => closeSync(fd) }
  closeSync(fd)
  return undefined
}

/** Locks a descriptor; false if another lock excludes this one. With `wait` it waits until that lock is released or the signal fires. */
async function lock(
  path: string,
  fd: number,
  kind: LockKind,
  wait?: { readonly signal: AbortSignal | undefined },
): Promise<boolean> {
  const programs: readonly [string, readonly string[]][] = [
    ['flock', [`--${kind}`, ...(wait === undefined ? ['-n'] : []), '-E', String(EXIT_TAKEN), '3']],
    ['python3', ['-c', PYTHON, kind, wait === undefined ? 'try' : 'wait']],
  ]
  const problems: string[] = []
  for (const [program, args] of programs) {
    const end = await runProgram(program, args, fd, wait?.signal)
    if (end === 0) return true
    if (end === EXIT_TAKEN || wait?.signal?.aborted === true) return false
    problems.push(`${program} ${typeof end === 'number' ? `ended with exit code ${end}` : end}`)
  }
  throw new Error(`cannot lock ${path}: ${problems.join(', ')}; install util-linux or python3`)
}

const PYTHON = `import fcntl,sys
kind = fcntl.LOCK_EX if sys.argv[1] == "exclusive" else fcntl.LOCK_SH
try: fcntl.flock(3, kind | (fcntl.LOCK_NB if sys.argv[2] == "try" else 0))
except BlockingIOError: sys.exit(${EXIT_TAKEN})`

/** Resolves to the exit code, or to the reason for its absence. Rejects if the host lacks resources, because no other program helps then. */
function runProgram(
  program: string,
  args: readonly string[],
  fd: number,
  signal: AbortSignal | undefined,
): Promise<number | string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
    })
    child.once('error', (error) => {
      if (shortageError(error, program) === undefined) resolve(`cannot be run (${errnoOf(error) ?? error.message})`)
      else reject(error)
    })
    child.once('exit', (code, signal) => resolve(code ?? `was killed by ${signal ?? 'a signal'}`))
  })
}
