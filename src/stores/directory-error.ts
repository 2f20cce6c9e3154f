import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'

/** The error of a store in a directory, for a system call that failed; any other error as it is. */
export function toDirectoryError(directory: string, error: unknown): unknown {
  const errno = errnoOf(error)
  if (error instanceof SandglassError || errno === undefined || !(error instanceof Error)) return error
  const shown = formatPath(directory)
  if (errno === 'ENOSPC' || errno === 'EDQUOT') {
    return new SandglassError('no_space', `no space is left for the store ${shown}: free some, then try again`, {
      cause: error,
    })
  }
  const { syscall = '' } = error as NodeJS.ErrnoException
  const reason = syscall === '' ? messageOf(error) : `${errno} (${syscall})`
  return new SandglassError('store_unusable', `the store ${shown} cannot be used: ${reason}`, { cause: error })
}
