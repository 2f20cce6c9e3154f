import { SandglassError } from '../errors/index.ts'
import { didYouMean } from '../support/index.ts'

/** The error of a value that an option does not accept. */
export function unknownValueError(
  option: string,
  what: string,
  given: unknown,
  known: readonly string[],
): SandglassError {
  return new SandglassError(
    'invalid_request',
    `${option}: unknown ${what} ${JSON.stringify(given)}.${didYouMean(String(given), known)} Choose one of: ${known.join(', ')}`,
  )
}
