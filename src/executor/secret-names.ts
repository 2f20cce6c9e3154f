import { invalid, member, shown } from './invalid.ts'

/** What the kernel takes for one variable of an environment: `NAME=value` and its NUL. */
const MAX_VARIABLE_BYTES = 128 * 1024
const MAX_SHOWN_NAMES = 8
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** They make the dynamic loader or the interpreter run or load something else. */
const DANGEROUS = /^(?:LD_|PYTHON)/i

/**
 * The secrets of a request as a plain object that holds own properties only.
 * @throws SandglassError `invalid_request` naming the secret; its value is never part of the message.
 */
export function checkSecrets(given: unknown): Record<string, string> {
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('secrets', `${shown(given)} is no object of names and values`)
  }
  const entries = Object.entries(given).map(([name, value]: [string, unknown]): [string, string] => {
    const problem = nameProblem(name)
    if (problem !== undefined) throw invalid('secrets', `${shown(name)} ${problem}`)
    if (typeof value !== 'string') throw invalid(member('secrets', name), 'its value is no string')
    if (value.includes('\0')) throw invalid(member('secrets', name), 'its value holds a NUL')
    if (!value.isWellFormed()) throw invalid(member('secrets', name), 'its value holds half of a surrogate pair')
    if (name.length + Buffer.byteLength(value) + 2 > MAX_VARIABLE_BYTES) {
      throw invalid(member('secrets', name), `name and value exceed ${MAX_VARIABLE_BYTES} bytes`)
    }
    return [name, value]
  })
  return Object.fromEntries(entries)
}

/**
 * The names that a script requires. Whether they are there is the harness's to say (HA-08).
 * @throws SandglassError `invalid_request` listing every name that is none.
 */
export function checkRequiredSecrets(given: unknown, field = 'requiredSecrets'): string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) throw invalid(field, `${shown(given)} is no array of names`)
  const names: unknown[] = given
  const bad = names.filter((name) => typeof name !== 'string' || nameProblem(name) !== undefined)
  if (bad.length > 0) {
    const list = bad.slice(0, MAX_SHOWN_NAMES).map(shown).join(', ')
    throw invalid(
      field,
      `not usable as names of environment variables: ${list}${bad.length > MAX_SHOWN_NAMES ? ' …' : ''}; ` +
        'a name is letters, digits and "_", does not start with a digit or "__", nor with LD_ or PYTHON',
    )
  }
  return [...new Set(names as string[])]
}

function nameProblem(name: string): string | undefined {
  if (!NAME.test(name)) return 'is no name of an environment variable: letters, digits and "_", no digit first'
  if (name.startsWith('__')) return 'is refused: names that start with "__" are reserved'
  if (DANGEROUS.test(name)) return 'is refused: it changes how programs or Python itself load code'
  return undefined
}
