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

/**
 * The work for one shape. A schema that is visited costs `SCHEMA_STEPS`, a field 1: definitions that refer to each other double at
 * each level.
 */
const MAX_STEPS = 20_000
const SCHEMA_STEPS = 20

/** The remaining steps. All shapes that one caller computes share them. */
export interface Steps {
  left: number
}

/** Steps for as many shapes as a tool may need. */
export function makeSharedSteps(): Steps {
  return { left: 5 * MAX_STEPS }
}

/** The shape of a schema that admits only objects, or undefined. */
export function objectShapeOf(
  root: JsonSchemaObject,
  schema: JsonSchema,
  steps: Steps = { left: MAX_STEPS },
): ObjectShape | undefined {
  steps.left -= SCHEMA_STEPS
  if (typeof schema === 'boolean' || steps.left < 0) return undefined
  const parts: ObjectShape[] = []
  if (typeof schema['$ref'] === 'string') {
    const target = resolveReference(root, schema['$ref'])
    const shape = target === undefined ? undefined : objectShapeOf(root, target, steps)
    if (shape !== undefined) parts.push(shape)
  }
  if (isObjectType(schema)) parts.push(ownShapeOf(schema, steps))
  for (const part of schemaList(schema['allOf'])) {
    const shape = objectShapeOf(root, part, steps)
    if (shape !== undefined) parts.push(shape)
  }
  return parts.length === 0 || steps.left < 0 ? undefined : all(parts, steps)
}

/**
 * The shape of a schema whose value is one of several objects: the fields of all of them, required if all require them.
 * Undefined if one of them is not an object.
 */
export function commonShapeOf(
  root: JsonSchemaObject,
  schema: JsonSchema,
  steps: Steps = { left: MAX_STEPS },
): ObjectShape | undefined {
  const own = objectShapeOf(root, schema, steps)
  if (typeof schema === 'boolean' || steps.left < 0) return own
  if (typeof schema['$ref'] === 'string' && own === undefined) {
    const target = resolveReference(root, schema['$ref'])
    return target === undefined ? undefined : commonShapeOf(root, target, steps)
  }
  const branches = [...schemaList(schema['anyOf']), ...schemaList(schema['oneOf'])]
  const shapes = branches.map((branch) => commonShapeOf(root, branch, steps))
  const known = shapes.filter((shape) => shape !== undefined)
  if (known.length === 0 || known.length < shapes.length) return own
  const merged = either(known, steps)
  if (steps.left < 0) return undefined
  return own === undefined ? merged : all([own, merged], steps)
}

function isObjectType(schema: JsonSchemaObject): boolean {
  const { type } = schema
  if (type === undefined) return isSchemaObject(schema['properties'])
  return type === 'object' || (Array.isArray(type) && type.length === 1 && type[0] === 'object')
}

function ownShapeOf(schema: JsonSchemaObject, steps: Steps): ObjectShape {
  const { additionalProperties } = schema
  const properties = new Map(schemaMap(schema['properties']))
  const required = new Set(stringList(schema['required']))
  steps.left -= properties.size + required.size
  return {
    properties,
    required,
    additional: additionalProperties === undefined ? undefined : asSchema(additionalProperties),
    listed: isSchemaObject(schema['properties']),
  }
}

/** The shape of a value that has all these shapes. */
function all(shapes: readonly ObjectShape[], steps: Steps): ObjectShape {
  const [only] = shapes
  if (shapes.length === 1 && only !== undefined) return only
  for (const { properties, required } of shapes) steps.left -= properties.size + required.size
  return {
    properties: new Map(shapes.flatMap(({ properties }) => [...properties])),
    required: new Set(shapes.flatMap(({ required }) => [...required])),
    additional: shapes.find(({ additional }) => additional !== undefined)?.additional,
    listed: shapes.some(({ listed }) => listed),
  }
}

/** The shape of a value that has one of these shapes. */
function either(shapes: readonly ObjectShape[], steps: Steps): ObjectShape {
  const schemas = new Map<string, Map<string, JsonSchema>>()
  for (const { properties, required } of shapes) {
    steps.left -= properties.size + required.size
    for (const [key, schema] of properties) {
      const known = schemas.get(key) ?? new Map<string, JsonSchema>()
      const text = JSON.stringify(schema)
      steps.left -= text.length / 16
      if (steps.left < 0) break
      schemas.set(key, known.set(text, schema))
    }
  }
  const [first, ...others] = shapes.map(({ required }) => required)
  return {
    properties: new Map([...schemas].map(([key, found]) => [key, anyOf([...found.values()])])),
    required: new Set([...(first ?? [])].filter((key) => others.every((required) => required.has(key)))),
    additional: shapes.find(({ additional }) => additional !== undefined)?.additional,
    listed: shapes.every(({ listed }) => listed),
  }
}

function anyOf(schemas: readonly JsonSchema[]): JsonSchema {
  const [only = true] = schemas
  return schemas.length === 1 ? only : { anyOf: schemas }
}
