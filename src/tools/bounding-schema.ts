import { isSchemaObject, jsonSchemaOf } from './json-schema.ts'
import type { JsonSchemaObject, StandardToolSchema } from './standard-schema.ts'

/**
 * The JSON Schema of the values that a library's schema accepts, made so lenient that it refuses none of them: a library may
 * measure, convert or ignore a value that JSON Schema would check unchanged. Undefined if there is none.
 */
export function boundingSchemaOf(schema: StandardToolSchema): JsonSchemaObject | undefined {
  const json = jsonSchemaOf(schema, 'input', { lenient: true })
  const keepsPatterns = schema['~standard'].vendor === 'zod'
  return Object.keys(json).length === 0 ? undefined : (relax(json, keepsPatterns) as JsonSchemaObject)
}

function relax(schema: unknown, keepsPatterns: boolean): unknown {
  if (Array.isArray(schema)) return schema.map((item) => relax(item, keepsPatterns))
  if (!isSchemaObject(schema)) return schema
  const relaxed: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    // A pattern that lost its flags would refuse values that the library accepts. Only zod is known to keep them.
    if (DROPPED.has(keyword) || (keyword === 'pattern' && !keepsPatterns)) continue
    if (keyword === 'oneOf') relaxed['anyOf'] = relax(value, keepsPatterns)
    // Some libraries count UTF-16 units, two for some characters.
    else if (keyword === 'minLength') relaxed[keyword] = Math.ceil(Number(value) / 2)
    else if (MAPS.has(keyword) && isSchemaObject(value)) relaxed[keyword] = relaxMap(value, keepsPatterns)
    else relaxed[keyword] = DATA.has(keyword) ? value : relax(value, keepsPatterns)
  }
  return relaxed
}

function relaxMap(map: JsonSchemaObject, keepsPatterns: boolean): JsonSchemaObject {
  return Object.fromEntries(Object.entries(map).map(([key, schema]) => [key, relax(schema, keepsPatterns)]))
}

const MAPS = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'])
const DATA = new Set(['const', 'default', 'enum', 'examples'])
/** Keywords that libraries judge differently, or that get stricter when their parts get more lenient. */
const DROPPED = new Set(['format', 'multipleOf', 'not', 'if', 'then', 'else', 'maxContains', 'uniqueItems'])
