import { type ErrorCode, SandglassError } from '../errors/index.ts'
import type { ActivityFailure } from '../protocol/index.ts'
import { formatValue, truncate } from '../support/index.ts'

const MAX_MESSAGE = 500

/** Error codes by the codes of failures on the wire. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  not_found: 'path_not_found',
  not_a_file: 'path_refused',
  not_a_directory: 'path_refused',
  outside: 'path_refused',
  exists: 'path_refused',
  not_empty: 'path_refused',
  no_space: 'no_space',
  too_large: 'too_large',
  too_many: 'too_large',
  refused: 'connection_refused',
  no_such_program: 'program_not_found',
  not_executable: 'program_not_found',
  cancelled: 'aborted',
  invalid: 'invalid_request',
  busy: 'sandbox_busy',
  lost: 'session_lost',
  no_checkpoint: 'checkpoint_unavailable',
}

/** The error for a failure that the sandbox reports. Its text comes from the sandbox: it is truncated and not trusted. */
export function failureOf(what: string, { code, message }: ActivityFailure): SandglassError {
  const known = Object.hasOwn(CODES, code) ? CODES[code] : undefined
  return new SandglassError(
    known ?? 'workspace_io',
    `${what}: ${truncate(message, MAX_MESSAGE)} (${truncate(code, 64)})`,
  )
}

/** The error for an invalid argument. */
export function invalid(field: string, problem: string): SandglassError {
  return new SandglassError('invalid_request', `${field}: ${problem}`)
}

/** @throws SandglassError `invalid_request` for anything but a whole number of that range. */
export function checkWhole(field: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw invalid(field, `${formatValue(value)} is not a whole number from ${min} to ${max}`)
}

export function closedError(): SandglassError {
  return new SandglassError('workspace_closed', 'the workspace is closed; open another one with sg.workspace()')
}

export function idleError(idleTimeoutSec: number): SandglassError {
  return new SandglassError(
    'workspace_closed',
    `the workspace was closed, because it was not used for ${idleTimeoutSec} s (idleTimeoutSec); open another one with sg.workspace()`,
  )
}

const SEVERAL = 'The engine local, and docker without gVisor, run several activities at once'

/** The error for an activity that would run beside another one, where a script or a program must be alone. */
export function notAloneError(engine: string): SandglassError {
  return new SandglassError(
    'sandbox_busy',
    `another activity of this workspace is under way, and in this sandbox (engine ${engine}) a script, a program or a ` +
      `session runs alone; wait for its end. ${SEVERAL}`,
  )
}

/** The error for an activity that needs concurrent ones, where a script or a program must be alone. */
export function unavailableError(engine: string, what: string, instead: string): SandglassError {
  return new SandglassError(
    'activity_unavailable',
    `${what}: in this sandbox (engine ${engine}) a workspace runs one activity at a time, to its end; ${instead}. ${SEVERAL}`,
  )
}

export function abortedError(what: string): SandglassError {
  return new SandglassError('aborted', `${what} was aborted`)
}
