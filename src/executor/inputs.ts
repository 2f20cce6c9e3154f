import { findHelper, MAX_DEPTH } from '../protocol/index.ts'
import { formatValue, PYTHON_KEYWORDS } from '../support/index.ts'
import { invalid, member } from './invalid.ts'

/** The size limit of all inputs together: a unit for each character, and {@link NODE_UNITS} for each value. */
const MAX_INPUT_UNITS = 32 * 1024 * 1024
const NODE_UNITS = 8
const IDENTIFIER = /^[\p{XID_Start}_]\p{XID_Continue}*$/u

/**
 * Copies the inputs, which JSON must represent without loss. The copy reads getters, proxies and shared parts once.
 * @throws SandglassError `invalid_request` with the path of the value that is not JSON.
 */
export function checkInputs(given: unknown): Record<string, unknown> {
  if (given === undefined) return {}
  if (!isPlainObject(given)) throw invalid('inputs', `${formatValue(given)} is not an object of names and values`)
  const copy = new JsonCopy()
  return Object.fromEntries(
    Object.entries(given).map(([name, value]: [string, unknown]) => {
      const problem = nameProblem(name)
      if (problem !== undefined) throw invalid('inputs', `${formatValue(name)} ${problem}`)
      return [name, copy.of(value, { above: undefined, step: name })]
    }),
  )
}

function nameProblem(name: string): string | undefined {
  if (!IDENTIFIER.test(name)) return 'is not a Python identifier'
  // Python normalizes names to NFKC, so a script could not use a name in another form.
  if (name.normalize('NFKC') !== name) return `is written ${formatValue(name.normalize('NFKC'))} by Python; use that`
  if (PYTHON_KEYWORDS.has(name)) return 'is a keyword of Python'
  if (name.startsWith('__')) return 'is refused: names that start with "__" belong to Python'
  const helper = findHelper(name)
  if (helper !== undefined && helper.when !== 'tools') return `is a ${helper.kind} of every script`
  return undefined
}

/** The place of a value; formatted only when a message names it. */
interface Place {
  readonly above: Place | undefined
  readonly step: string | number
}

class JsonCopy {
  #units = 0
  readonly #ancestors = new Set<object>()

  of(value: unknown, place: Place): unknown {
    this.#spend(NODE_UNITS + (typeof value === 'string' ? value.length : 0))
    if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
    if (typeof value === 'number') return checkNumber(value, place)
    if (typeof value !== 'object') throw invalid(formatPlace(place), `${formatValue(value)} is not a JSON value`)
    if (this.#ancestors.has(value)) throw invalid(formatPlace(place), 'it contains itself')
    if (this.#ancestors.size >= MAX_DEPTH) throw invalid(formatPlace(place), `nested deeper than ${MAX_DEPTH} levels`)
    this.#ancestors.add(value)
    const copy = Array.isArray(value) ? this.#array(value, place) : this.#object(value, place)
    this.#ancestors.delete(value)
    return copy
  }

  #array(value: readonly unknown[], place: Place): unknown[] {
    // Array.from also visits holes, as undefined.
    return Array.from(value, (item, index) => this.of(item, { above: place, step: index }))
  }

  #object(value: object, place: Place): Record<string, unknown> {
    if (!isPlainObject(value))
      throw invalid(formatPlace(place), `an instance of ${className(value)} is not a JSON value`)
    const entries = Object.entries(value).map(([key, item]: [string, unknown]): [string, unknown] => {
      this.#spend(key.length)
      return [key, this.of(item, { above: place, step: key })]
    })
    // fromEntries defines own properties, so that a key `__proto__` stays data.
    return Object.fromEntries(entries)
  }

  /** Counts the size of the copy, because a small graph of shared parts can expand without limit. */
  #spend(units: number): void {
    this.#units += units
    if (this.#units > MAX_INPUT_UNITS) {
      throw invalid(
        'inputs',
        'they are too large (at most 32 MiB, where each value counts 8 bytes and its text); pass a file instead',
      )
    }
  }
}

function formatPlace({ above, step }: Place): string {
  const path = above === undefined ? 'inputs' : formatPlace(above)
  return typeof step === 'number' ? `${path}[${step}]` : member(path, step)
}

function checkNumber(value: number, place: Place): number {
  if (!Number.isFinite(value)) throw invalid(formatPlace(place), `${value} is not a JSON value`)
  // From 1e21 on JSON writes an exponent, which Python reads as the same float.
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21) {
    throw invalid(
      formatPlace(place),
      `${value} is an integer beyond 2^53, which JSON does not carry exactly; pass it as a string`,
    )
  }
  return value
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // Plain objects of another realm have a prototype whose own prototype is null.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function className(value: object): string {
  const { constructor } = value as { constructor?: unknown }
  return typeof constructor === 'function' ? constructor.name : 'a class'
}
