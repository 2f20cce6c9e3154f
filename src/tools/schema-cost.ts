import { isSchemaObject, resolveReference } from './json-schema.ts'
import { isLinearPattern } from './pattern.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

const MAX_COST = 2000
/** Formats of the schema compiler that are not known to take linear time. The compiler ignores unknown formats. */
const SLOW_FORMATS: ReadonlySet<string> = new Set([
  'byte',
  'duration',
  'email',
  'hostname',
  'ipv6',
  'iso-date-time',
  'iso-time',
  'json-pointer',
  'json-pointer-uri-fragment',
  'regex',
  'relative-json-pointer',
  'uri',
  'uri-reference',
  'uri-template',
  'url',
])
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples', 'required', 'description', 'title'])

/**
 * The maximum number of subschemas applied to one value, with every reference followed: validation time is at most proportional to
 * this number times the size of the data. Undefined if it may take longer: for patterns and formats that may backtrack, for
 * `uniqueItems`, which compares every pair, for a recursive schema, and for a very large one.
 */
export function costOf(root: JsonSchemaObject): number | undefined {
  let cost = 0
  const weigh = (value: unknown, inside: readonly string[]): boolean => {
    cost += 1
    if (cost > MAX_COST) return false
    if (Array.isArray(value)) return value.every((item) => weigh(item, inside))
    if (!isSchemaObject(value)) return true
    if (!isLinear(value) || !weighReference(value['$ref'], inside)) return false
    return Object.entries(value).every(([keyword, part]) => {
      if (DATA.has(keyword) && !isSchemaObject(part)) {
        cost += Array.isArray(part) ? part.length / 10 : 0
        return true
      }
      return (value === root && DEFINITIONS.has(keyword)) || weigh(part, inside)
    })
  }
  const weighReference = (reference: unknown, inside: readonly string[]): boolean => {
    if (typeof reference !== 'string') return true
    const target = resolveReference(root, reference)
    return target !== undefined && !inside.includes(reference) && weigh(target, [...inside, reference])
  }
  return weigh(root, ['#']) ? cost : undefined
}

/** Keywords whose schemas are counted where a reference uses them. */
const DEFINITIONS = new Set(['$defs', 'definitions'])

function isLinear(schema: JsonSchemaObject): boolean {
  const { pattern, format, patternProperties, uniqueItems } = schema
  if (schema['$dynamicRef'] !== undefined || schema['$recursiveRef'] !== undefined || uniqueItems === true) return false
  if (typeof pattern === 'string' && !isLinearPattern(pattern)) return false
  if (typeof format === 'string' && SLOW_FORMATS.has(format)) return false
  return !isSchemaObject(patternProperties) || Object.keys(patternProperties).every(isLinearPattern)
}
