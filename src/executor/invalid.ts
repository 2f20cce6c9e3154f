import { SandglassError } from '../errors/index.ts'
import { truncate } from '../support/index.ts'

const MAX_NAME = 80

/** Creates the error for an invalid field of a request. */
export function invalid(field: string, problem: string): SandglassError {
  return new SandglassError('invalid_request', `${field}: ${problem}`)
}

/** `field` with a name from the caller appended, safe to print. */
export function member(field: string, name: string): string {
  return /^[A-Za-z_]\w*$/.test(name)
    ? `${field}.${truncate(name, MAX_NAME)}`
    : `${field}[${JSON.stringify(truncate(name, MAX_NAME))}]`
}
