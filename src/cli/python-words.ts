import { highlightTree, tagHighlighter, tags } from '@lezer/highlight'
import { parser } from '@lezer/python'

/** A script that takes longer to parse gets no colours: some hostile scripts take a millisecond for ten characters. */
const MAX_MS = 300

/** The kinds of words that are coloured. */
export type PythonKind = 'word' | 'text' | 'number' | 'comment' | 'name'

const HIGHLIGHTER = tagHighlighter([
  { tag: [tags.keyword, tags.bool, tags.null], class: 'word' },
  { tag: [tags.string, tags.special(tags.string)], class: 'text' },
  { tag: tags.number, class: 'number' },
  { tag: tags.comment, class: 'comment' },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    class: 'name',
  },
])

type Tree = NonNullable<ReturnType<ReturnType<typeof parser.startParse>['advance']>>

/** A piece of a line. */
export interface PythonWord {
  readonly text: string
  /** Undefined for plain text. */
  readonly kind: PythonKind | undefined
}

/** Splits lines of Python into words, each with its kind. */
export function pythonWords(lines: readonly string[], maxMs: number = MAX_MS): PythonWord[][] {
  const text = lines.join('\n')
  const made: PythonWord[][] = [[]]
  const add = (piece: string, kind: PythonKind | undefined): void => {
    for (const [index, part] of piece.split('\n').entries()) {
      if (index > 0) made.push([])
      if (part !== '') made.at(-1)?.push({ text: part, kind })
    }
  }
  let end = 0
  const tree = parseWithin(text, maxMs)
  if (tree !== undefined) {
    highlightTree(tree, HIGHLIGHTER, (from, to, kind) => {
      add(text.slice(end, from), undefined)
      add(text.slice(from, to), kind as PythonKind)
      end = to
    })
  }
  add(text.slice(end), undefined)
  return made
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
