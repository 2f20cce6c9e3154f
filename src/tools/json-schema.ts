import { z } from 'zod'
import { memoryOf, sizeUpTo } from '../support/index.ts'
import { messageOf } from '../errors/index.ts'
import { deeperThan } from '../protocol/index.ts'
import { isStandardSchema, type JsonSchemaObject, type StandardToolSchema, type ToolSchema } from './standard-schema.ts'
import { relaxZod } from './relax-zod.ts'
import { holdsProtoKey } from './unsafe-key.ts'
import { isZod3, zod3JsonSchema } from './zod3.ts'

/** A schema within JSON Schema: `true` admits anything, `false` nothing. */
export type JsonSchema = JsonSchemaObject | boolean

const MAX_SCHEMA_CHARS = 1024 * 1024
const MAX_SCHEMA_DEPTH = 100
/** Bytes that {@link inlineReferences} may add to a schema: a definition that refers to itself twice doubles at each level. */
const MAX_ADDED_BYTES = 32 * 1024
/** Estimated bytes of a schema, and of a keyword in it. */
const SCHEMA_BYTES = 64
const KEYWORD_BYTES = 24
/** Maximum depth of nested references. */
const MAX_REFERENCES = 100
/** Maximum depth at which a definition contains itself; deeper, `true` replaces it. */
const MAX_SELF = 2

/**
 * The JSON Schema of the input or the output of a schema, as a private copy. `lenient` (zod only): admits
 * any value where the library converts or replaces values.
 * @throws TypeError if the schema cannot be written as JSON Schema, or is too large, too deep or hostile.
 */
export function jsonSchemaOf(
  schema: ToolSchema,
  side: 'input' | 'output',
  { lenient = false }: { readonly lenient?: boolean } = {},
): JsonSchemaObject {
  const given = isStandardSchema(schema) ? convertToJsonSchema(schema, side, lenient) : schema
  let text: string
  try {
    text = JSON.stringify(given)
  } catch (error) {
    throw new TypeError(`is not JSON: ${messageOf(error)}`, { cause: error })
  }
  if (text.length > MAX_SCHEMA_CHARS)
    throw new TypeError(`has ${text.length} characters; at most ${MAX_SCHEMA_CHARS} are allowed`)
  const copy: unknown = JSON.parse(text)
  if (!isSchemaObject(copy)) throw new TypeError('is not an object')
  if (deeperThan(copy, MAX_SCHEMA_DEPTH)) throw new TypeError(`nests deeper than ${MAX_SCHEMA_DEPTH} levels`)
  if (holdsProtoKey(copy)) throw new TypeError('holds the key "__proto__"')
  return copy
}

function convertToJsonSchema(schema: StandardToolSchema, side: 'input' | 'output', lenient: boolean): unknown {
  const standard = schema['~standard']
  // The input of a tool is JSON: a type that JSON does not have (a Date) could never be passed. Its output may
  // contain such a value, which is converted to JSON after the validation.
  const unrepresentable = side === 'input' && !lenient ? 'throw' : 'any'
  const override = lenient ? { override: relaxZod } : {}
  try {
    const convert = standard.jsonSchema?.[side]
    if (typeof convert === 'function') {
      const libraryOptions = standard.vendor === 'zod' ? { unrepresentable, ...override } : undefined
      return convert({ target: 'draft-2020-12', libraryOptions })
    }
    // zod 4 before 4.2 has no converter of its own in `~standard`.
    if (isZod(schema)) return z.toJSONSchema(schema, { io: side, unrepresentable, ...override })
    if (side === 'input' && isZod3(schema)) return zod3JsonSchema(schema, lenient)
  } catch (error) {
    if (side === 'output') return {}
    throw new TypeError(`cannot be written as JSON Schema: ${messageOf(error)}`, { cause: error })
  }
  if (side === 'output') return {}
  throw new TypeError(
    `comes from ${JSON.stringify(standard.vendor)}, which provides no JSON Schema; use zod 4, a library with ` +
      'Standard JSON Schema, or JSON Schema itself',
  )
}

function isZod(schema: object): schema is z.ZodType {
  return '_zod' in schema
}

/** True if a value can be a schema with keywords. */
export function isSchemaObject(value: unknown): value is JsonSchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Any value as a schema: an invalid one admits everything. */
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

/** Resolves `#`, `#/…` or `#anchor` in a schema; undefined if there is no such schema. The result is cached. */
export function resolveReference(root: JsonSchemaObject, reference: string): JsonSchema | undefined {
  let known = references.get(root)
  if (known === undefined) references.set(root, (known = new Map<string, JsonSchema | undefined>()))
  if (known.has(reference)) return known.get(reference)
  const found = findReference(root, reference)
  known.set(reference, found)
  return found
}

const references = new WeakMap<JsonSchemaObject, Map<string, JsonSchema | undefined>>()

function findReference(root: JsonSchemaObject, reference: string): JsonSchema | undefined {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return reference.startsWith('#') ? findAnchor(root, reference.slice(1)) : undefined
  let place: unknown = root
  for (const step of reference.slice(2).split('/')) {
    const key = decodeStep(step).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, key)) return undefined
    place = (place as Record<string, unknown>)[key]
  }
  return typeof place === 'boolean' || isSchemaObject(place) ? place : undefined
}

function findAnchor(root: JsonSchemaObject, name: string): JsonSchema | undefined {
  let known = anchors.get(root)
  if (known === undefined) {
    const defined = DEFINITIONS.flatMap((keyword) => schemaMap(root[keyword]).map(([, schema]) => schema)).toReversed()
    known = new Map(defined.filter(isSchemaObject).map((schema) => [schema['$anchor'], schema]))
    anchors.set(root, known)
  }
  return known.get(name)
}

/** The schemas of each root by their anchors; the first of several with the same anchor wins. */
const anchors = new WeakMap<JsonSchemaObject, ReadonlyMap<unknown, JsonSchemaObject>>()

function decodeStep(step: string): string {
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
/** Keywords below which a schema that is cut to `true` would admit less, and those that depend on other keywords. */
const SHARP = ['not', 'if', 'then', 'else', 'maxContains', 'unevaluatedItems', 'unevaluatedProperties']
const NAMES = ['$schema', '$id', '$anchor', '$ref', '$dynamicRef', '$dynamicAnchor']
const DROPPED = new Set([...DEFINITIONS, ...SHARP, ...NAMES])
/** Keywords for items and fields that no other keyword names: without the other keywords they would admit less. */
const CLOSING = new Set(['additionalItems', 'additionalProperties', 'items'])
/** Keywords that do not restrict values. */
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'])

/** The bytes that the schemas of one root may take after their references are replaced. Made by {@link roomOf}. */
export interface Room {
  left: number
}

/** The room for all parts of a schema together: what its definitions may add to it is bounded. */
export function roomOf(schema: JsonSchema): Room {
  return { left: MAX_ADDED_BYTES + memoryOf(schema) }
}

/**
 * A schema in which every `$ref` is replaced by its target. If a
 * definition contains itself again, or the result needs more room, `true` replaces it: it admits more
 * than the original, never less.
 */
export function inlineReferences(
  root: JsonSchemaObject,
  schema: JsonSchema = root,
  room: Room = roomOf(schema),
): JsonSchema {
  // Its own text always fits; twice, because lists and keywords take memory, too.
  room.left += 2 * memoryOf(schema)
  const expand = (given: JsonSchema, inside: readonly string[]): JsonSchema => {
    if (typeof given === 'boolean') return given
    room.left -= SCHEMA_BYTES
    if (room.left < 0 || given['$dynamicRef'] !== undefined) return true
    const fields: [string, unknown][] = []
    for (const keyword of Object.keys(given)) {
      if (DROPPED.has(keyword)) continue
      room.left -= KEYWORD_BYTES + keyword.length
      const value = expandKeyword(keyword, given[keyword], inside)
      fields.push([keyword, value])
      if (room.left < 0) break
    }
    const kept = room.left < 0 ? fields.filter(([keyword]) => !CLOSING.has(keyword)) : fields
    const plain = replaceOneOf(Object.fromEntries(kept))
    const reference = given['$ref']
    if (typeof reference !== 'string') return plain
    const target = resolveReference(root, reference)
    const tooDeep = inside.length >= MAX_REFERENCES || inside.filter((name) => name === reference).length >= MAX_SELF
    const found = target === undefined || tooDeep ? true : expand(target, [...inside, reference])
    return joinReference(plain, found)
  }
  const expandKeyword = (keyword: string, value: unknown, inside: readonly string[]): unknown => {
    if (LISTS.includes(keyword) && Array.isArray(value)) return schemaList(value).map((item) => expand(item, inside))
    if (MAPS.includes(keyword)) return expandMap(value, inside)
    if (ONE.includes(keyword)) return expand(asSchema(value), inside)
    room.left -= sizeUpTo(value, Math.max(room.left, 0) + 1)
    return value
  }
  const expandMap = (value: unknown, inside: readonly string[]): unknown => {
    const fields: [string, JsonSchema][] = []
    for (const [key, item] of schemaMap(value)) {
      room.left -= KEYWORD_BYTES + key.length
      if (room.left < 0) break
      fields.push([key, expand(item, inside)])
    }
    return Object.fromEntries(fields)
  }
  return expand(schema, [])
}

/** Replaces `oneOf` by `anyOf`: if two branches are cut to `true`, both match. */
function replaceOneOf({ oneOf, ...rest }: JsonSchemaObject): JsonSchemaObject {
  if (oneOf === undefined) return rest
  if (rest['anyOf'] === undefined) return { ...rest, anyOf: oneOf }
  return { ...rest, allOf: [...schemaList(rest['allOf']), { anyOf: oneOf }] }
}

/** Joins the target of a `$ref` with the keywords next to the `$ref`. */
function joinReference(siblings: JsonSchemaObject, found: JsonSchema): JsonSchema {
  const keywords = Object.keys(siblings)
  if (keywords.length === 0 || found === false) return found
  if (found === true) return siblings
  if (keywords.every((keyword) => ANNOTATIONS.has(keyword))) return { ...found, ...siblings }
  return { ...siblings, allOf: [...schemaList(siblings['allOf']), found] }
}
