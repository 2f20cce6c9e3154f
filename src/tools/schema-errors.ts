import type { ErrorObject } from 'ajv'
import { didYouMean, sizeUpTo, truncate } from '../support/index.ts'
import { truncateLine } from './constraints.ts'
import { isSchemaObject, resolveReference } from './json-schema.ts'
import type { JsonSchemaObject, SchemaIssue } from './standard-schema.ts'

const MAX_SHOWN = 60
const MAX_READ = 10_000
const MAX_LISTED = 400
const MAX_MESSAGE = 1000
const MAX_ISSUES = 5
const MAX_STEPS = 20
const MAX_STEP = 80

/** The errors of ajv as one issue with a bounded message and path, such as `expected integer`. */
export function issueOf(root: JsonSchemaObject, errors: readonly ErrorObject[]): SchemaIssue {
  const { message, path = [] } = firstIssueOf(root, errors)
  const shown = path.slice(0, MAX_STEPS)
  if (shown.length === path.length && shown.every((step) => String(step).length <= MAX_STEP))
    return { message: truncate(message, MAX_MESSAGE), path }
  // A cut path would lead to another value, so the message names the place instead.
  return {
    message: truncate(
      `${pathText(shown.map((step) => (typeof step === 'number' ? step : truncate(String(step), MAX_STEP))))}: ${message}`,
      MAX_MESSAGE,
    ),
  }
}

function firstIssueOf(root: JsonSchemaObject, errors: readonly ErrorObject[]): SchemaIssue {
  const last = errors.at(-1)
  if (last === undefined) return { message: 'does not match the schema' }
  if ((last.keyword === 'anyOf' || last.keyword === 'oneOf') && !hasMatches(last)) {
    return describeUnion(root, last, errors.slice(0, -1))
  }
  return describeError(root, last)
}

/**
 * Formats a value for an error text: its JSON, with Python's names of null, true and false. A long value is described and not cut,
 * because redaction does not find a truncated secret.
 */
export function formatForPython(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (sizeUpTo(value, MAX_READ) === MAX_READ) return describe(value)
  try {
    const text = JSON.stringify(value)
    return text.length <= MAX_SHOWN ? text : describe(value)
  } catch {
    return typeof value
  }
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `a text of ${value.length} characters`
  return Array.isArray(value) ? `a list of ${value.length} items` : 'a large value'
}

/** Joins the first problems, each in a bounded text, with the number of the others. A library may report a million. */
export function joinProblems(issues: readonly SchemaIssue[], textOf: (issue: SchemaIssue) => string): string {
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => truncate(textOf(issue), MAX_MESSAGE))
  return issues.length > MAX_ISSUES ? `${shown.join('; ')}; and ${issues.length - MAX_ISSUES} more` : shown.join('; ')
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

/** The key in a step of an issue's path, which may be an object that holds it. */
export function keyOf(step: unknown): unknown {
  return typeof step === 'object' && step !== null && 'key' in step ? step.key : step
}

/** Reports the branch of a union whose problem is deepest: it is most likely the intended one. */
function describeUnion(root: JsonSchemaObject, union: ErrorObject, branches: readonly ErrorObject[]): SchemaIssue {
  const depth = union.instancePath.length
  const deepest = branches
    .filter(({ instancePath, keyword }) => instancePath.length > depth || keyword === 'required')
    .toSorted((a, b) => b.instancePath.length - a.instancePath.length)[0]
  if (deepest !== undefined) return describeError(root, deepest)
  const expected = branches.map((branch) => describeError(root, branch).message.replace(/^expected /, ''))
  return { path: pathOf(union), message: `expected ${[...new Set(expected)].join(' or ')}` }
}

function hasMatches({ params }: ErrorObject): boolean {
  return Array.isArray((params as { passingSchemas?: unknown }).passingSchemas)
}

function describeError(root: JsonSchemaObject, error: ErrorObject): SchemaIssue {
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
      return { path, message: `expected one of ${listValues(params['allowedValues'])}` }
    case 'const':
      return { path, message: `expected ${formatForPython(params['allowedValue'])}` }
    case 'format':
      return { path, message: `expected a ${String(params['format'])}` }
    case 'pattern':
      return { path, message: `expected text that matches ${truncateLine(String(params['pattern']), MAX_LISTED)}` }
    case 'oneOf':
      return { path, message: 'matches more than one of the allowed forms' }
    case 'false schema':
      return { path, message: 'no value is allowed here' }
    default:
      return { path, message: (error.message ?? error.keyword).replace(/^must be /, 'expected ') }
  }
}

function unknownField(parent: unknown, path: readonly unknown[], name: string): SchemaIssue {
  const properties = isSchemaObject(parent) ? parent['properties'] : undefined
  const known = isSchemaObject(properties) ? Object.keys(properties) : []
  return {
    path: [...path, name],
    message: `is not a known name.${name.length > MAX_STEP ? '' : didYouMean(name, known)}`,
  }
}

/** The schema whose keyword reported the error. */
function parentOf(root: JsonSchemaObject, { schemaPath }: ErrorObject): unknown {
  const parent = schemaPath.slice(0, Math.max(1, schemaPath.lastIndexOf('/')))
  return resolveReference(root, parent)
}

function listValues(values: unknown): string {
  const all = Array.isArray(values) ? values : []
  let text = ''
  for (const [index, value] of all.entries()) {
    const next = `${index === 0 ? '' : ', '}${formatForPython(value)}`
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
