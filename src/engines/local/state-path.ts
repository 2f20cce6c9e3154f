import { randomUUID } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { errnoOf, messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import { makeDirectory } from '../../support/index.ts'
import { findObstacle } from './reach.ts'

/** The ways to name a state directory, for messages. */
const NAMED_BY = 'option stateDir, variable SANDGLASS_STATE_DIR'

/** The default state directory of this user. */
export function defaultStateDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env['SANDGLASS_STATE_DIR'] !== undefined && env['SANDGLASS_STATE_DIR'] !== '') return env['SANDGLASS_STATE_DIR']
  if (process.getuid?.() === 0) return '/var/lib/sandglass'
  const base = env['XDG_STATE_HOME']
  return join(base !== undefined && base.startsWith('/') ? base : join(homedir(), '.local', 'state'), 'sandglass')
}

/**
 * Makes the state directory and its subdirectories where they are missing, so that sandboxes with this uid can enter them.
 * @throws SandglassError `state_dir_unusable` or `no_space`, naming the path.
 */
export function prepareStatePath(state: string, names: readonly string[], uid: number): void {
  try {
    for (const name of ['', ...names]) {
      const path = join(state, name)
      makePassable(path, uid)
      refuseOthers(state, path)
    }
    const probe = join(state, `.probe-${randomUUID()}`)
    writeFileSync(probe, 'x')
    rmSync(probe)
  } catch (error) {
    throw stateError(state, error)
  }
}

/** @throws SandglassError `state_dir_unusable` when a sandbox with this uid cannot enter a directory. */
export function assertEnterable(state: string, path: string, uid: number): void {
  const closed = findObstacle(path, uid)
  if (closed === undefined) return
  const remedy = `chmod o+x it, or name a state directory elsewhere (${NAMED_BY})`
  throw unusableState(state, `a sandbox with uid ${uid} cannot enter ${closed}: ${remedy}`)
}

/** The error of a failed system call in the state directory, with its remedy. */
export function stateError(path: string, error: unknown): SandglassError {
  if (error instanceof SandglassError) return error
  if (errnoOf(error) === 'ENOSPC' || errnoOf(error) === 'EDQUOT') {
    return new SandglassError('no_space', `no space left for the state directory ${path}: free some, then try again`, {
      cause: error,
    })
  }
  const shortage = shortageError(error, `the state directory ${path} cannot be used now`)
  if (shortage !== undefined) return shortage
  return unusableState(path, `${messageOf(error)}; make it writable or name another one (${NAMED_BY})`, error)
}

function unusableState(path: string, why: string, cause?: unknown): SandglassError {
  const message = `the state directory ${path} cannot be used: ${why}`
  return new SandglassError('state_dir_unusable', message, cause === undefined ? {} : { cause })
}

/** Lets sandboxes of another uid pass, independent of the umask. Private files in it have modes of their own. */
function makePassable(path: string, uid: number): void {
  const made = makeDirectory(path, { own: 0o755, above: 0o755 })
  if (uid !== process.getuid?.()) for (const at of made) chmodSync(at, 0o755)
}

/** Staged files become PID 1 of every sandbox, and records name processes to kill: nobody else may write them. */
function refuseOthers(state: string, path: string): void {
  const { uid, mode } = statSync(path)
  const own = process.getuid?.()
  if (uid !== own) {
    throw unusableState(
      state,
      `${path} belongs to uid ${uid}, not to uid ${own}: chown it, or name another one (${NAMED_BY})`,
    )
  }
  if ((mode & 0o022) !== 0) {
    throw unusableState(
      state,
      `${path} can be written by others: chmod go-w it if all in it is yours, or name another one (${NAMED_BY})`,
    )
  }
}

/** The names in a directory in order; none where it cannot be read. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted()
  } catch {
    return []
  }
}

/** The text of a file; undefined where it cannot be read. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
