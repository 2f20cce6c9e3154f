import { overlap } from './overlap.ts'
import { MIN_LENGTH, type Pattern, type Span } from './redact-patterns.ts'

/** At which of its ends a text may have lost a part. */
export interface Cuts {
  readonly start?: boolean
  readonly end?: boolean
}

/** What the harness puts between the head and the tail of a text that is too long. */
const GAP = /\n\.\.\. \d+ characters left out \.\.\.\n/g
const GAP_PART = ' characters left out ...\n'

/** A part of a text without gaps. */
interface Stretch extends Cuts {
  readonly from: number
  readonly to: number
}

/**
 * The pieces of secrets that cuts left over. Where the end of a text was cut, that is the longest end that is a
 * beginning of a secret; where its start was cut, the longest start that is an end of one; at a gap, both. A piece of
 * fewer than 4 characters stays, so that ordinary ends do, and so does every piece elsewhere: text that merely looks
 * like a part of a secret is none.
 */
export function pieces(text: string, patterns: readonly Pattern[], cuts: Cuts): Span[] {
  return stretches(text, cuts).flatMap((stretch) => patterns.flatMap((pattern) => piecesIn(text, stretch, pattern)))
}

function stretches(text: string, { start = false, end = false }: Cuts): Stretch[] {
  const found: Stretch[] = []
  let from = 0
  if (text.includes(GAP_PART)) {
    for (const { index, 0: gap } of text.matchAll(GAP)) {
      found.push({ from, to: index, start: found.length > 0 || start, end: true })
      from = index + gap.length
    }
  }
  const last = { from, to: text.length, start: found.length > 0 || start, end }
  return last.start || last.end ? [...found, last] : found
}

function piecesIn(text: string, { from, to, start, end }: Stretch, { name, text: wanted }: Pattern): Span[] {
  const spans: Span[] = []
  // One character less than the whole: a whole one is found without this.
  const most = Math.min(to - from, wanted.length - 1)
  const before = end === true ? overlap(text.slice(to - most, to), wanted) : 0
  if (before >= MIN_LENGTH) spans.push({ name, length: before, start: to - before, end: to })
  const after = start === true ? overlap(wanted.slice(wanted.length - most), text.slice(from, from + most)) : 0
  if (after >= MIN_LENGTH) spans.push({ name, length: after, start: from, end: from + after })
  return spans
}
