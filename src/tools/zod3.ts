/** What a schema of zod 3 says of itself; its types are not those of zod 4. */
interface Zod3Schema {
  readonly _def: Zod3Definition
}

type Zod3Definition = Readonly<Record<string, unknown>> & { readonly typeName: string }

/** Whether a schema is of zod 3, which cannot be written as JSON Schema by itself. */
export function isZod3(schema: object): schema is Zod3Schema {
  const definition = '_def' in schema ? schema._def : undefined
  return (
    !('_zod' in schema) &&
    typeof definition === 'object' &&
    definition !== null &&
    'typeName' in definition &&
    typeof definition.typeName === 'string'
  )
}

const MAX_DEPTH = 20

/**
 * JSON Schema of what a schema of zod 3 takes: its types, fields, defaults and descriptions. What only restricts them
 * (lengths, patterns, refinements) is left to the schema itself. A type that is not known here admits anything.
 */
export function zod3JsonSchema(schema: Zod3Schema, depth = 0): Record<string, unknown> {
  const { description } = schema._def
  const json = depth > MAX_DEPTH ? {} : jsonOf(schema._def, (inner) => converted(inner, depth + 1))
  return typeof description === 'string' ? { ...json, description } : json
}

type Convert = (schema: unknown) => Record<string, unknown>

function converted(schema: unknown, depth: number): Record<string, unknown> {
  return typeof schema === 'object' && schema !== null && isZod3(schema) ? zod3JsonSchema(schema, depth) : {}
}

function jsonOf(definition: Zod3Definition, convert: Convert): Record<string, unknown> {
  const { typeName, innerType, type, options, value, values } = definition
  switch (typeName) {
    case 'ZodString':
      return { type: 'string' }
    case 'ZodNumber':
      return { type: checksOf(definition).includes('int') ? 'integer' : 'number' }
    case 'ZodBoolean':
      return { type: 'boolean' }
    case 'ZodNull':
      return { type: 'null' }
    case 'ZodLiteral':
      return { const: value }
    case 'ZodEnum':
      return { enum: values }
    case 'ZodNativeEnum':
      return { enum: enumValues(values) }
    case 'ZodObject':
      return objectOf(definition, convert)
    case 'ZodRecord':
      return { type: 'object', additionalProperties: convert(definition['valueType']) }
    case 'ZodArray':
      return { type: 'array', items: convert(type) }
    case 'ZodTuple':
      return { type: 'array', prefixItems: listOf(definition['items']).map(convert), items: false }
    case 'ZodUnion':
      return { anyOf: listOf(options).map(convert) }
    case 'ZodDiscriminatedUnion':
      return { anyOf: [...(options instanceof Map ? options.values() : listOf(options))].map(convert) }
    case 'ZodIntersection':
      return { allOf: [convert(definition['left']), convert(definition['right'])] }
    case 'ZodNullable':
      return { anyOf: [convert(innerType), { type: 'null' }] }
    case 'ZodDefault':
      return { ...convert(innerType), default: (definition['defaultValue'] as () => unknown)() }
    case 'ZodOptional':
    case 'ZodCatch':
    case 'ZodReadonly':
      return convert(innerType)
    case 'ZodBranded':
      return convert(type)
    case 'ZodEffects':
      return convert(definition['schema'])
    case 'ZodPipeline':
      return convert(definition['in'])
    case 'ZodLazy':
      return convert((definition['getter'] as () => unknown)())
    default:
      return {}
  }
}

function objectOf(definition: Zod3Definition, convert: Convert): Record<string, unknown> {
  const shape = Object.entries((definition['shape'] as () => Record<string, unknown>)())
  return {
    type: 'object',
    properties: Object.fromEntries(shape.map(([key, schema]) => [key, convert(schema)])),
    required: shape.filter(([, schema]) => !isOptional(schema)).map(([key]) => key),
    ...(definition['unknownKeys'] === 'strict' ? { additionalProperties: false } : {}),
    ...(definition['unknownKeys'] === 'passthrough' ? { additionalProperties: {} } : {}),
  }
}

function isOptional(schema: unknown): boolean {
  return (schema as { isOptional?: () => boolean }).isOptional?.() === true
}

function checksOf(definition: Zod3Definition): unknown[] {
  return listOf(definition['checks']).map((check) => (check as { kind?: unknown }).kind)
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** Of an enum of TypeScript, which for numbers holds names by value as well. */
function enumValues(values: unknown): unknown[] {
  const entries = Object.entries(values as Record<string, unknown>)
  return entries.filter(([key, value]) => typeof value === 'number' || !/^\d+$/.test(key)).map(([, value]) => value)
}
