import type { ErrorObject } from 'ajv'
import { didYouMean } from '../support/index.ts'
import { cut } from './constraints.ts'
import { isSchemaObject, referenced } from './json-schema.ts'
import type { JsonSchemaObject, SchemaIssue } from './standard-schema.ts'

const MAX_SHOWN = 60
const MAX_LISTED = 400

/** What ajv found, as one problem: `expected integer`, at its place. */
export function issueOf(root: JsonSchemaObject, errors: readonly ErrorObject[]): SchemaIssue {
  const last = errors.at(-1)
  if (last === undefined) return { message: 'does not match the schema' }
  if ((last.keyword === 'anyOf' || last.keyword === 'oneOf') && !hasMatches(last)) {
    return ofAlternatives(root, last, errors.slice(0, -1))
  }
  return described(root, last)
}

/** A value as an error text shows it: the beginning of its JSON, with Python's words for null, true and false. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value) && value.length > MAX_SHOWN) return `a list of ${value.length} items`
  try {
    return cut(JSON.stringify(value), MAX_SHOWN)
  } catch {
    return typeof value
  }
}

/** `filter.items[0].sku` */
export function pathText(path: readonly unknown[]): string {
  return path
    .map((step, index) => {
      const key = keyOf(step)
      return typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${String(key)}`
    })
    .join('')
}

/** A step of an issue's path: a key, or an object that holds it. */
export function keyOf(step: unknown): unknown {
  return typeof step === 'object' && step !== null && 'key' in step ? step.key : step
}

/** Of the branches of a union, the one whose problem lies deepest is most likely the one that was meant. */
function ofAlternatives(root: JsonSchemaObject, union: ErrorObject, branches: readonly ErrorObject[]): SchemaIssue {
  const depth = union.instancePath.length
  const deepest = branches
    .filter(({ instancePath, keyword }) => instancePath.length > depth || keyword === 'required')
    .toSorted((a, b) => b.instancePath.length - a.instancePath.length)[0]
  if (deepest !== undefined) return described(root, deepest)
  const words = branches.map((branch) => described(root, branch).message.replace(/^expected /, ''))
  return { path: pathOf(union), message: `expected ${[...new Set(words)].join(' or ')}` }
}

function hasMatches({ params }: ErrorObject): boolean {
  return Array.isArray((params as { passingSchemas?: unknown }).passingSchemas)
}

function described(root: JsonSchemaObject, error: ErrorObject): SchemaIssue {
  const path = pathOf(error)
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'type':
      return { path, message: `expected ${[params['type']].flat().join(' or ')}` }
    case 'required':
    case 'dependentRequired':
      return { path: [...path, params['missingProperty']], message: 'is missing' }
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return unknownField(
        parentOf(root, error),
        path,
        String(params['additionalProperty'] ?? params['unevaluatedProperty']),
      )
    case 'enum':
      return { path, message: `expected one of ${listed(params['allowedValues'])}` }
    case 'const':
      return { path, message: `expected ${shown(params['allowedValue'])}` }
    case 'format':
      return { path, message: `expected a ${String(params['format'])}` }
    case 'pattern':
      return { path, message: `expected text that matches ${cut(String(params['pattern']), MAX_LISTED)}` }
    case 'oneOf':
      return { path, message: 'matches more than one of the allowed forms' }
    case 'false schema':
      return { path, message: 'nothing is allowed here' }
    default:
      return { path, message: (error.message ?? error.keyword).replace(/^must be /, 'expected ') }
  }
}

function unknownField(parent: unknown, path: readonly unknown[], name: string): SchemaIssue {
  const properties = isSchemaObject(parent) ? parent['properties'] : undefined
  const known = isSchemaObject(properties) ? Object.keys(properties) : []
  return { path: [...path, name], message: `there is no such name.${didYouMean(name, known)}` }
}

/** The schema whose keyword found the problem. */
function parentOf(root: JsonSchemaObject, { schemaPath }: ErrorObject): unknown {
  const parent = schemaPath.slice(0, Math.max(1, schemaPath.lastIndexOf('/')))
  return referenced(root, parent)
}

function listed(values: unknown): string {
  const all = Array.isArray(values) ? values : []
  let text = ''
  for (const [index, value] of all.entries()) {
    const next = `${index === 0 ? '' : ', '}${shown(value)}`
    if (text.length + next.length > MAX_LISTED) return `${text} and ${all.length - index} more`
    text += next
  }
  return text
}

function pathOf({ instancePath }: ErrorObject): (string | number)[] {
  return instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^(0|[1-9]\d*)$/.test(step) ? Number(step) : step))
}
