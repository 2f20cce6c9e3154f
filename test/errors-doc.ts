import { ERROR_CODES } from '../src/errors/index.ts'

/** docs/errors.md as the table of codes says it. */
export function errorsDoc(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { meaning, retryable }]) => `| \`${code}\` | ${meaning} | ${retryable ? 'yes' : 'no'} |`,
  )
  return [
    '# Error codes',
    '',
    'Trouble with the machinery is thrown as a `SandglassError` with one of these codes. They are stable; messages are not.',
    'What a script did, a crash or a timeout included, is never thrown: it is the `status` of the result.',
    'Wrong use of the library itself (an option that does not exist) is a `TypeError` that names it.',
    '',
    'Written by `node scripts/errors-doc.ts` from `src/errors/codes.ts`.',
    '',
    '| code | meaning | may succeed later |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
