import { type ErrorCode, messageOf, SandglassError } from '../errors/index.ts'
import type { ErrorKind } from '../executor/index.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'

/** The command line itself is wrong: exit 2, whatever its code says elsewhere. */
export class UsageError extends SandglassError {}

/** What became of a request that no sandbox ran to its end. */
export interface Failure {
  readonly status: 'invalid-request' | 'sandbox-lost' | 'cancelled' | 'failed'
  readonly errorKind: ErrorKind
  /** Of the {@link SandglassError}; null for a defect of this program. */
  readonly code: ErrorCode | null
  readonly message: string
  readonly exitCode: number
}

/** Codes of requests and options that can not be run as they are. */
const WRONG_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'limits_do_not_fit',
  'engine_unknown',
  'packages_unreadable',
])
/** Nothing that a user does leads to them. */
const DEFECT: ReadonlySet<ErrorCode> = new Set(['pool_closed', 'unknown_spec'])

/** Sorts anything that was thrown. */
export function failureOf(error: unknown): Failure {
  const message = messageOf(error)
  if (!(error instanceof SandglassError) || DEFECT.has(error.code)) {
    return { status: 'failed', errorKind: 'internal', code: null, message, exitCode: EXIT.defect }
  }
  const { code } = error
  if (error instanceof UsageError || WRONG_REQUEST.has(code)) {
    return { status: 'invalid-request', errorKind: 'invalid_request', code, message, exitCode: EXIT.usage }
  }
  if (code === 'aborted') {
    return { status: 'cancelled', errorKind: 'cancelled', code, message, exitCode: EXIT.cancelled }
  }
  // What may work the next time is a breakdown; all else is missing on this machine or in this version.
  const exitCode = error.retryable ? exitCodeOf('infrastructure') : EXIT.missing
  return { status: 'sandbox-lost', errorKind: 'infrastructure', code, message, exitCode }
}

/** The line that stands for a failure where stdout carries JSON. */
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
