import { memoryOf } from '../support/index.ts'
import { isSchemaObject } from './json-schema.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** A part of a value, with its schema. */
export interface ValuePart {
  readonly schema: JsonSchemaObject
  readonly value: unknown
  /** The place of the part in the value; of a piece of a list the place of the list. */
  readonly path: readonly string[]
  /** The index of the first item of a piece in its list; undefined for the value without its long lists. */
  readonly firstIndex?: number
}

/** Bytes of memory of the items in one part. */
const PART_BYTES = 1024 * 1024
/** With a larger schema the value is not split, because the schema is sent with each part. */
const MAX_SCHEMA_CHARS = 64 * 1024
/** Keywords that restrict nothing, and `type`. */
const COMMON = ['$schema', '$defs', 'definitions', 'title', 'description', 'default', 'examples', 'type']
/** Keywords of an object that check nothing inside its properties, except the schemas of the properties. */
const OF_OBJECT = new Set([
  ...COMMON,
  'properties',
  'required',
  'additionalProperties',
  'propertyNames',
  'minProperties',
  'maxProperties',
])
/** Keywords of a list that check each item separately. */
const OF_LIST = new Set([...COMMON, 'items'])
/** References that depend on the position of a schema. */
const PLACED = /"\$(?:id|dynamicRef|recursiveRef)":|"\$ref":"(?!#\/(?:\$defs|definitions)\/)/

/**
 * Splits a value into parts that can be checked one after the other, so that the value is never copied as a whole: the value with its
 * long lists empty, and pieces of these lists. The value is valid if all parts are. A list whose items are checked together is not split.
 */
export function* partsOf(schema: JsonSchemaObject, text: string, value: unknown): Generator<ValuePart, void> {
  if (text.length > MAX_SCHEMA_CHARS || PLACED.test(text)) {
    yield { schema, value, path: [] }
    return
  }
  const lists: { schema: JsonSchemaObject; list: readonly unknown[]; path: readonly string[] }[] = []
  const withoutLists = (of: unknown, at: unknown, path: readonly string[]): unknown => {
    if (!isSchemaObject(of)) return at
    if (Array.isArray(at)) {
      if (!hasOnly(of, OF_LIST) || !isSchemaObject(of['items']) || memoryOf(at, PART_BYTES) < PART_BYTES) return at
      lists.push({ schema: of, list: at, path })
      return []
    }
    const { properties } = of
    if (!isPlainObject(at) || !hasOnly(of, OF_OBJECT) || !isSchemaObject(properties)) return at
    const fields = Object.keys(properties).filter((name) => Object.hasOwn(properties, name) && Object.hasOwn(at, name))
    const changed = fields.flatMap((name) => {
      const field = withoutLists(properties[name], at[name], [...path, name])
      return field === at[name] ? [] : [[name, field] as const]
    })
    // As own properties, so that a field `__proto__` stays data.
    return changed.length === 0 ? at : Object.fromEntries([...Object.entries(at), ...changed])
  }
  yield { schema, value: withoutLists(schema, value, []), path: [] }
  const { $schema, $defs, definitions } = schema
  const shared = Object.fromEntries(
    Object.entries({ $schema, $defs, definitions }).filter(([, part]) => part !== undefined),
  )
  for (const { schema: own, list, path } of lists) {
    const piece = path.length === 0 ? own : { ...own, ...shared }
    let firstIndex = 0
    for (let index = 0, bytes = 0; index < list.length; index += 1) {
      bytes += memoryOf(list[index], PART_BYTES)
      if (bytes < PART_BYTES && index + 1 < list.length) continue
      yield { schema: piece, value: list.slice(firstIndex, index + 1), path, firstIndex }
      firstIndex = index + 1
      bytes = 0
    }
  }
}

function hasOnly(schema: JsonSchemaObject, keywords: ReadonlySet<string>): boolean {
  return Object.keys(schema).every((keyword) => keywords.has(keyword))
}

/** False for objects that JSON does not represent field by field: bytes, and values with a toJSON. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === Object.prototype || prototype === null) && !('toJSON' in value)
}
