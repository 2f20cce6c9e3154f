import { parseBounded } from '../support/index.ts'
import { didYouMean, formatValue } from '../support/index.ts'
import { invalid } from './invalid.ts'

/** The files to collect, and what to do with them. */
export interface OutputSpec {
  /** Globs relative to the workspace, with `**` and prefixes such as `$OUTPUT_DIR/`. */
  readonly globs: readonly string[]
  /** Maximum number of files. Default 100. */
  readonly maxFiles?: number
  /** Maximum bytes of a file; a longer one is truncated. Default 4 MiB. */
  readonly maxFileBytes?: number
  /** Maximum bytes of all files together. Default 64 MiB. */
  readonly maxTotalBytes?: number
  /** Saves each file as a version of an artifact. Default false. */
  readonly save?: boolean
  /** The prefix of the path in the name of an artifact, such as `report/`. */
  readonly nameTemplate?: string
  /** Returns the text of text files. Default false. */
  readonly inline?: boolean
}

type Field = keyof OutputSpec
type Kind = 'globs' | 'count' | 'flag' | 'text'

/** Each field: its key in snake_case, its key in the style of Go, its kind. */
const FIELDS: readonly (readonly [Field, string, string, Kind])[] = [
  ['globs', 'globs', 'Globs', 'globs'],
  ['maxFiles', 'max_files', 'MaxFiles', 'count'],
  ['maxFileBytes', 'max_file_bytes', 'MaxFileBytes', 'count'],
  ['maxTotalBytes', 'max_total_bytes', 'MaxTotalBytes', 'count'],
  ['save', 'save', 'Save', 'flag'],
  ['nameTemplate', 'name_template', 'NameTemplate', 'text'],
  ['inline', 'inline', 'Inline', 'flag'],
]

const EXPECTED: Readonly<Record<Kind, string>> = {
  globs: 'an array of strings',
  count: 'a whole number from 0',
  flag: 'true or false',
  text: 'a string',
}

/**
 * Reads an output spec from JSON or from a parsed value. Keys are in snake_case (`max_files`), in the style of Go (`MaxFiles`) or
 * the fields themselves (`maxFiles`), in this order of precedence. Null counts as absent.
 * @throws SandglassError `invalid_request` naming the key.
 */
export function outputSpecFromJson(json: unknown): OutputSpec {
  const given = typeof json === 'string' ? parse(json) : json
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid('output spec', `${formatValue(given)} is not an object`)
  const known = new Set(FIELDS.flatMap(([field, snake, go]) => [field, snake, go]))
  const unknown = Object.keys(given).find((key) => !known.has(key))
  if (unknown !== undefined)
    throw invalid('output spec', `unknown key ${formatValue(unknown)}.${didYouMean(unknown, [...known])}`)
  const values = FIELDS.map(([field, snake, go, kind]) => {
    const key = [snake, go, field].find((name) => Object.hasOwn(given, name)) ?? snake
    return [field, checkValue(key, (given as Record<string, unknown>)[key] ?? undefined, kind)] as const
  })
  return { globs: [], ...Object.fromEntries(values.filter(([, value]) => value !== undefined)) }
}

function parse(json: string): unknown {
  try {
    return parseBounded(json)
  } catch (error) {
    throw invalid('output spec', `it is not JSON: ${(error as Error).message}`)
  }
}

function checkValue(key: string, value: unknown, kind: Kind): unknown {
  if (value === undefined || IS[kind](value)) return value
  throw invalid(`output spec, ${key}`, `${formatValue(value)} is not ${EXPECTED[kind]}`)
}

const IS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  globs: (value) => Array.isArray(value) && value.every((glob) => typeof glob === 'string'),
  count: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  flag: (value) => typeof value === 'boolean',
  text: (value) => typeof value === 'string',
}
