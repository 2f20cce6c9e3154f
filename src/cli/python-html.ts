import { highlightTree, tagHighlighter, tags } from '@lezer/highlight'
import { parser } from '@lezer/python'
import { html, type Html } from './html.ts'

/** A script that takes longer to parse gets no colours: some hostile scripts take a millisecond for ten characters. */
const MAX_MS = 300

const HIGHLIGHTER = tagHighlighter([
  { tag: [tags.keyword, tags.bool, tags.null], class: 'py-word' },
  { tag: [tags.string, tags.special(tags.string)], class: 'py-text' },
  { tag: tags.number, class: 'py-number' },
  { tag: tags.comment, class: 'py-comment' },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    class: 'py-name',
  },
])

type Tree = NonNullable<ReturnType<ReturnType<typeof parser.startParse>['advance']>>

/** Lines of Python, each with its words coloured. */
export function pythonHtml(lines: readonly string[], maxMs: number = MAX_MS): Html[] {
  const text = lines.join('\n')
  const made: Html[][] = [[]]
  const add = (piece: string, style: string | undefined): void => {
    for (const [index, part] of piece.split('\n').entries()) {
      if (index > 0) made.push([])
      if (part !== '')
        made.at(-1)?.push(style === undefined ? html`${part}` : html`<span class="${style}">${part}</span>`)
    }
  }
  let end = 0
  const tree = parseWithin(text, maxMs)
  if (tree !== undefined) {
    highlightTree(tree, HIGHLIGHTER, (from, to, style) => {
      add(text.slice(end, from), undefined)
      add(text.slice(from, to), style)
      end = to
    })
  }
  add(text.slice(end), undefined)
  return made.map((pieces) => html`${pieces}`)
}

function parseWithin(text: string, maxMs: number): Tree | undefined {
  const until = performance.now() + maxMs
  const parse = parser.startParse(text)
  let tree = parse.advance()
  while (tree === null) {
    if (performance.now() >= until) return undefined
    tree = parse.advance()
  }
  return tree
}
