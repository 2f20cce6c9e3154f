import type { RunSummary } from '../journal/index.ts'
import { nearest } from '../support/index.ts'
import { UsageError } from './failure.ts'

const MAX_NAMED = 5

/**
 * The id of the run that a word means: an id, the beginning of one, or `last`.
 * @param runs newest first.
 * @param where for messages: the place, and the flag that names it.
 * @throws UsageError that says what is there in its stead.
 */
export function findRun(
  word: string,
  runs: readonly RunSummary[],
  where: { readonly path: string; readonly flag: string },
): string {
  const ids = runs.map(({ runId }) => runId)
  const [newest] = ids
  if (newest === undefined) throw wrong(`there are no runs in ${where.path} yet; sandglass solve makes one`)
  if (word === 'last' || ids.includes(word)) return word === 'last' ? newest : word
  const fitting = word === '' ? [] : ids.filter((id) => id.startsWith(word))
  const [only] = fitting
  if (fitting.length === 1 && only !== undefined) return only
  const list = `sandglass runs${where.flag}`
  if (fitting.length > 1) {
    const named = fitting.slice(0, MAX_NAMED).join(', ')
    const more = fitting.length > MAX_NAMED ? ` and ${fitting.length - MAX_NAMED} more` : ''
    throw wrong(`${JSON.stringify(word)} is the beginning of ${fitting.length} runs: ${named}${more}; write more of it`)
  }
  const close = nearest(word, ids)
  const hint = close === undefined ? `The newest is ${newest}` : `Did you mean ${close}?`
  throw wrong(`no run ${JSON.stringify(word.slice(0, 80))} in ${where.path}. ${hint}; ${list} lists them`)
}

function wrong(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
