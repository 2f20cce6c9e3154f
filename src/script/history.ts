import { truncateMiddle } from '../support/index.ts'

/** An item that a step of INTERACTIVE mode emitted for later steps. */
export interface CollectedItem {
  readonly step: number
  readonly label: string
  readonly data: unknown
}

const MAX_CHARS = 24_000
/** Minimum length to which an item is cut, if there are too many items. */
const MIN_ITEM_CHARS = 200
const MAX_LABEL = 100

/**
 * The data of earlier steps for a prompt: one line of JSON for each item, labelled by step. It cannot close the paragraph
 * or fence that contains it. If the text is too long, the longest items are cut in the middle; the oldest items are left
 * out only if the cut items do not fit. A line reports what was cut.
 */
export function historyText(collected: readonly CollectedItem[], maxChars: number = MAX_CHARS): string {
  const lines = collected.map(
    ({ step, label, data }) => `step ${step}, ${inertJson(truncateMiddle(label, MAX_LABEL))}: ${inertJson(data)}`,
  )
  const from = firstThatFits(lines, maxChars)
  const kept = lines.slice(from)
  const share = fairShare(
    kept.map(({ length }) => length),
    maxChars,
  )
  const left = from === 0 ? [] : [`(${from} earlier items are not shown; collected has them all)`]
  const cut = kept.filter(({ length }) => length > share).length
  const shown =
    cut === 0
      ? []
      : [`(${cut} long ${cut === 1 ? 'item is' : 'items are'} cut in the middle; collected has them whole)`]
  return [...left, ...shown, ...kept.map((line) => truncateMiddle(line, share))].join('\n')
}

function firstThatFits(lines: readonly string[], max: number): number {
  let length = 0
  let from = lines.length
  while (from > 0) {
    length += Math.min(lines[from - 1]?.length ?? 0, MIN_ITEM_CHARS)
    if (length > max) break
    from -= 1
  }
  return from
}

/** Returns the maximum length of each item, so that long items share the room that short items leave. */
function fairShare(lengths: readonly number[], max: number): number {
  let left = max
  const sorted = lengths.toSorted((a, b) => a - b)
  for (const [index, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index))
    if (length > share) return share
    left -= length
  }
  return Number.POSITIVE_INFINITY
}

/** JSON without characters that could end a line or a fence. */
export function inertJson(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replaceAll(/[\u2028\u2029`\u0085]/g, (character) =>
    character === '`' ? '\\u0060' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
