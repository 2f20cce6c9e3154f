import { CAPS } from '../protocol/index.ts'
import { Automaton } from './automaton.ts'
import { formsOf } from './forms.ts'
import { unitsOf } from './unit-reader.ts'

/** Minimum units of a value or piece that is redacted: shorter ones occur everywhere in ordinary output. */
export const MIN_LENGTH: number = CAPS.minSecretChars

/** An automaton without patterns. */
const EMPTY = new Automaton().build()

/** The patterns of all secrets. */
export interface Patterns {
  /** The names of secrets, by owner. */
  readonly names: readonly string[]
  /** Every form of every secret, as units. */
  readonly automaton: Automaton
  /** The same forms in reverse; created on first use, because few texts are cut. */
  readonly backwards: Automaton
  /** Units of the longest form. */
  readonly longest: number
}

/** The patterns of a run without secrets, which is the usual case. */
const NO_PATTERNS: Patterns = { names: [], automaton: EMPTY, backwards: EMPTY, longest: 0 }

/** Returns the patterns of secrets, and the names of those that are too short to search for. */
export function patternsOf(secrets: readonly Readonly<Record<string, string>>[]): {
  patterns: Patterns
  tooShort: string[]
} {
  const entries = secrets.flatMap((named) => Object.entries(named))
  if (entries.length === 0) return { patterns: NO_PATTERNS, tooShort: [] }
  const names: string[] = []
  const tooShort = new Set<string>()
  const forms: Form[] = []
  for (const [name, given] of entries) {
    // A script may strip the value.
    const value = given.trim()
    if (unitsOf(value).length < MIN_LENGTH) {
      tooShort.add(name)
      continue
    }
    const owner = names.push(name) - 1
    forms.push(...formsOf(value).flatMap((units) => (units.length < MIN_LENGTH ? [] : [{ owner, units }])))
  }
  let backwards: Automaton | undefined
  const patterns: Patterns = {
    names,
    automaton: forms.length === 0 ? EMPTY : automatonOf(forms, codesOf),
    get backwards() {
      return (backwards ??= automatonOf(forms, (units) => codesOf(units).toReversed()))
    },
    longest: Math.max(0, ...forms.map(({ units }) => units.length)),
  }
  return { patterns, tooShort: [...tooShort] }
}

interface Form {
  readonly owner: number
  readonly units: string
}

function automatonOf(forms: readonly Form[], codes: (units: string) => number[]): Automaton {
  const automaton = new Automaton()
  for (const { owner, units } of forms) automaton.add(codes(units), owner)
  return automaton.build()
}

/** The text in place of the value of a secret. */
export function markerOf(name: string): string {
  return `[redacted:${name}]`
}

function codesOf(units: string): number[] {
  return Array.from({ length: units.length }, (_, at) => units.charCodeAt(at))
}
