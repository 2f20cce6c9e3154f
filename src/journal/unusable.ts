import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { headOf, shownPath } from '../support/index.ts'

const MAX_REASON = 500

/** What is wrong with a journal, by its place. */
export function unusable(path: string, error: unknown): SandglassError {
  if (error instanceof SandglassError) return error
  // Messages of the file system repeat the path, of whatever length.
  const reason = isFileError(error) ? `${errnoOf(error)} (${error.syscall})` : headOf(messageOf(error), MAX_REASON)
  return new SandglassError('journal_unusable', `the journal ${shownPath(path)} cannot be used: ${reason}`, {
    cause: error,
  })
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'errno' in error && 'syscall' in error && errnoOf(error) !== undefined
}
