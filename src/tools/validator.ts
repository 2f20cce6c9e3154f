import { sizeUpTo } from '../support/index.ts'
import type { Requester } from '../judge/index.ts'
import { boundingSchemaOf } from './bounding-schema.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { problemByJudge, SchemaJudge, type SchemaText } from './schema-judge.ts'
import {
  isStandardSchema,
  type JsonSchemaObject,
  type SchemaResult,
  type StandardToolSchema,
  type ToolSchema,
} from './standard-schema.ts'

/** Validates a value: returns the value to use, or its issues. `requester` takes turns with others at the judge's process. */
export type Validator = (value: unknown, requester?: Requester) => SchemaResult | Promise<SchemaResult>

/** Smaller values are not checked against JSON Schema first: they cannot have many problems. */
const FEW_CHARS = 2048

/**
 * The validator for a schema; `json` is the same schema as JSON Schema. Schemas of a validation library validate by
 * themselves; JSON Schema is compiled here, once.
 * @throws TypeError for invalid JSON Schema: a misused keyword, an invalid pattern, a dangling `$ref`.
 */
export function validatorOf(schema: ToolSchema, json: JsonSchemaObject): Validator {
  return isStandardSchema(schema) ? boundedValidator(schema) : jsonSchemaValidator(json)
}

/** @throws TypeError as {@link validatorOf}, if the schema is the host's own. */
function jsonSchemaValidator(schema: JsonSchemaObject, isOwn = true): Validator {
  const judge = new SchemaJudge(schema, isOwn)
  return async (value, requester) => {
    const issue = await judge.problemOf(value, requester)
    return issue === undefined ? { value } : { issues: [issue] }
  }
}

/**
 * JSON Schema as the schema of a validation library, which checks by itself.
 * @throws TypeError as {@link validatorOf}, or if the schema is too large, too deep or hostile.
 */
export function standardSchemaOf(schema: JsonSchemaObject): StandardToolSchema {
  const json = jsonSchemaOf(schema, 'output')
  const validate = jsonSchemaValidator(json)
  const checked: StandardToolSchema = {
    '~standard': { vendor: 'json-schema', validate, jsonSchema: { input: () => json, output: () => json } },
  }
  // The judge already bounds the check, so boundedValidator() must not wrap it again.
  validators.set(checked, validate)
  return checked
}

/**
 * JSON Schema of a tool server as the schema of a validation library. It is compiled at the first check: a schema that is invalid,
 * or slow to compile, refuses the values of its own tool only.
 */
export function foreignSchemaOf(json: JsonSchemaObject): StandardToolSchema {
  const validate = jsonSchemaValidator(json, false)
  const made: StandardToolSchema = {
    '~standard': { vendor: 'json-schema', validate, jsonSchema: { input: () => json, output: () => json } },
  }
  validators.set(made, validate)
  return made
}

/**
 * The validator of a library's schema, for untrusted values. A library reports every problem, which can take a thousand times the
 * memory of the data; so a value that is not small must match the schema's JSON Schema first.
 */
export function boundedValidator(schema: StandardToolSchema): Validator {
  const known = validators.get(schema)
  if (known !== undefined) return known
  let bounding: SchemaText | null | undefined
  const validate: Validator = async (value, requester) => {
    if (sizeUpTo(value, FEW_CHARS) === FEW_CHARS) {
      bounding = bounding === undefined ? boundingTextOf(schema) : bounding
      // Always in the judge's process: loading the compiler would block the host for longer than most checks take.
      const issue = bounding === null ? undefined : await problemByJudge(bounding, value, requester)
      if (issue !== undefined) return { issues: [issue] }
    }
    return schema['~standard'].validate(value)
  }
  validators.set(schema, validate)
  return validate
}

/** Released together with the schema. */
const validators = new WeakMap<object, Validator>()

/** The bounding JSON Schema; null for a schema that has none. */
function boundingTextOf(schema: StandardToolSchema): SchemaText | null {
  try {
    const json = boundingSchemaOf(schema)
    return json === undefined ? null : { json, text: JSON.stringify(json) }
  } catch {
    return null
  }
}
