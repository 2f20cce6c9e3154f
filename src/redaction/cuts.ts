import { MIN_LENGTH, type Patterns } from './patterns.ts'
import type { Span } from './scanner.ts'
import { readUnits } from './unit-reader.ts'

/** The ends of a text at which a part may be missing. */
export interface Cuts {
  readonly start?: boolean
  readonly end?: boolean
}

/** The text between the head and the tail of a text that the harness truncated. */
const GAP = /\n\.\.\. \d+ characters left out \.\.\.\n/g
const GAP_PART = ' characters left out ...\n'

/** A part of a text without gaps. */
export interface Stretch extends Cuts {
  readonly from: number
  readonly to: number
}

/** The parts of a text between gaps. */
export function splitAtGaps(text: string, { start = false, end = false }: Cuts): Stretch[] {
  if (!text.includes(GAP_PART)) return [{ from: 0, to: text.length, start, end }]
  const found: Stretch[] = []
  let from = 0
  for (const { index, 0: gap } of text.matchAll(GAP)) {
    found.push({ from, to: index, start: found.length > 0 || start, end: true })
    from = index + gap.length
  }
  return [...found, { from, to: text.length, start: found.length > 0 || start, end }]
}

/** Characters of a cut escape that may be left at the start of a text: of `\U0001f600`, `&quot;` or `%2F`. */
const REST_OF_ESCAPE = /^[#\da-z]{0,9};?/i
/** Minimum units of a secret's suffix after such a rest. */
const MIN_BEHIND_REST = 6

/**
 * Finds the longest start of a text that is an end of a secret, for a text whose start was cut. A piece of fewer than 4
 * units is not redacted, because ordinary texts begin with such pieces. The text is read only once, backwards, because a script can
 * forge gaps: 1 MiB holds 20,000.
 */
export function findEndOfSecret(text: string, { backwards, longest }: Patterns): Span | undefined {
  const rest = REST_OF_ESCAPE.exec(text)?.[0].length ?? 0
  const { units, ends } = readUnits(text, 0, rest + longest)
  let best: Span | undefined
  let state = 0
  for (let at = units.length - 1; at >= 0; at -= 1) {
    state = backwards.step(state, units.charCodeAt(at))
    // Each character of the rest is a separate unit.
    if (at > rest) continue
    // Only incomplete forms: the scanner finds complete ones.
    const piece = backwards.open(state)
    const length = backwards.depth(piece)
    if (length < (at === 0 ? MIN_LENGTH : MIN_BEHIND_REST)) continue
    const end = ends[at + length - 1] ?? 0
    if (best === undefined || end >= best.end) best = { owner: backwards.ownerAhead(piece), length, start: 0, end }
  }
  return best
}
