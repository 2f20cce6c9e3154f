import { errnoOf, messageOf, SandglassError, shortageError } from '../../errors/index.ts'

/** How a user names a state directory. */
export const NAMED_BY = 'option stateDir, variable SANDGLASS_STATE_DIR'

/** The error of a failed system call in the state directory, with what to do. */
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

/** The error of a state directory that must not be used as it is. */
export function unusableState(path: string, why: string, cause?: unknown): SandglassError {
  const message = `the state directory ${path} cannot be used: ${why}`
  return new SandglassError('state_dir_unusable', message, cause === undefined ? {} : { cause })
}
