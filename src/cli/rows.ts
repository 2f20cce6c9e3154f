import { escapeForMessage, escapeInvisible } from './terminal-text.ts'

/** Maximum characters of a shown line of a script; the rest of a longer one follows on further lines. */
const WIDTH = 70

/** A line of foreign text in rows, so that the terminal wraps none. */
export function wrapText(line: string): string[] {
  return wrapWords([{ text: line }]).map((row) => row.map(({ text }) => text).join(''))
}

/** The words of a line as rows, so that the terminal wraps none: a wrapped row could look like another line. */
export function wrapWords<Word extends { readonly text: string }>(words: readonly Word[]): Word[][] {
  const rows: Word[][] = [[]]
  let left = WIDTH
  for (const word of words) {
    let rest = escapeInvisible(escapeForMessage(word.text))
    while (rest.length > left) {
      rows.at(-1)?.push({ ...word, text: rest.slice(0, left) })
      rest = rest.slice(left)
      rows.push([])
      left = WIDTH
    }
    rows.at(-1)?.push({ ...word, text: rest })
    left -= rest.length
  }
  return rows
}
