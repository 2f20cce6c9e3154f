import { ERROR_CODES, type ErrorCode } from './codes.ts'

export { ERROR_CODES, type ErrorCode } from './codes.ts'

/**
 * Trouble with the machinery around a script (never with the script itself: what a script did is a value).
 * `code` is stable, `message` says what was wrong and what to do next.
 */
export class SandglassError extends Error {
  override readonly name = 'SandglassError'
  readonly code: ErrorCode
  /** Whether the same call may succeed later without a change of configuration. */
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
