import { SandglassError } from '../errors/index.ts'

const SPECIFIER = /^(~=|==|!=|<=|>=|<|>)\s*(\d{1,6}(?:\.\d{1,6}){0,5})(\.\*)?$/
const FIELD = 'requires-python of the script (# /// script)'

/**
 * Compares the `requires-python` of a script with the Python version of its sandbox, by the rules of PEP 440 for releases.
 * @param specifiers such as `>=3.10,<4`.
 * @param python such as `3.12.4`.
 * @throws SandglassError `dependency_conflict` if they do not match, `dependency_invalid` if `specifiers` is not a list of version specifiers.
 */
export function assertPython(specifiers: string, python: string): void {
  const actual = releaseOf(/^\d+(?:\.\d+)*/.exec(python)?.[0] ?? '')
  for (const one of specifiers.split(',').map((text) => text.trim())) {
    const [, operator = '', version = '', wildcard] = SPECIFIER.exec(one) ?? []
    const isPair = operator === '==' || operator === '!='
    const wanted = releaseOf(version)
    if (operator === '' || (wildcard !== undefined && !isPair) || (operator === '~=' && wanted.length < 2)) {
      throw new SandglassError(
        'dependency_invalid',
        `${FIELD}: ${JSON.stringify(one.slice(0, 100))} is not a version specifier: write it like ">=3.10" or "==3.12.*"`,
      )
    }
    if (isMet(operator, actual, wanted, wildcard !== undefined)) continue
    throw new SandglassError(
      'dependency_conflict',
      `${FIELD} is ${specifiers.slice(0, 100)}, and the sandbox has Python ${python}: change the script, or choose another Python (docs/engines.md)`,
    )
  }
}

function isMet(operator: string, actual: readonly number[], wanted: readonly number[], isPrefix: boolean): boolean {
  const order = compare(isPrefix ? actual.slice(0, wanted.length) : actual, wanted)
  switch (operator) {
    case '==':
      return order === 0
    case '!=':
      return order !== 0
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
    default: // ~=
      return order >= 0 && compare(actual.slice(0, wanted.length - 1), wanted.slice(0, -1)) === 0
  }
}

/** Missing parts count as 0. */
function compare(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function releaseOf(version: string): number[] {
  return version.split('.').map(Number)
}
