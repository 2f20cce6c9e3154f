import { MAX_ANSWER_CHARS } from '../judge/index.ts'
import { compileSchema, type SchemaCheck } from './compile-schema.ts'
import type { JsonSchemaObject, SchemaIssue } from './standard-schema.ts'

/** The question: a schema and a value, both as JSON. */
export interface SchemaQuestion {
  readonly schema: string
  /** Undefined if JSON has no form for it: the code that sends such a value refuses it with the reason. */
  readonly value: string | undefined
}

const MAX_KEPT = 32
const TOO_LONG: SchemaIssue = { message: 'does not match the schema' }
const compiled = new Map<string, SchemaCheck>()

// Loads the compiler, which takes longer than most judgements, before the deadline of the first one begins.
compileSchema({})

/** The first problem of the value as JSON, or an empty text. Runs in the judge's thread. */
export function answer({ schema, value }: SchemaQuestion): string {
  if (value === undefined) return ''
  const issue = checkOf(schema)(JSON.parse(value))
  if (issue === undefined) return ''
  const text = JSON.stringify(issue)
  // Control characters of keys take six each, and JSON that is cut cannot be read.
  return text.length <= MAX_ANSWER_CHARS ? text : JSON.stringify(TOO_LONG)
}

function checkOf(schema: string): SchemaCheck {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  if (compiled.size >= MAX_KEPT) compiled.clear()
  const made = compileOrTakeAll(JSON.parse(schema) as JsonSchemaObject)
  compiled.set(schema, made)
  return made
}

/** Only a library gives JSON Schema that is invalid, and refuses nothing because of it: there is no form to ask for then. */
function compileOrTakeAll(schema: JsonSchemaObject): SchemaCheck {
  try {
    return compileSchema(schema)
  } catch {
    return () => undefined
  }
}
