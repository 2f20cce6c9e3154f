import { CAPS } from '../protocol/index.ts'
import { Automaton } from './automaton.ts'
import { formsOf } from './forms.ts'
import { unitsOf } from './unit-reader.ts'

/** Shorter values, and pieces, would be found everywhere, and hiding them would hide the output. */
export const MIN_LENGTH: number = CAPS.minSecretChars

/** Finds nothing. */
const EMPTY = new Automaton().build()

/** The patterns of all secrets. */
export interface Patterns {
  /** The names of secrets, by owner. */
  readonly names: readonly string[]
  /** Every form of every secret, as units. */
  readonly automaton: Automaton
  /** The same forms, read backwards; made on first use, since few texts were cut. */
  readonly backwards: Automaton
  /** Units of the longest form. */
  readonly longest: number
}

/** Most runs have no secret. */
const NO_PATTERNS: Patterns = { names: [], automaton: EMPTY, backwards: EMPTY, longest: 0 }

/** Splits secrets into what can be looked for and the names of what cannot. */
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
    // A script may strip it.
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
