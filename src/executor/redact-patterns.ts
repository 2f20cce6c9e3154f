import { CAPS } from '../protocol/index.ts'
import { overlap } from './overlap.ts'
import { formsOf } from './redact-forms.ts'

/** Shorter values, and pieces, would be found everywhere, and hiding them would hide the output. */
export const MIN_LENGTH: number = CAPS.secret

/** One way in which the value of a secret may be written. */
export interface Pattern {
  readonly name: string
  readonly text: string
}

/** A stretch of a text that shows secrets; overlapping ones are one. */
export interface Span {
  readonly name: string
  /** Of the longest that it was joined from, the one that is named. */
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
    for (const text of formsOf(value)) {
      if (text.length >= MIN_LENGTH && !found.has(text)) found.set(text, { name, text })
    }
  }
  return { patterns: [...found.values()].toSorted((a, b) => b.text.length - a.text.length), tooShort }
}

/** What stands for the value of a secret. */
export function markerOf(name: string): string {
  return `[redacted:${name}]`
}

/** A whole text with secrets replaced, and with what else of it is known to show some. */
export function redactAll(text: string, patterns: readonly Pattern[], known: readonly Span[]): string {
  return replaced(text, findSpans(text, patterns, known), text.length)
}

/**
 * The part of a text that later text cannot change, with secrets replaced, and the rest, which may be the beginning of
 * one.
 */
export function redactUpTo(text: string, patterns: readonly Pattern[]): { safe: string; held: string } {
  const spans = findSpans(text, patterns, [])
  let cut = firstPossibleStart(text, patterns)
  for (const span of spans) if (span.start < cut && cut < span.end) cut = span.start
  return { safe: replaced(text, spans, cut), held: text.slice(cut) }
}

/** The beginning of a text, up to a cut that is in no span. */
function replaced(text: string, spans: readonly Span[], cut: number): string {
  let safe = ''
  let from = 0
  for (const span of spans) {
    if (span.start >= cut) break
    safe += text.slice(from, span.start) + markerOf(span.name)
    from = span.end
  }
  return safe + text.slice(from, cut)
}

/**
 * Where secrets stand, in order. Overlaps are merged and named after the longest: replacing one of two that overlap
 * would leave a piece of the other.
 */
function findSpans(text: string, patterns: readonly Pattern[], known: readonly Span[]): Span[] {
  const spans = [...patterns.flatMap((pattern) => occurrences(text, pattern)), ...known]
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
  const last = text.slice(-1)
  let longest = 0
  for (const { text: wanted } of patterns) {
    // Output mostly ends with a line, and most secrets hold no line break: they need no closer look.
    if (last === '' || !wanted.includes(last)) continue
    longest = Math.max(longest, startAtEnd(text, wanted))
  }
  return text.length - longest
}

/** Places that are tried one by one; a text that has more of them repeats itself. */
const TRIES = 16

/** The length of the longest end of the text that is a proper beginning of what is wanted. */
function startAtEnd(text: string, wanted: string): number {
  const from = Math.max(0, text.length - wanted.length + 1)
  let at = text.indexOf(wanted.charAt(0), from)
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (at === -1) return 0
    if (isStartOf(text, at, wanted)) return text.length - at
    at = text.indexOf(wanted.charAt(0), at + 1)
  }
  return at === -1 ? 0 : overlap(text.slice(at), wanted)
}

/** Whether the text goes on from here as what is wanted begins. */
function isStartOf(text: string, from: number, wanted: string): boolean {
  for (let at = from; at < text.length; at += 1) {
    if (text.charCodeAt(at) !== wanted.charCodeAt(at - from)) return false
  }
  return true
}
