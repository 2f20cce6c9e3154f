import { describeConstraints } from './constraints.ts'
import { isSchemaObject, type JsonSchema, roomOf, inlineReferences } from './json-schema.ts'
import { commonShapeOf, type ObjectShape } from './object-shape.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** A parameter of a tool, read once from its input schema. */
export interface NormalizedParameter {
  readonly key: string
  /** The schema as the tool gives it, with references to definitions of the whole schema. */
  readonly schema: JsonSchema
  /** The schema with its references replaced by what they name. */
  readonly resolved: JsonSchema
  readonly required: boolean
  readonly nullable: boolean
  /** The default, unless the type of the parameter excludes it: then the tool handles a missing argument. */
  readonly preset: unknown
  /** Its description and constraints, for the docstring. */
  readonly text: string
}

/** The input schema of a tool, normalised: readers of parameters do not read JSON Schema again. */
export interface NormalizedInput {
  readonly json: JsonSchemaObject
  readonly parameters: readonly NormalizedParameter[]
  /** True if the tool takes arguments beyond its parameters. */
  readonly more: boolean
}

/** The output schema of a tool, normalised. */
export interface NormalizedOutput {
  readonly json: JsonSchemaObject
  /** The schema with its references replaced by what they name. */
  readonly resolved: JsonSchema
  /** Its description and constraints, for the docstring. */
  readonly text: string
}

const MAX_PARAMETERS = 256

/** @throws TypeError if the schema admits anything but objects, or has too many parameters. */
export function normalizeInput(json: JsonSchemaObject): NormalizedInput {
  const shape = inputShapeOf(json)
  const all = roomOf(json)
  const parameters = [...shape.properties].map(([key, schema], index) => {
    // The rest of a share goes to the parameters after it.
    const share = Math.floor(all.left / (shape.properties.size - index))
    const room = { left: share }
    const resolved = inlineReferences(json, schema, room)
    all.left -= share - Math.min(Math.max(room.left, 0), share)
    const preset = defaultOf(resolved)
    const required = shape.required.has(key) && preset === undefined
    return { key, schema, resolved, required, nullable: admitsNull(resolved), preset, text: describeSchema(resolved) }
  })
  return { json, parameters, more: acceptsMore(shape) }
}

/** Normalises the output schema of a tool. */
export function normalizeOutput(json: JsonSchemaObject): NormalizedOutput {
  const resolved = inlineReferences(json)
  return { json, resolved, text: describeSchema(resolved) }
}

function inputShapeOf(input: JsonSchemaObject): ObjectShape {
  const shape = commonShapeOf(input, input)
  if (shape !== undefined && shape.properties.size > MAX_PARAMETERS) {
    throw new TypeError(`has ${shape.properties.size} parameters; at most ${MAX_PARAMETERS} are allowed`)
  }
  if (shape !== undefined) return shape
  // `{}` admits everything, including objects; some tools use it for "any arguments".
  if (Object.keys(input).every((keyword) => keyword.startsWith('$') || keyword === 'description')) {
    return { properties: new Map(), required: new Set(), additional: undefined, listed: false }
  }
  throw new TypeError('must describe an object: its properties are the parameters of the function')
}

function acceptsMore({ properties, additional, listed }: ObjectShape): boolean {
  if (additional !== undefined) return additional !== false
  return properties.size === 0 && !listed
}

function defaultOf(schema: JsonSchema): unknown {
  if (!isSchemaObject(schema)) return undefined
  const value = schema['default']
  if (value === undefined || !hasTypeOf(schema, value)) return undefined
  return value
}

function hasTypeOf(schema: JsonSchemaObject, value: unknown): boolean {
  const { type } = schema
  if (Array.isArray(schema['enum']) && !schema['enum'].includes(value)) return false
  if (type === undefined || value === null) return true
  const types = Array.isArray(type) ? type : [type]
  const own = Array.isArray(value) ? 'array' : typeof value
  return types.some(
    (name) => name === own || (own === 'number' && (name !== 'integer' ? false : Number.isInteger(value))),
  )
}

function admitsNull(schema: JsonSchema): boolean {
  if (typeof schema === 'boolean') return schema
  if (schema['nullable'] === true) return true
  if ('const' in schema) return schema['const'] === null
  if (Array.isArray(schema['enum'])) return schema['enum'].includes(null)
  const { type, anyOf, allOf } = schema
  if (type !== undefined && type !== 'null' && !(Array.isArray(type) && type.includes('null'))) return false
  if (Array.isArray(anyOf) && !anyOf.some(admitsNull)) return false
  return !Array.isArray(allOf) || allOf.every(admitsNull)
}

function describeSchema(schema: JsonSchema): string {
  if (typeof schema === 'boolean') return ''
  const description = typeof schema['description'] === 'string' ? schema['description'].trim() : ''
  const words = describeConstraints(schema).join('; ')
  if (words === '') return description
  return description === '' ? words : `${description} (${words})`
}
