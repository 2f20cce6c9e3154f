import { randomUUID } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { errnoOf, messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import { makeDirectory } from '../../support/index.ts'
import { findObstacle } from './reach.ts'

/** The settings that choose the state directory, for messages. */
const NAMED_BY = 'option stateDir, variable SANDGLASS_STATE_DIR'

/** The default state directory of this user. */
export function defaultStateDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env['SANDGLASS_STATE_DIR'] !== undefined && env['SANDGLASS_STATE_DIR'] !== '') return env['SANDGLASS_STATE_DIR']
  if (process.getuid?.() === 0) return '/var/lib/sandglass'
  const base = env['XDG_STATE_HOME']
  return join(base !== undefined && base.startsWith('/') ? base : join(homedir(), '.local', 'state'), 'sandglass')
}

/**
 * Makes the state directory and its subdirectories if they are missing, so that sandboxes with this uid can enter them.
 * @throws SandglassError `state_dir_unusable` or `no_space`, naming the path.
 */
export function prepareStatePath(state: string, names: readonly string[], uid: number): void {
  try {
    for (const name of ['', ...names]) {
      const path = join(state, name)
      makePassable(path, uid)
      assertExclusive(state, path)
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

/** Makes a directory that sandboxes of another uid can enter, whatever the umask. Private files in it have modes of their own. */
function makePassable(path: string, uid: number): void {
  const made = makeDirectory(path, { own: 0o755, above: 0o755 })
  if (uid !== process.getuid?.()) for (const at of made) chmodSync(at, 0o755)
}

/** Throws if other users can write: staged files become PID 1 of every sandbox, and records name processes to kill. */
function assertExclusive(state: string, path: string): void {
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

/** Lists the names in a directory, sorted; none if it cannot be read. */
export function listNames(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted()
  } catch {
    return []
  }
}

/** Reads the text of a file; undefined if it cannot be read. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
