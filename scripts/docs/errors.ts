import { ERROR_CODES } from '../../src/errors/index.ts'
import { code, markdownTable } from './table.ts'

/** The table of error codes. */
export function errorCodes(): string {
  const rows = Object.entries(ERROR_CODES).map(([name, { meaning, retryable }]) => [
    code(name),
    meaning,
    retryable ? 'yes' : 'no',
  ])
  return markdownTable(['code', 'meaning', 'may succeed later'], rows)
}
