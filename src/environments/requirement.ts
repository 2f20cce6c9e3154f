import { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'

/** One requirement, such as `pandas[excel]>=2; python_version >= "3.11"`, in its normal form. */
export interface Requirement {
  /** The name of the package in its normal form (PEP 503): lower case, `-` between the parts. */
  readonly name: string
  /** The complete requirement with normal name, sorted extras and specifiers, and single spaces. */
  readonly text: string
}

/** The maximum number of requirements in one set. */
export const MAX_REQUIREMENTS = 256
const MAX_CHARS = 500

const NAME = /[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?/y
const EXTRAS = /\s*\[([A-Za-z0-9._\-, ]{0,300})\]/y
const SPECIFIER = /\s*(~=|===|==|!=|<=|>=|<|>)\s*([A-Za-z0-9.!+*_-]{1,100})/y
const COMMA = /\s*,/y
const SEMICOLON = /\s*;\s*/y
const MARKER_TOKEN =
  /\s*(?:(python_version|python_full_version|os_name|sys_platform|platform_release|platform_system|platform_version|platform_machine|platform_python_implementation|implementation_name|implementation_version|extra)\b|('[^'"\\]{0,100}'|"[^'"\\]{0,100}")|(~=|===|==|!=|<=|>=|<|>)|(and|or|not|in)\b|([()]))/y
const END = /\s*$/y

/** True for a text that can be the name of a package. */
export function isPackageName(text: string): boolean {
  NAME.lastIndex = 0
  return NAME.exec(text)?.[0] === text
}

/** The name of a package in its normal form (PEP 503). */
export function normalName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, '-')
}

/**
 * Reads a list of requirements; the result is sorted and has no duplicates.
 * @param where the option or the file that they come from, for messages.
 * @throws SandglassError `dependency_invalid`, naming the requirement and the reason.
 */
export function parseRequirements(given: unknown, where = 'dependencies'): readonly Requirement[] {
  if (!Array.isArray(given)) throw invalid(`${where}: ${formatValue(given)} is not a list of requirements`)
  assertMaxRequirements(given, where)
  const all = new Map<string, Requirement>()
  for (const one of given) {
    const requirement = parseRequirement(one, where)
    all.set(requirement.text, requirement)
  }
  return [...all.values()].toSorted((a, b) => (a.text < b.text ? -1 : 1))
}

/** @throws SandglassError `dependency_invalid` for more requirements than one set can have. */
export function assertMaxRequirements(requirements: readonly unknown[], where: string): void {
  const { length } = requirements
  if (length <= MAX_REQUIREMENTS) return
  throw invalid(`${where}: ${length} requirements; the limit is ${MAX_REQUIREMENTS}`)
}

/**
 * Reads one requirement in the strict form `name[extras]specifiers; marker` of PEP 508. Options, paths and URLs are
 * rejected.
 * @throws SandglassError `dependency_invalid`.
 */
export function parseRequirement(given: unknown, where = 'dependencies'): Requirement {
  if (typeof given !== 'string') throw invalid(`${where}: ${formatValue(given)} is not a string`)
  const kind = describeNonRequirement(given)
  if (kind !== undefined) throw invalid(`${where}: ${formatValue(given)} is ${kind}; ${FORM}`)
  const reader = new Reader(given.trim())
  const name = reader.take(NAME)?.[0]
  if (name === undefined)
    throw invalid(`${where}: ${formatValue(given)} does not begin with the name of a package; ${FORM}`)
  const extras = (reader.take(EXTRAS)?.[1] ?? '')
    .split(',')
    .flatMap((extra) => (extra.trim() === '' ? [] : normalName(extra.trim())))
  const specifiers = readSpecifiers(reader)
  const marker = readMarker(reader)
  if (specifiers === undefined || marker === undefined || reader.take(END) === undefined) {
    throw invalid(`${where}: ${formatValue(given)} cannot be parsed from ${formatValue(reader.rest)} on; ${FORM}`)
  }
  const extrasText = extras.length === 0 ? '' : `[${extras.toSorted().join(',')}]`
  return {
    name: normalName(name),
    text: `${normalName(name)}${extrasText}${specifiers.toSorted().join(',')}${marker === '' ? '' : `; ${marker}`}`,
  }
}

const FORM = 'write name[extras]version; marker, such as "pandas>=2"'

/** Describes a text that is obviously not a requirement; undefined for any other. */
function describeNonRequirement(text: string): string | undefined {
  if (text.length > MAX_CHARS) return `longer than ${MAX_CHARS} characters`
  if (/[\r\n]/.test(text)) return 'more than one line'
  if (/[^\x20-\x7e\t]/.test(text)) return 'not plain ASCII, which all names of packages are'
  if (/^\s*-/.test(text)) return 'an option, not a requirement'
  if (/:\/\/|\s@|^[^;]*@/.test(text)) return 'a URL, which can name any file'
  if (/^\s*(?:\.|\/|~|[A-Za-z]:[\\/])|[\\/]|\.(?:whl|zip|tar\.gz|tar\.bz2|tgz|txt|toml)\s*$/i.test(text))
    return 'a path, not a requirement'
  return undefined
}

function readSpecifiers(reader: Reader): string[] | undefined {
  const specifiers: string[] = []
  for (let found = reader.take(SPECIFIER); found !== undefined; found = reader.take(SPECIFIER)) {
    specifiers.push(`${found[1]}${found[2]}`)
    if (reader.take(COMMA) === undefined) return specifiers
  }
  return specifiers.length === 0 ? specifiers : undefined
}

/** The tokens of a marker with single spaces; empty without a marker. uv checks their order. */
function readMarker(reader: Reader): string | undefined {
  if (reader.take(SEMICOLON) === undefined) return ''
  const tokens: string[] = []
  for (let found = reader.take(MARKER_TOKEN); found !== undefined; found = reader.take(MARKER_TOKEN))
    tokens.push(found[0].trim())
  return tokens.length === 0 ? undefined : tokens.join(' ')
}

/** Reads a text from its beginning, one pattern at a time. */
class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get rest(): string {
    return this.#text.slice(this.#at)
  }

  /** Matches a pattern at the current position and moves past the match; undefined if it does not match. */
  take(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.#at
    const found = sticky.exec(this.#text)
    if (found === null) return undefined
    this.#at = sticky.lastIndex
    return found
  }
}

function invalid(message: string): SandglassError {
  return new SandglassError('dependency_invalid', message)
}
