/** The brackets and the string that are open at the end of a text. */
interface Open {
  readonly brackets: number
  /** The quote of a string over several lines. */
  readonly quote: string | undefined
}

const TOKEN = /"""|'''|\\[\s\S]|["'#()[\]{}\n]/g

/**
 * True if a person has typed a complete cell: no bracket and no string is open, and a block (after `:`, or a decorator) has ended
 * with an empty line. Python decides whether the cell is valid.
 */
export function isWholeCell(text: string): boolean {
  const { brackets, quote } = openAtEnd(text)
  if (quote !== undefined || brackets > 0 || text.endsWith('\\')) return false
  const lines = text.split('\n')
  if (lines.at(-1)?.trim() === '') return true
  return !lines.some((line) => /^\s+\S|^@|:\s*(?:#.*)?$/.test(line))
}

function openAtEnd(text: string): Open {
  let brackets = 0
  let quote: string | undefined
  let isComment = false
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '\n') {
      isComment = false
      if (quote?.length === 1) quote = undefined // Python reports it
    } else if (isComment || token.startsWith('\\')) continue
    else if (quote !== undefined) quote = token === quote ? undefined : quote
    else if (token === '#') isComment = true
    else if ('([{'.includes(token)) brackets += 1
    else if (')]}'.includes(token)) brackets -= 1
    else quote = token
  }
  return { brackets, quote: quote?.length === 3 ? quote : undefined }
}
