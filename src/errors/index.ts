import { ERROR_CODES, type ErrorCode } from './codes.ts'

export { ERROR_CODES, type ErrorCode } from './codes.ts'

/**
 * Trouble with the machinery around a script (never with the script itself: whatever a script does is a value).
 * `code` is stable, `message` names the problem and the next step.
 */
export class SandglassError extends Error {
  override readonly name = 'SandglassError'
  readonly code: ErrorCode
  /** True if the same call may succeed later without a change of configuration. */
  readonly retryable: boolean

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
    this.retryable = ERROR_CODES[code].retryable
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The errno name (`ENOENT` …) of a failed system call, or undefined. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Shortages of a host that may pass, by the errno of the system call that failed. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: 'this process has no file descriptor left (EMFILE; see ulimit -n)',
  ENFILE: 'the machine has no file descriptor left (sysctl fs.file-max)',
  EAGAIN: 'no more processes may be started here (ulimit -u, pids.max)',
  ENOMEM: 'no memory is left for it',
}

/** The error of a system call that failed because the host is short of something; undefined for any other error. */
export function shortageError(error: unknown, what: string): SandglassError | undefined {
  const why =
    error instanceof SandglassError
      ? undefined
      : SHORTAGES[hasTooFewForChild(error) ? 'EMFILE' : (errnoOf(error) ?? '')]
  if (why === undefined) return undefined
  return new SandglassError('sandbox_setup_failed', `${what}: ${why}: ${messageOf(error)}`, { cause: error })
}

/** Linux calls it EINVAL when a new process is to have more descriptors than the limit that it inherits. */
function hasTooFewForChild(error: unknown): boolean {
  return errnoOf(error) === 'EINVAL' && String((error as { syscall?: unknown }).syscall).startsWith('spawn')
}
