import { html, type Html } from './html.ts'
import { pythonWords } from './python-words.ts'

/** Lines of Python, each with its words coloured. */
export function pythonHtml(lines: readonly string[], maxMs?: number): Html[] {
  return pythonWords(lines, maxMs).map((words) => {
    const pieces = words.map(({ text, kind }) =>
      kind === undefined ? html`${text}` : html`<span class="py-${kind}">${text}</span>`,
    )
    return html`${pieces}`
  })
}
