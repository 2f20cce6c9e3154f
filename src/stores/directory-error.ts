import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'

/** Explains a failed system call of a store in a directory; returns any other error unchanged. */
export function toDirectoryError(directory: string, error: unknown): unknown {
  const errno = errnoOf(error)
  if (error instanceof SandglassError || errno === undefined || !(error instanceof Error)) return error
  const shown = formatPath(directory)
  if (errno === 'ENOSPC' || errno === 'EDQUOT') {
    return new SandglassError('no_space', `no space is left for the store ${shown}: free some space, then try again`, {
      cause: error,
    })
  }
  const { syscall = '' } = error as NodeJS.ErrnoException
  const reason = syscall === '' ? messageOf(error) : `${errno} (${syscall})`
  return new SandglassError('store_unusable', `the store ${shown} cannot be used: ${reason}`, { cause: error })
}
