import { createRequire } from 'node:module'
import type * as Ajv7 from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import type * as Ajv2020 from 'ajv/dist/2020.js'
import type formatsPlugin from 'ajv-formats'
import { messageOf } from '../errors/index.ts'
import { issueOf } from './schema-errors.ts'
import { isStandardSchema, type JsonSchemaObject, type SchemaResult, type ToolSchema } from './standard-schema.ts'

/** Checks a value: gives it as it is to be used, or says what is wrong with it. */
export type Validator = (value: unknown) => SchemaResult | Promise<SchemaResult>

/**
 * What checks values by a schema; `json` is the same schema as JSON Schema. Schemas of a validation library check by
 * themselves; JSON Schema is compiled here, once.
 * @throws TypeError for JSON Schema that is not sound: a keyword misused, a pattern that is none, a dead `$ref`.
 */
export function validatorOf(schema: ToolSchema, json: JsonSchemaObject): Validator {
  if (isStandardSchema(schema)) return (value) => schema['~standard'].validate(value)
  return jsonSchemaValidator(json)
}

/**
 * Compiles JSON Schema, 2020-12 or draft-07. Values are not coerced and no defaults are filled in.
 * @throws TypeError as {@link validatorOf}.
 */
export function jsonSchemaValidator(schema: JsonSchemaObject): (value: unknown) => SchemaResult {
  const check = compiled(schema)
  return (value) => (check(value) ? { value } : { issues: [issueOf(schema, check.errors ?? [])] })
}

type Draft = '2020-12' | 'draft-07'
interface Compiler {
  compile(schema: object): ValidateFunction
  removeSchema(schema: object): unknown
}

function compiled({ $schema, ...schema }: JsonSchemaObject): ValidateFunction {
  if (schema['$async'] !== undefined) throw new TypeError('has the keyword $async')
  if (typeof $schema === 'string' && /draft-0[4-7]/.test($schema)) return compile('draft-07', schema)
  try {
    return compile('2020-12', schema)
  } catch (error) {
    if ($schema !== undefined) throw error
    // Without a dialect it may be either; the newer one is told of when it is neither.
    try {
      return compile('draft-07', schema)
    } catch {
      throw error
    }
  }
}

function compile(draft: Draft, schema: JsonSchemaObject): ValidateFunction {
  const compiler = compilerOf(draft)
  try {
    return compiler.compile(schema)
  } catch (error) {
    throw new TypeError(`is no sound JSON Schema: ${messageOf(error)}`, { cause: error })
  } finally {
    // The compiler would keep it for ever.
    compiler.removeSchema(schema)
  }
}

const compilers = new Map<Draft, Compiler>()

/** Loaded at first use: a process whose tools all have schemas of a library needs none of this. */
function compilerOf(draft: Draft): Compiler {
  const known = compilers.get(draft)
  if (known !== undefined) return known
  const load = createRequire(import.meta.url)
  const formats = load('ajv-formats') as typeof formatsPlugin.default
  const made =
    draft === '2020-12'
      ? new (load('ajv/dist/2020.js') as typeof Ajv2020).Ajv2020(OPTIONS)
      : new (load('ajv') as typeof Ajv7).Ajv(OPTIONS)
  formats(made)
  compilers.set(draft, made)
  return made
}

const OPTIONS: Options = {
  // Keywords and formats that it does not know are passed over, as JSON Schema says.
  strict: false,
  logger: false,
  // Schemas of different tools may have one `$id`.
  addUsedSchema: false,
  // One problem at a time: a list of a million wrong items is not worth a million errors.
  allErrors: false,
  // Each doubles what compiling takes.
  verbose: false,
  code: { optimize: false, regExp: Object.assign(regularExpression, { code: 'new RegExp' }) },
}

/** Most patterns hold with the flag `u`; some old ones (`\-`) do only without. */
function regularExpression(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return new RegExp(pattern)
  }
}
