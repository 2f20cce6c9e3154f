import { createRequire } from 'node:module'
import type * as Ajv7 from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import type * as Ajv2020Module from 'ajv/dist/2020.js'
import type formatsPlugin from 'ajv-formats'
import { messageOf } from '../errors/index.ts'
import { truncate } from '../support/index.ts'
import { schemaPattern } from './pattern.ts'
import { issueOf } from './schema-errors.ts'
import type { JsonSchemaObject, SchemaIssue } from './standard-schema.ts'

/** Returns the first problem of a value, or undefined. Its running time is unbounded. */
export type SchemaCheck = (value: unknown) => SchemaIssue | undefined

/**
 * Compiles JSON Schema, 2020-12 or draft-07. Values are not coerced, and defaults are not filled in.
 * @throws TypeError for invalid JSON Schema: a misused keyword, an invalid pattern, a dangling `$ref`.
 */
export function compileSchema(schema: JsonSchemaObject): SchemaCheck {
  const check = compileAnyDraft(schema)
  return (value) => (check(value) ? undefined : issueOf(schema, check.errors ?? []))
}

const MAX_REASON_CHARS = 500

/** Compiles JSON Schema. If it is invalid, the check reports for each value that it cannot be checked. */
export function checkOrRefuse(schema: JsonSchemaObject): SchemaCheck {
  try {
    return compileSchema(schema)
  } catch (error) {
    const reason = truncate(messageOf(error), MAX_REASON_CHARS)
    return () => ({ message: `cannot be checked: its schema ${reason}`, isUnchecked: true })
  }
}

type Draft = '2020-12' | 'draft-07'

function compileAnyDraft({ $schema, ...schema }: JsonSchemaObject): ValidateFunction {
  if (schema['$async'] !== undefined) throw new TypeError('uses the keyword $async, which is not supported')
  if (typeof $schema === 'string' && /draft-0[4-7]/.test($schema)) return compile('draft-07', schema)
  try {
    return compile('2020-12', schema)
  } catch (error) {
    if ($schema !== undefined) throw error
    // Without `$schema` it may be either draft; if neither fits, the error for the newer one is thrown.
    try {
      return compile('draft-07', schema)
    } catch {
      throw error
    }
  }
}

function compile(draft: Draft, schema: JsonSchemaObject): ValidateFunction {
  try {
    getMetaCompiler(draft).validateSchema(schema, true)
    // A compiler keeps parts of all schemas that it compiled: each tool has its own, which is released with the tool.
    return makeCompiler(draft, { ...OPTIONS, meta: false, validateSchema: false }).compile(schema)
  } catch (error) {
    throw new TypeError(`is not a valid JSON Schema: ${messageOf(error)}`, { cause: error })
  }
}

/** The compiler of the meta-schema. It is cached, because compiling the meta-schema takes the most time. */
function getMetaCompiler(draft: Draft): Compiler {
  const known = metaCompilers.get(draft)
  if (known !== undefined) return known
  const made = makeCompiler(draft, OPTIONS)
  metaCompilers.set(draft, made)
  return made
}

const metaCompilers = new Map<Draft, Compiler>()

interface Compiler {
  compile(schema: object): ValidateFunction
  validateSchema(schema: object, throwOrLogError: boolean): unknown
}

/** Loaded on demand: tools with schemas of a library do not need it. */
function makeCompiler(draft: Draft, options: Options): Compiler {
  const load = createRequire(import.meta.url)
  const formats = load('ajv-formats') as typeof formatsPlugin.default
  const made = draft === '2020-12' ? makeDraft2020Compiler(load, options) : makeDraft7Compiler(load, options)
  formats(made)
  return made
}

// Each class has its own name: TypeScript 7.0 writes `new (call()).Name()` without the required brackets.
function makeDraft2020Compiler(load: NodeJS.Require, options: Options): Ajv7.Ajv {
  const { Ajv2020 } = load('ajv/dist/2020.js') as typeof Ajv2020Module
  return new Ajv2020(options)
}

function makeDraft7Compiler(load: NodeJS.Require, options: Options): Ajv7.Ajv {
  const { Ajv } = load('ajv') as typeof Ajv7
  return new Ajv(options)
}

const OPTIONS: Options = {
  // Unknown keywords and formats are ignored, as JSON Schema requires.
  strict: false,
  logger: false,
  // One error at a time: a list of a million wrong items must not produce a million errors.
  allErrors: false,
  // Each of these doubles the compile time.
  verbose: false,
  code: { optimize: false, regExp: Object.assign(schemaPattern, { code: 'schemaPattern' }) },
}
