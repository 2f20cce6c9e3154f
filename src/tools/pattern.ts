import { createContext, type Context, Script } from 'node:vm'

/** A regular expression as the schema compiler uses it. */
export interface Pattern {
  test(text: string): boolean
  toString(): string
}

/** What one test of a pattern may take. A sound one takes microseconds. */
const MOST_MS = 200
/** From here on, even a pattern whose time grows with the square of the text can hold the process up. */
const LONG_TEXT = 1000
/**
 * A repeated group, a reference back, or several repetitions without end: the time of these can double with each
 * character, or grow with a high power of their number.
 */
const RISKY = /\)\??[*+{]|\\[1-9k]|(?:[*+]|,\})[^]*(?:[*+]|,\})/

/**
 * Compiles the pattern of a JSON Schema. Most hold with the flag `u`; some old ones (`\-`) do only without. The text
 * comes from a script, which may look for one that the pattern takes hours for: such a test is ended, and the text
 * counts as one that does not match.
 * @throws SyntaxError for a pattern that is none.
 */
export function schemaPattern(source: string, flags: string): Pattern {
  const expression = compiled(source, flags)
  const risky = RISKY.test(source)
  return {
    // The compiler tells patterns apart by this.
    toString: () => String(expression),
    test: (text) => (risky || text.length >= LONG_TEXT ? testWithin(expression, text) : expression.test(text)),
  }
}

function compiled(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags)
  } catch {
    return new RegExp(source)
  }
}

/** Only code that runs as a script of its own can be ended from outside. */
function testWithin(expression: RegExp, text: string): boolean {
  const context = (place ??= createContext({ __proto__: null }))
  try {
    context['work'] = { expression, text }
    return TEST.runInContext(context, { timeout: MOST_MS }) === true
  } catch (error) {
    // The error is of the other context's own class.
    if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false
    throw error
  } finally {
    context['work'] = undefined
  }
}

const TEST = new Script('work.expression.test(work.text)')
/** Making one costs a millisecond; what runs in it is the line above and nothing else. */
let place: Context | undefined
