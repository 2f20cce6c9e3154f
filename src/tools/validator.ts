import { createRequire } from 'node:module'
import type * as Ajv7 from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import type * as Ajv2020Module from 'ajv/dist/2020.js'
import type formatsPlugin from 'ajv-formats'
import { messageOf } from '../errors/index.ts'
import { schemaPattern } from './pattern.ts'
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
  try {
    metaCompiler(draft).validateSchema(schema, true)
    // A compiler keeps parts of all that it has compiled, so each tool has one of its own, forgotten with the tool.
    return compiler(draft, { ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  } catch (error) {
    throw new TypeError(`is no sound JSON Schema: ${messageOf(error)}`, { cause: error })
  }
}

/** Knows what a schema may look like; that costs more than all else to compile, so it is kept. */
function metaCompiler(draft: Draft): Compiler {
  const known = metaCompilers.get(draft)
  if (known !== undefined) return known
  const made = compiler(draft, OPTIONS)
  metaCompilers.set(draft, made)
  return made
}

const metaCompilers = new Map<Draft, Compiler>()

interface Compiler {
  compile(schema: object): ValidateFunction
  validateSchema(schema: object, throwOrLogError: boolean): unknown
}

/** Loaded at first use: a process whose tools all have schemas of a library needs none of this. */
function compiler(draft: Draft, options: Options): Compiler {
  const load = createRequire(import.meta.url)
  const formats = load('ajv-formats') as typeof formatsPlugin.default
  const made = draft === '2020-12' ? draft2020(load, options) : draft7(load, options)
  formats(made)
  return made
}

// Each class in a name of its own: TypeScript 7.0 writes `new (call()).Name()` without the brackets it needs.
function draft2020(load: NodeJS.Require, options: Options): Ajv7.Ajv {
  const { Ajv2020 } = load('ajv/dist/2020.js') as typeof Ajv2020Module
  return new Ajv2020(options)
}

function draft7(load: NodeJS.Require, options: Options): Ajv7.Ajv {
  const { Ajv } = load('ajv') as typeof Ajv7
  return new Ajv(options)
}

const OPTIONS: Options = {
  // Keywords and formats that it does not know are passed over, as JSON Schema says.
  strict: false,
  logger: false,
  // One problem at a time: a list of a million wrong items is not worth a million errors.
  allErrors: false,
  // Each doubles what compiling takes.
  verbose: false,
  code: { optimize: false, regExp: Object.assign(schemaPattern, { code: 'schemaPattern' }) },
}
