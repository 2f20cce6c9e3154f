import { MAX_ANSWER_CHARS } from '../judge/index.ts'
import { checkOrRefuse, compileSchema, type SchemaCheck } from './compile-schema.ts'
import type { JsonSchemaObject, SchemaIssue } from './standard-schema.ts'

/** A request to check a value against a schema, both as JSON. */
export interface SchemaQuestion {
  readonly schema: string
  /** Undefined if JSON cannot represent it: the code that sends such a value refuses it with the reason. */
  readonly value: string | undefined
  /** False for the JSON Schema of a library's schema: if it is invalid, it admits everything, and the library checks by itself. */
  readonly mustBeValid?: boolean
}

const MAX_KEPT = 32
const TOO_LONG: SchemaIssue = { message: 'does not match the schema' }
const compiled = new Map<string, SchemaCheck>()

// Loads the compilers, which takes longer than most judgements, before the deadline of the first one begins. An interrupt while
// the meta-schema is compiled would also leave it broken.
compileSchema({})
compileSchema({ $schema: 'http://json-schema.org/draft-07/schema#' })

/** Returns the first problem of the value as JSON, or an empty text. Runs in the judge's process. */
export function answer({ schema, value, mustBeValid = false }: SchemaQuestion): string {
  if (value === undefined) return ''
  const issue = checkOf(schema, mustBeValid)(JSON.parse(value))
  if (issue === undefined) return ''
  const text = JSON.stringify(issue)
  // A control character in a key takes six characters of JSON, and JSON that is cut cannot be parsed.
  return text.length <= MAX_ANSWER_CHARS ? text : JSON.stringify(TOO_LONG)
}

function checkOf(schema: string, mustBeValid: boolean): SchemaCheck {
  const key = `${mustBeValid} ${schema}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  if (compiled.size >= MAX_KEPT) compiled.clear()
  const json = JSON.parse(schema) as JsonSchemaObject
  const made = mustBeValid ? checkOrRefuse(json) : compileOrAcceptAll(json)
  compiled.set(key, made)
  return made
}

function compileOrAcceptAll(schema: JsonSchemaObject): SchemaCheck {
  try {
    return compileSchema(schema)
  } catch {
    return () => undefined
  }
}
