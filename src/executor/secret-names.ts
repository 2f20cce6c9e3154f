import { formatValue } from '../support/index.ts'
import { invalid, member } from './invalid.ts'

/** The longest environment variable that the kernel accepts: `NAME=value` and its NUL. */
const MAX_VARIABLE_BYTES = 128 * 1024
const MAX_SHOWN_NAMES = 8
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** Variables that make the dynamic loader or the interpreter load other code. */
const DANGEROUS = /^(?:LD_|PYTHON)/i

/**
 * Checks the secrets of a request; returns a plain object with own properties only.
 * @throws SandglassError `invalid_request` naming the secret; its value is never part of the message.
 */
export function checkSecrets(given: unknown): Record<string, string> {
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('secrets', `${formatValue(given)} is not an object of names and values`)
  }
  const entries = Object.entries(given).map(([name, value]: [string, unknown]): [string, string] => {
    const problem = nameProblem(name)
    if (problem !== undefined) throw invalid('secrets', `${formatValue(name)} ${problem}`)
    if (typeof value !== 'string') throw invalid(member('secrets', name), 'its value is not a string')
    if (value.includes('\0')) throw invalid(member('secrets', name), 'its value holds a NUL')
    if (!value.isWellFormed()) throw invalid(member('secrets', name), 'its value holds a lone surrogate')
    if (name.length + Buffer.byteLength(value) + 2 > MAX_VARIABLE_BYTES) {
      throw invalid(member('secrets', name), `name and value exceed ${MAX_VARIABLE_BYTES} bytes`)
    }
    return [name, value]
  })
  return Object.fromEntries(entries)
}

/** Checks further values to redact, by any names. @throws SandglassError `invalid_request` naming the value. */
export function checkHidden(given: unknown): Record<string, string> {
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('hide', `${formatValue(given)} is not an object of names and values`)
  }
  const entries = Object.entries(given).map(([name, value]: [string, unknown]): [string, string] => {
    if (typeof value !== 'string') throw invalid(member('hide', name), 'its value is not a string')
    return [name, value]
  })
  return Object.fromEntries(entries)
}

/**
 * Checks the names of the secrets that a script requires. The harness checks that the secrets exist.
 * @throws SandglassError `invalid_request` listing every invalid name.
 */
export function checkRequiredSecrets(given: unknown, field = 'requiredSecrets'): string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) throw invalid(field, `${formatValue(given)} is not an array of names`)
  const names: unknown[] = given
  const bad = names.filter((name) => typeof name !== 'string' || nameProblem(name) !== undefined)
  if (bad.length > 0) {
    const list = bad
      .slice(0, MAX_SHOWN_NAMES)
      .map((one) => formatValue(one))
      .join(', ')
    throw invalid(
      field,
      `not usable as names of environment variables: ${list}${bad.length > MAX_SHOWN_NAMES ? ' …' : ''}; ` +
        'a name is letters, digits and "_", does not start with a digit or "__", nor with LD_ or PYTHON',
    )
  }
  return [...new Set(names as string[])]
}

function nameProblem(name: string): string | undefined {
  if (!NAME.test(name)) return 'is not a name of an environment variable: letters, digits and "_", no digit first'
  if (name.startsWith('__')) return 'is refused: names that start with "__" are reserved'
  if (DANGEROUS.test(name)) return 'is refused: it changes how programs or Python itself load code'
  return undefined
}
