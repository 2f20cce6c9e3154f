import { ERROR_CODES, type ErrorCode } from './codes.ts'

export { ERROR_CODES, type ErrorCode } from './codes.ts'

/**
 * A failure of the infrastructure around a script, never of the script itself: whatever a script does is a value.
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

/** Temporary shortages of a host, by the errno of the failed system call. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: 'this process has no file descriptor left (EMFILE; see ulimit -n)',
  ENFILE: 'the machine has no file descriptor left (ENFILE; see sysctl fs.file-max)',
  EAGAIN: 'no more processes may be started here (EAGAIN; see ulimit -u and pids.max)',
  ENOMEM: 'no memory is left for it here (ENOMEM; the machine or a control group is at its limit)',
}

/** The error of a system call that failed because the host is short of something; undefined for any other error. */
export function shortageError(error: unknown, what: string): SandglassError | undefined {
  const why =
    error instanceof SandglassError
      ? undefined
      : SHORTAGES[isDescriptorLimitOfChild(error) ? 'EMFILE' : (errnoOf(error) ?? '')]
  if (why === undefined) return undefined
  return new SandglassError('sandbox_setup_failed', `${what}: ${why}: ${messageOf(error)}`, { cause: error })
}

/** Linux returns EINVAL if a new process would get more descriptors than its inherited limit allows. */
function isDescriptorLimitOfChild(error: unknown): boolean {
  return errnoOf(error) === 'EINVAL' && String((error as { syscall?: unknown }).syscall).startsWith('spawn')
}
