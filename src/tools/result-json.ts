import { types } from 'node:util'
import { CAPS } from '../protocol/index.ts'
import { ToolCallError } from './tool-error.ts'

/** Maximum bytes of one answer, as JSON. */
export const MAX_RESULT_BYTES: number = CAPS.answerBytes
const MAX_DEPTH = 199
/**
 * The cost of each value in addition to its text: a value takes far more memory than its bytes, and a small graph of shared
 * parts must not expand without limit.
 */
const NODE_BYTES = 16
const MAX_STEP = 80

/**
 * The answer of a tool as JSON text: dates as ISO text, bytes as base64, maps as objects, sets as lists,
 * with `toJSON` called and `undefined` as null (left out of objects). Other values are refused, never changed silently.
 * @throws ToolCallError `invalid_result`, naming the place, for a value that JSON cannot represent; `result_too_large`.
 */
export function resultJson(tool: string, value: unknown): string {
  let plain: unknown
  try {
    plain = new PlainCopy().of(value, { above: undefined, step: '$' })
  } catch (error) {
    const known = asUnsendable(error)
    if (known !== undefined) throw new ToolCallError(known.code, `${tool}: ${known.message}`)
    // A getter, a toJSON or a proxy threw.
    throw new ToolCallError('invalid_result', `${tool}: the answer cannot be read: ${textOfThrown(error)}`, {
      cause: error,
    })
  }
  const text = JSON.stringify(plain)
  if (text.length > MAX_RESULT_BYTES || Buffer.byteLength(text) > MAX_RESULT_BYTES) {
    throw new ToolCallError('result_too_large', `${tool}: ${makeTooLargeMessage()}`)
  }
  return text
}

class Unsendable extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** `Array.isArray` throws for a revoked proxy. */
function asUnsendable(thrown: unknown): Unsendable | undefined {
  try {
    return thrown instanceof Unsendable ? thrown : undefined
  } catch {
    return undefined
  }
}

/** The place of a value; written only when a message names it. */
interface Place {
  readonly above: Place | undefined
  readonly step: string | number
}

function placeText({ above, step }: Place): string {
  if (above === undefined) return String(step)
  return `${placeText(above)}${typeof step === 'number' ? `[${step}]` : `.${step.slice(0, MAX_STEP)}`}`
}

class PlainCopy {
  #bytes = 0
  readonly #ancestors = new Set<object>()

  of(value: unknown, place: Place): unknown {
    this.#spend(NODE_BYTES)
    switch (typeof value) {
      case 'string':
        this.#spend(value.length)
        return value
      case 'boolean':
        return value
      case 'undefined':
        return null
      case 'number':
        return checkedNumber(value, place)
      case 'bigint':
        if (value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER) return Number(value)
        throw new Unsendable(
          'invalid_result',
          `${placeText(place)}: an integer beyond 2^53 cannot be sent; return it as text`,
        )
      case 'object':
        return value === null ? null : this.#object(value, place)
      case 'function':
      case 'symbol':
        throw new Unsendable('invalid_result', `${placeText(place)}: a ${typeof value} cannot be sent as JSON`)
    }
  }

  #object(value: object, place: Place): unknown {
    if (this.#ancestors.has(value))
      throw new Unsendable('invalid_result', `${placeText(place)}: the answer contains itself`)
    if (this.#ancestors.size >= MAX_DEPTH) {
      throw new Unsendable('invalid_result', `${placeText(place)}: nested deeper than ${MAX_DEPTH} levels`)
    }
    this.#ancestors.add(value)
    const plain = this.#unfold(value, place)
    this.#ancestors.delete(value)
    return plain
  }

  #unfold(value: object, place: Place): unknown {
    if (ArrayBuffer.isView(value)) return this.#bytesOf(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
    if (types.isAnyArrayBuffer(value)) return this.#bytesOf(Buffer.from(value))
    if (value instanceof Date) {
      if (Number.isNaN(value.getTime()))
        throw new Unsendable('invalid_result', `${placeText(place)}: the date is not valid`)
      return value.toISOString()
    }
    if (value instanceof Error) {
      throw new Unsendable(
        'invalid_result',
        `${placeText(place)}: an Error is not an answer; throw it, so that the script gets a ToolError`,
      )
    }
    if (types.isBoxedPrimitive(value)) return this.of(value.valueOf(), place)
    const refusal = REFUSED.find(({ is }) => is(value))
    if (refusal !== undefined) throw new Unsendable('invalid_result', `${placeText(place)}: ${refusal.why}`)
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      const made: unknown = (value as { toJSON(key: string): unknown }).toJSON('')
      return made === value ? this.#fields(value, place) : this.of(made, place)
    }
    if (Array.isArray(value)) return this.#list(value, value.length, place)
    if (value instanceof Set) return this.#list(value, value.size, place)
    if (value instanceof Map) return this.#entries(value, place)
    return this.#fields(value, place)
  }

  #bytesOf(bytes: Buffer): string {
    this.#spend(Math.ceil(bytes.length / 3) * 4)
    return bytes.toString('base64')
  }

  #list(values: Iterable<unknown>, size: number, place: Place): unknown[] {
    this.#spend(size) // for the commas; also detects a list that is too long before it is copied
    const list: unknown[] = []
    for (const value of values) list.push(this.of(value, { above: place, step: list.length }))
    return list
  }

  #entries(map: ReadonlyMap<unknown, unknown>, place: Place): object {
    const fields: [string, unknown][] = []
    for (const [key, value] of map) {
      if (typeof key !== 'string' && typeof key !== 'number') {
        throw new Unsendable('invalid_result', `${placeText(place)}: a key of a Map must be text`)
      }
      fields.push(this.#field(String(key), value, place))
    }
    return Object.fromEntries(fields)
  }

  #fields(value: object, place: Place): object {
    const fields: [string, unknown][] = []
    for (const key of Object.keys(value)) {
      const field = (value as Record<string, unknown>)[key]
      if (field !== undefined) fields.push(this.#field(key, field, place))
    }
    // fromEntries defines own properties, so that a key `__proto__` stays data.
    return Object.fromEntries(fields)
  }

  #field(key: string, value: unknown, place: Place): [string, unknown] {
    this.#spend(key.length)
    return [key, this.of(value, { above: place, step: key })]
  }

  #spend(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_RESULT_BYTES) throw new Unsendable('result_too_large', makeTooLargeMessage())
  }
}

/** Objects with content but no fields: as JSON they would be `{}`. */
const REFUSED: readonly { readonly is: (value: unknown) => boolean; readonly why: string }[] = [
  { is: types.isPromise, why: 'a Promise cannot be sent as JSON; await it' },
  { is: types.isRegExp, why: 'a RegExp cannot be sent as JSON; answer with its source' },
  { is: types.isGeneratorObject, why: 'a generator cannot be sent as JSON; answer with a list' },
  { is: types.isWeakMap, why: 'a WeakMap cannot be sent as JSON' },
  { is: types.isWeakSet, why: 'a WeakSet cannot be sent as JSON' },
]

/** The text of any thrown value, even of one that cannot be read. */
function textOfThrown(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : `it threw ${String(thrown)}`
  } catch {
    return 'it threw something that cannot be read'
  }
}

function checkedNumber(value: number, place: Place): number {
  if (!Number.isFinite(value))
    throw new Unsendable('invalid_result', `${placeText(place)}: ${value} is not a JSON number; return null instead`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21) {
    throw new Unsendable(
      'invalid_result',
      `${placeText(place)}: an integer beyond 2^53 has already lost digits; return it as text`,
    )
  }
  return value
}

function makeTooLargeMessage(): string {
  return `the answer has more than ${MAX_RESULT_BYTES} bytes, or a million values; return less, or page by page`
}
