import { type ErrorCode, messageOf, SandglassError } from '../errors/index.ts'
import { type ErrorKind, type OutcomeName, OUTCOMES, type Status } from '../outcomes/index.ts'

/** The command line itself is wrong: exit 2, whatever its code says elsewhere. */
export class UsageError extends SandglassError {}

/** The outcome of a request that no sandbox ran to its end. */
export interface Failure {
  readonly status: Status
  readonly errorKind: ErrorKind | null
  /** The code of the {@link SandglassError}; null for a defect of this program. */
  readonly code: ErrorCode | null
  readonly message: string
  readonly exitCode: number
}

/** Codes of requests and options that cannot be run as they are. */
const WRONG_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'limits_do_not_fit',
  'engine_unknown',
  'packages_unreadable',
  'dependency_invalid',
  'dependency_not_found',
  'dependency_no_wheel',
  'dependency_conflict',
  'dependency_too_new',
  'dependency_not_allowed',
  'artifact_not_found',
  'workspace_not_found',
])
/** Codes of defects of this program: no user input causes them. */
const DEFECT: ReadonlySet<ErrorCode> = new Set(['pool_closed', 'unknown_spec'])

/** Classifies anything that was thrown. */
export function failureOf(error: unknown): Failure {
  const name = outcomeOf(error)
  const { status, errorKind, exitCode } = OUTCOMES[name]
  const code = error instanceof SandglassError && name !== 'defect' ? error.code : null
  return { status, errorKind, code, message: messageOf(error), exitCode }
}

function outcomeOf(error: unknown): OutcomeName {
  if (!(error instanceof SandglassError) || DEFECT.has(error.code)) return 'defect'
  if (error instanceof UsageError || WRONG_REQUEST.has(error.code)) return 'invalidRequest'
  if (error.code === 'workspace_owned') return 'owned'
  if (error.code === 'aborted') return 'cancelled'
  // A retryable error is a breakdown; otherwise something is missing on this machine or in this version.
  return error.retryable ? 'sandboxLost' : 'unavailable'
}

/** The line that reports a failure if stdout carries JSON. */
export function errorLine(failure: Failure): Record<string, unknown> {
  return {
    v: 1,
    type: 'error',
    status: failure.status,
    success: false,
    error_kind: failure.errorKind,
    code: failure.code,
    error: failure.message,
  }
}
