/** What a step of INTERACTIVE mode handed on. */
export interface CollectedItem {
  readonly step: number
  readonly label: string
  readonly data: unknown
}

const MOST = 24_000
/** Characters that an item has at least, where there are too many for all of them. */
const LEAST = 200
const MAX_LABEL = 100

/**
 * What earlier steps collected, labelled by step, as a prompt shows it: one JSON text a line. It is data, so it cannot
 * end the paragraph or fence that it stands in. Where all of it is too long, the longest items are cut, head and tail,
 * and the oldest are left out only when not even the heads would fit.
 */
export function historyText(collected: readonly CollectedItem[], most: number = MOST): string {
  const lines = collected.map(({ step, label, data }) => `step ${step}, ${json(cut(label, MAX_LABEL))}: ${json(data)}`)
  const from = firstThatFits(lines, most)
  const kept = lines.slice(from)
  const share = fairShare(
    kept.map(({ length }) => length),
    most,
  )
  const left = from === 0 ? [] : [`(${from} earlier items are not shown; collected has them all)`]
  return [...left, ...kept.map((line) => cut(line, share))].join('\n')
}

function firstThatFits(lines: readonly string[], most: number): number {
  let length = 0
  let from = lines.length
  while (from > 0) {
    length += Math.min(lines[from - 1]?.length ?? 0, LEAST)
    if (length > most) break
    from -= 1
  }
  return from
}

/** The greatest length that each may have, so that what short ones leave is the long ones'. */
function fairShare(lengths: readonly number[], most: number): number {
  let left = most
  const sorted = lengths.toSorted((a, b) => a - b)
  for (const [index, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index))
    if (length > share) return share
    left -= length
  }
  return Number.POSITIVE_INFINITY
}

/** JSON without characters that end a line or a fence. */
export function json(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replaceAll(/[\u2028\u2029`\u0085]/g, (character) =>
    character === '`' ? '\\u0060' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Head and tail of a text that is too long. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  const left = text.length - 2 * half
  return `${text.slice(0, half).toWellFormed()} … ${left} characters left out … ${text.slice(-half).toWellFormed()}`
}
