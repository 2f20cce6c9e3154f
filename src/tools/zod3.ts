/** The internals of a zod 3 schema; its types differ from those of zod 4. */
interface Zod3Schema {
  readonly _def: Zod3Definition
}

type Zod3Definition = Readonly<Record<string, unknown>> & { readonly typeName: string }

/** True for a zod 3 schema, which cannot convert itself to JSON Schema. */
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
 * The JSON Schema of a zod 3 schema: its types, fields, defaults and descriptions. Restrictions
 * (lengths, patterns, refinements) are checked by the schema itself. An unknown type admits anything; with `lenient`, so does a type
 * that converts its input.
 */
export function zod3JsonSchema(schema: Zod3Schema, lenient = false, depth = 0): Record<string, unknown> {
  const { description } = schema._def
  const any = depth > MAX_DEPTH || (lenient && convertsInput(schema._def))
  const own = any ? {} : jsonOf(schema._def, (inner) => convertInner(inner, lenient, depth + 1))
  const json = lenient && TAKES_UNDEFINED.has(schema._def.typeName) ? { anyOf: [own, { type: 'null' }] } : own
  return typeof description === 'string' ? { ...json, description } : json
}

/** Types that admit undefined, which JSON represents in a list as null. */
const TAKES_UNDEFINED: ReadonlySet<string> = new Set(['ZodOptional', 'ZodDefault'])

type Convert = (schema: unknown) => Record<string, unknown>

function convertInner(schema: unknown, lenient: boolean, depth: number): Record<string, unknown> {
  return typeof schema === 'object' && schema !== null && isZod3(schema) ? zod3JsonSchema(schema, lenient, depth) : {}
}

function convertsInput({ typeName, coerce, effect }: Zod3Definition): boolean {
  return coerce === true || typeName === 'ZodCatch' || (effect as { type?: unknown } | undefined)?.type === 'preprocess'
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

/** The values of a TypeScript enum, which for numbers also maps values to names. */
function enumValues(values: unknown): unknown[] {
  const entries = Object.entries(values as Record<string, unknown>)
  return entries.filter(([key, value]) => typeof value === 'number' || !/^\d+$/.test(key)).map(([, value]) => value)
}
