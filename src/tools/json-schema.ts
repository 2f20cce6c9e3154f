import { z } from 'zod'
import { messageOf } from '../errors/index.ts'
import { deeperThan } from '../protocol/index.ts'
import { isStandardSchema, type JsonSchemaObject, type ToolSchema } from './standard-schema.ts'
import { holdsProtoKey } from './unsafe-key.ts'
import { isZod3, zod3JsonSchema } from './zod3.ts'

/** A place in JSON Schema where a schema stands: `true` admits anything, `false` nothing. */
export type JsonSchema = JsonSchemaObject | boolean

const MAX_SCHEMA_CHARS = 1024 * 1024
const MAX_SCHEMA_DEPTH = 100
/** Schemas in one result of {@link withoutReferences}; a schema that refers to itself twice doubles at each level. */
const MAX_EXPANDED = 5000
/** How often a definition may stand inside itself before `true` takes its place. */
const MAX_SELF = 2

/**
 * The JSON Schema of what a schema takes (`input`) or gives (`output`): a copy that nobody else holds.
 * @throws TypeError where the schema cannot say it in JSON Schema, or is too large, too deep or hostile.
 */
export function jsonSchemaOf(schema: ToolSchema, side: 'input' | 'output'): JsonSchemaObject {
  const given = isStandardSchema(schema) ? converted(schema, side) : schema
  let text: string
  try {
    text = JSON.stringify(given)
  } catch (error) {
    throw new TypeError(`is not JSON: ${messageOf(error)}`, { cause: error })
  }
  if (text.length > MAX_SCHEMA_CHARS) throw new TypeError(`has ${text.length} characters; at most ${MAX_SCHEMA_CHARS}`)
  const copy: unknown = JSON.parse(text)
  if (!isSchemaObject(copy)) throw new TypeError('is not an object')
  if (deeperThan(copy, MAX_SCHEMA_DEPTH)) throw new TypeError(`nests deeper than ${MAX_SCHEMA_DEPTH}`)
  if (holdsProtoKey(copy)) throw new TypeError('holds the key "__proto__"')
  return copy
}

function converted(schema: Extract<ToolSchema, { '~standard': unknown }>, side: 'input' | 'output'): unknown {
  const standard = schema['~standard']
  // What a tool takes comes as JSON, so a type that JSON does not have (a Date) could never be given. What it gives may
  // hold such a value: it is then turned into JSON after the check.
  const unrepresentable = side === 'input' ? 'throw' : 'any'
  try {
    const convert = standard.jsonSchema?.[side]
    if (typeof convert === 'function') {
      const libraryOptions = standard.vendor === 'zod' ? { unrepresentable } : undefined
      return convert({ target: 'draft-2020-12', libraryOptions })
    }
    // zod 4 before 4.2 has no converter of its own in `~standard`.
    if (isZod(schema)) return z.toJSONSchema(schema, { io: side, unrepresentable })
    if (side === 'input' && isZod3(schema)) return zod3JsonSchema(schema)
  } catch (error) {
    if (side === 'output') return {}
    throw new TypeError(`cannot be written as JSON Schema: ${messageOf(error)}`, { cause: error })
  }
  if (side === 'output') return {}
  throw new TypeError(
    `comes from ${JSON.stringify(standard.vendor)}, which gives no JSON Schema; take zod 4, a library with ` +
      'Standard JSON Schema, or JSON Schema itself',
  )
}

function isZod(schema: object): schema is z.ZodType {
  return '_zod' in schema
}

/** Whether a value can be a schema with keywords. */
export function isSchemaObject(value: unknown): value is JsonSchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Anything as a schema: what is none admits everything. */
export function asSchema(value: unknown): JsonSchema {
  return typeof value === 'boolean' || isSchemaObject(value) ? value : true
}

/** The schemas of a keyword that holds a list of them. */
export function schemaList(value: unknown): JsonSchema[] {
  return Array.isArray(value) ? value.map(asSchema) : []
}

/** Names and schemas of a keyword such as `properties`. */
export function schemaMap(value: unknown): [string, JsonSchema][] {
  return isSchemaObject(value) ? Object.entries(value).map(([key, schema]) => [key, asSchema(schema)]) : []
}

/** The strings of a keyword such as `required`. */
export function stringList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** What `#`, `#/…` or `#anchor` stands for in a schema, or undefined. */
export function referenced(root: JsonSchemaObject, reference: string): JsonSchema | undefined {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return reference.startsWith('#') ? anchored(root, reference.slice(1)) : undefined
  let place: unknown = root
  for (const step of reference.slice(2).split('/')) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, key)) return undefined
    place = (place as Record<string, unknown>)[key]
  }
  return typeof place === 'boolean' || isSchemaObject(place) ? place : undefined
}

function anchored(root: JsonSchemaObject, name: string): JsonSchema | undefined {
  for (const keyword of DEFINITIONS) {
    for (const [, schema] of schemaMap(root[keyword])) {
      if (typeof schema === 'object' && schema['$anchor'] === name) return schema
    }
  }
  return undefined
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

const DEFINITIONS = ['$defs', 'definitions']
const ONE = ['additionalItems', 'additionalProperties', 'contains', 'contentSchema', 'items', 'propertyNames']
const LISTS = ['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']
const MAPS = ['dependentSchemas', 'patternProperties', 'properties']
/** A schema below one of these that is cut to `true` would admit less; so would a look at what others have evaluated. */
const SHARP = ['not', 'if', 'then', 'else', 'maxContains', 'unevaluatedItems', 'unevaluatedProperties']
const NAMES = ['$schema', '$id', '$anchor', '$ref', '$dynamicRef', '$dynamicAnchor']
const DROPPED = new Set([...DEFINITIONS, ...SHARP, ...NAMES])
/** Keywords that say nothing about which values are admitted. */
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'])

/**
 * A schema in which every `$ref` is replaced by what it stands for, so that its reader needs no references. Where a
 * definition stands inside itself a second time, or the result grows too large, `true` takes its place: it admits more
 * than the original, never less.
 */
export function withoutReferences(root: JsonSchemaObject, schema: JsonSchema = root): JsonSchema {
  let left = MAX_EXPANDED
  const expand = (given: JsonSchema, inside: readonly string[]): JsonSchema => {
    if (typeof given === 'boolean') return given
    left -= 1
    if (left < 0) return true
    if (given['$dynamicRef'] !== undefined) return true
    const plain = withoutOneOf(
      Object.fromEntries(
        Object.entries(given)
          .filter(([keyword]) => !DROPPED.has(keyword))
          .map(([keyword, value]) => [keyword, expandKeyword(keyword, value, inside)]),
      ),
    )
    const reference = given['$ref']
    if (typeof reference !== 'string') return plain
    const target = referenced(root, reference)
    const tooDeep = inside.filter((name) => name === reference).length >= MAX_SELF
    const found = target === undefined || tooDeep ? true : expand(target, [...inside, reference])
    return joined(plain, found)
  }
  const expandKeyword = (keyword: string, value: unknown, inside: readonly string[]): unknown => {
    if (LISTS.includes(keyword) && Array.isArray(value)) return schemaList(value).map((item) => expand(item, inside))
    if (MAPS.includes(keyword)) {
      return Object.fromEntries(schemaMap(value).map(([key, item]) => [key, expand(item, inside)]))
    }
    return ONE.includes(keyword) ? expand(asSchema(value), inside) : value
  }
  return expand(schema, [])
}

/** `anyOf` for `oneOf`: of two branches that were cut to `true`, both match. */
function withoutOneOf({ oneOf, ...rest }: JsonSchemaObject): JsonSchemaObject {
  if (oneOf === undefined) return rest
  if (rest['anyOf'] === undefined) return { ...rest, anyOf: oneOf }
  return { ...rest, allOf: [...schemaList(rest['allOf']), { anyOf: oneOf }] }
}

/** What stands beside a `$ref`, and what the `$ref` stands for. */
function joined(beside: JsonSchemaObject, found: JsonSchema): JsonSchema {
  const keywords = Object.keys(beside)
  if (keywords.length === 0 || found === false) return found
  if (found === true) return beside
  if (keywords.every((keyword) => ANNOTATIONS.has(keyword))) return { ...found, ...beside }
  return { ...beside, allOf: [...schemaList(beside['allOf']), found] }
}
