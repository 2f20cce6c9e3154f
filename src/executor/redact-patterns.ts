/** Shorter values would be found everywhere, and hiding them would hide the output. */
const MIN_LENGTH = 4

/** One way in which the value of a secret may be written. */
export interface Pattern {
  readonly name: string
  readonly text: string
}

/** A stretch of a text that shows secrets; overlapping ones are one. */
interface Span {
  readonly name: string
  readonly length: number
  readonly start: number
  readonly end: number
}

/** Splits secrets into what can be looked for and the names of what cannot. */
export function patternsOf(secrets: Readonly<Record<string, string>>): { patterns: Pattern[]; tooShort: string[] } {
  const found = new Map<string, Pattern>()
  const tooShort: string[] = []
  for (const [name, value] of Object.entries(secrets)) {
    if (value.length < MIN_LENGTH) {
      tooShort.push(name)
      continue
    }
    // The second is how JSON and Python's repr write line breaks, quotes and backslashes.
    for (const text of [value, JSON.stringify(value).slice(1, -1)]) {
      if (!found.has(text)) found.set(text, { name, text })
    }
  }
  return { patterns: [...found.values()].toSorted((a, b) => b.text.length - a.text.length), tooShort }
}

/**
 * The part of a text that later text cannot change, with secrets replaced, and the rest, which may be the beginning of
 * one. `final` keeps nothing back.
 */
export function redactUpTo(text: string, patterns: readonly Pattern[], final: boolean): { safe: string; held: string } {
  const spans = findSpans(text, patterns)
  let cut = final ? text.length : firstPossibleStart(text, patterns)
  for (const span of spans) if (span.start < cut && cut < span.end) cut = span.start
  let safe = ''
  let from = 0
  for (const span of spans) {
    if (span.start >= cut) break
    safe += `${text.slice(from, span.start)}[redacted:${span.name}]`
    from = span.end
  }
  return { safe: safe + text.slice(from, cut), held: text.slice(cut) }
}

/**
 * Where secrets stand, in order. Overlaps are merged and named after the longest: replacing one of two that overlap
 * would leave a piece of the other.
 */
function findSpans(text: string, patterns: readonly Pattern[]): Span[] {
  const spans = patterns.flatMap((pattern) => occurrences(text, pattern))
  const merged: Span[] = []
  for (const span of spans.toSorted((a, b) => a.start - b.start || b.length - a.length)) {
    const last = merged.at(-1)
    if (last === undefined || span.start >= last.end) merged.push(span)
    else merged[merged.length - 1] = joined(last, span)
  }
  return merged
}

function occurrences(text: string, { name, text: wanted }: Pattern): Span[] {
  const spans: Span[] = []
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    const span = { name, length: wanted.length, start: at, end: at + wanted.length }
    const last = spans.at(-1)
    if (last === undefined || at >= last.end) spans.push(span)
    else spans[spans.length - 1] = joined(last, span)
  }
  return spans
}

function joined(a: Span, b: Span): Span {
  const { name, length } = b.length > a.length ? b : a
  return { name, length, start: a.start, end: Math.max(a.end, b.end) }
}

/** The first place from which the text could go on to become a secret; its length when there is none. */
function firstPossibleStart(text: string, patterns: readonly Pattern[]): number {
  let first = text.length
  for (const { text: wanted } of patterns) {
    const head = wanted.slice(0, 1)
    let at = text.indexOf(head, Math.max(0, text.length - wanted.length + 1))
    while (at !== -1 && at < first && !wanted.startsWith(text.slice(at))) at = text.indexOf(head, at + 1)
    if (at !== -1) first = Math.min(first, at)
  }
  return first
}
