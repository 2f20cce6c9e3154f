import {
  asSchema,
  isSchemaObject,
  type JsonSchema,
  resolveReference,
  schemaList,
  schemaMap,
  stringList,
} from './json-schema.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** The fields of an object schema, with `$ref` and `allOf` resolved. */
export interface ObjectShape {
  readonly properties: ReadonlyMap<string, JsonSchema>
  readonly required: ReadonlySet<string>
  /** The schema of further fields; undefined if there is none. */
  readonly additional: JsonSchema | undefined
  /** True if the schema has `properties`. */
  readonly listed: boolean
}

/** Maximum schemas visited for one shape: definitions that refer to each other double at each level. */
const MAX_STEPS = 500

/** The shape of a schema that admits only objects, or undefined. */
export function objectShape(
  root: JsonSchemaObject,
  schema: JsonSchema,
  steps: { left: number } = { left: MAX_STEPS },
): ObjectShape | undefined {
  steps.left -= 1
  if (typeof schema === 'boolean' || steps.left < 0) return undefined
  const parts: ObjectShape[] = []
  if (typeof schema['$ref'] === 'string') {
    const target = resolveReference(root, schema['$ref'])
    const shape = target === undefined ? undefined : objectShape(root, target, steps)
    if (shape !== undefined) parts.push(shape)
  }
  if (isObjectType(schema)) parts.push(ownShape(schema))
  for (const part of schemaList(schema['allOf'])) {
    const shape = objectShape(root, part, steps)
    if (shape !== undefined) parts.push(shape)
  }
  return parts.length === 0 ? undefined : parts.reduce(both)
}

/**
 * The shape of a schema whose value is one of several objects: the fields of all of them, required if all require them.
 * Undefined if one of them is not an object.
 */
export function commonShape(
  root: JsonSchemaObject,
  schema: JsonSchema,
  steps: { left: number } = { left: MAX_STEPS },
): ObjectShape | undefined {
  const own = objectShape(root, schema, steps)
  if (typeof schema === 'boolean' || steps.left < 0) return own
  if (typeof schema['$ref'] === 'string' && own === undefined) {
    const target = resolveReference(root, schema['$ref'])
    return target === undefined ? undefined : commonShape(root, target, steps)
  }
  const branches = [...schemaList(schema['anyOf']), ...schemaList(schema['oneOf'])]
  const shapes = branches.map((branch) => commonShape(root, branch, steps))
  const known = shapes.filter((shape) => shape !== undefined)
  if (known.length === 0 || known.length < shapes.length) return own
  const merged = known.reduce(either)
  return own === undefined ? merged : both(own, merged)
}

function isObjectType(schema: JsonSchemaObject): boolean {
  const { type } = schema
  if (type === undefined) return isSchemaObject(schema['properties'])
  return type === 'object' || (Array.isArray(type) && type.length === 1 && type[0] === 'object')
}

function ownShape(schema: JsonSchemaObject): ObjectShape {
  const { additionalProperties } = schema
  return {
    properties: new Map(schemaMap(schema['properties'])),
    required: new Set(stringList(schema['required'])),
    additional: additionalProperties === undefined ? undefined : asSchema(additionalProperties),
    listed: isSchemaObject(schema['properties']),
  }
}

/** The shape of a value that has both shapes. */
function both(a: ObjectShape, b: ObjectShape): ObjectShape {
  return {
    properties: new Map([...a.properties, ...b.properties]),
    required: new Set([...a.required, ...b.required]),
    additional: a.additional ?? b.additional,
    listed: a.listed || b.listed,
  }
}

/** The shape of a value that has one shape or the other. */
function either(a: ObjectShape, b: ObjectShape): ObjectShape {
  const properties = new Map(a.properties)
  for (const [key, schema] of b.properties) {
    const other = properties.get(key)
    properties.set(key, other === undefined ? schema : eitherSchema(other, schema))
  }
  return {
    properties,
    required: new Set([...a.required].filter((key) => b.required.has(key))),
    additional: a.additional ?? b.additional,
    listed: a.listed && b.listed,
  }
}

function eitherSchema(a: JsonSchema, b: JsonSchema): JsonSchema {
  if (JSON.stringify(a) === JSON.stringify(b)) return a
  const known =
    isSchemaObject(a) && Object.keys(a).length === 1 && Array.isArray(a['anyOf']) ? schemaList(a['anyOf']) : [a]
  return { anyOf: [...known, b] }
}
