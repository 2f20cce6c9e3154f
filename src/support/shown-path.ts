const MAX_PATH = 200

/** A path as a message shows it, whatever its length. */
export function shownPath(path: string): string {
  return headOf(path, MAX_PATH)
}

/** The head of a text that is too long. */
export function headOf(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`
}
