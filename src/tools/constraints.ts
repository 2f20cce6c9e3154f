import { truncate } from '../support/index.ts'
import { isSchemaObject, type JsonSchema, schemaList } from './json-schema.ts'
import { literalTypeOf, toPythonLiteral } from './python-literal.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

const MAX_PATTERN = 120
const MAX_EXAMPLE = 120
const MAX_EXAMPLES = 3
const MAX_OPTIONS = 400

/** The constraints of a schema without references, beyond its type, as text: `1 to 100`, `format: date`. */
export function describeConstraints(schema: JsonSchema): string[] {
  if (typeof schema === 'boolean') return []
  const only = soleAlternative(schema)
  return [
    ...(only === undefined ? [] : describeConstraints(only)),
    ...describeRange(schema),
    ...describeLength(schema, 'minLength', 'maxLength', 'characters'),
    ...describeLength(schema, 'minItems', 'maxItems', 'items'),
    ...describeLength(schema, 'minProperties', 'maxProperties', 'fields'),
    ...(schema['uniqueItems'] === true ? ['no duplicate items'] : []),
    ...(typeof schema['multipleOf'] === 'number' ? [`a multiple of ${schema['multipleOf']}`] : []),
    // A format is clearer than its pattern.
    ...(typeof schema['pattern'] === 'string' && schema['format'] === undefined
      ? [`matches ${truncateLine(schema['pattern'], MAX_PATTERN)}`]
      : []),
    ...(typeof schema['format'] === 'string' ? [`format: ${schema['format']}`] : []),
    ...describeAllowedValues(schema),
    ...describeItems(schema),
    ...examples(schema),
  ]
}

/** The branch of a union other than `null`, if there is exactly one. */
export function soleAlternative(schema: JsonSchemaObject): JsonSchema | undefined {
  const branches = [...schemaList(schema['anyOf']), ...schemaList(schema['oneOf'])]
  const others = branches.filter((branch) => !isSchemaObject(branch) || branch['type'] !== 'null')
  return others.length === 1 ? others[0] : undefined
}

/** The first `limit` characters of a text, on one line. */
export function truncateLine(text: string, limit: number): string {
  return truncate(text.replaceAll(/\s+/g, ' ').trim(), limit)
}

function describeRange(schema: JsonSchemaObject): string[] {
  const [least, above] = [boundOf(schema['minimum']), boundOf(schema['exclusiveMinimum'])]
  const [limit, below] = [boundOf(schema['maximum']), boundOf(schema['exclusiveMaximum'])]
  if (least !== undefined && limit !== undefined) return [`${least} to ${limit}`]
  return [
    ...(least === undefined ? [] : [`at least ${least}`]),
    ...(above === undefined ? [] : [`above ${above}`]),
    ...(limit === undefined ? [] : [`at most ${limit}`]),
    ...(below === undefined ? [] : [`below ${below}`]),
  ]
}

/** A meaningful bound: some libraries always write the limits of safe integers. */
function boundOf(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined
}

function describeLength(schema: JsonSchemaObject, min: string, max: string, unit: string): string[] {
  const [least, limit] = [boundOf(schema[min]), boundOf(schema[max])]
  if (least !== undefined && least === limit) return [`exactly ${least} ${unit}`]
  if (least !== undefined && limit !== undefined) return [`${least} to ${limit} ${unit}`]
  if (least === 1) return ['not empty']
  if (least !== undefined && least > 0) return [`at least ${least} ${unit}`]
  return limit === undefined ? [] : [`at most ${limit} ${unit}`]
}

/** The allowed values, unless the type names them all. */
function describeAllowedValues(schema: JsonSchemaObject): string[] {
  const given: unknown = schema['enum']
  if (!Array.isArray(given)) return []
  const values = given.filter((value) => value !== null)
  if (values.length === 0 || literalTypeOf(values) !== undefined) return []
  return [`one of ${truncateLine(given.map((value) => toPythonLiteral(value)).join(', '), MAX_OPTIONS)}`]
}

function describeItems(schema: JsonSchemaObject): string[] {
  if (!isSchemaObject(schema['items'])) return []
  const words = describeConstraints({ ...schema['items'], examples: undefined })
  return words.length === 0 ? [] : [`each: ${words.join(', ')}`]
}

function examples(schema: JsonSchemaObject): string[] {
  const given = schema['examples']
  if (!Array.isArray(given) || given.length === 0) return []
  const shown = given.slice(0, MAX_EXAMPLES).map((example) => truncateLine(toPythonLiteral(example), MAX_EXAMPLE))
  return [`for example ${shown.join(', ')}`]
}
