/** Two marker lines of a page; a program writes the text between them. */
export interface Markers {
  readonly begin: string
  readonly end: string
}

/**
 * The text between the markers of a page.
 * @throws Error for a page without them.
 */
export function sectionOf(page: string, { begin, end }: Markers): string {
  const { from, to } = placeOf(page, { begin, end })
  return page.slice(from, to).trim()
}

/**
 * Replaces the text between the markers of a page, with an empty line on either side.
 * @throws Error for a page without them.
 */
export function withSection(page: string, { begin, end }: Markers, section: string): string {
  const { from, to } = placeOf(page, { begin, end })
  return `${page.slice(0, from)}\n\n${section.trim()}\n\n${page.slice(to)}`
}

function placeOf(page: string, { begin, end }: Markers): { readonly from: number; readonly to: number } {
  const at = page.indexOf(begin)
  const from = at + begin.length
  const to = page.indexOf(end, from)
  if (at === -1 || to === -1) throw new Error(`the page lacks the markers ${begin} and ${end}`)
  return { from, to }
}
