import { SandglassError } from '../errors/index.ts'

/** The error for an invalid argument. */
export function invalid(field: string, problem: string): SandglassError {
  return new SandglassError('invalid_request', `${field}: ${problem}`)
}
