import type { CheckedTool, ToolParameter, ToolSignature } from '../protocol/index.ts'
import { constraintWords } from './constraints.ts'
import { isSchemaObject, type JsonSchema, withoutReferences } from './json-schema.ts'
import { commonShape, type ObjectShape } from './object-shape.ts'
import { type PythonClass, PythonClasses } from './python-classes.ts'
import { identifier } from './python-name.ts'
import { PythonTypes } from './python-type.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** What a signature is made from. */
export interface Described {
  /** As the script calls it. */
  readonly name: string
  readonly description: string
  readonly input: JsonSchemaObject
  /** Undefined where the tool says nothing of its answer. */
  readonly output: JsonSchemaObject | undefined
  /** Whether its docstring says that calls may fail with ToolError. Default true. */
  readonly raises?: boolean
}

/** A signature, the classes that it names, and the name in Python of each parameter. */
export interface PythonSignature {
  readonly signature: ToolSignature
  readonly classes: readonly PythonClass[]
  /** Key in the tool's schema → name in Python, in the order of the signature. */
  readonly names: ReadonlyMap<string, string>
}

const MAX_DOC_CHARS = 16_000
const MAX_PARAMETERS = 256

/**
 * The Python signature of a tool. `classPrefix` stands before the names of classes that have a title.
 * @throws TypeError where the input schema admits something else than objects.
 */
export function signatureOf(
  { name, description, input, output, raises = true }: Described,
  classPrefix = '',
): PythonSignature {
  const shape = inputShape(input)
  const classes = new PythonClasses(classPrefix)
  const types = new PythonTypes(input, classes)
  const more = takesMore(shape)
  const names = parameterNames(shape, more)
  const parameters = [...shape.properties].map(([key, schema]) => {
    const type = types.annotation(schema, [name, key])
    const plain = withoutReferences(input, schema)
    const required = shape.required.has(key) && defaultOf(plain) === undefined
    return parameterOf({ key, name: names.get(key) ?? key, type, plain, required })
  })
  // Python wants those that must be given first.
  const params = [...parameters.filter(({ required }) => required), ...parameters.filter(({ required }) => !required)]
  const returns = output === undefined ? 'Any' : new PythonTypes(output, classes).annotation(output, [name, 'Result'])
  return {
    signature: {
      name,
      params,
      more,
      returns,
      doc: docOf({ description, params, input, output, shape, raises }),
      types: classes.list.map(({ source }) => source).join('\n\n'),
    },
    classes: classes.list,
    names,
  }
}

/** What the checker knows of a tool. */
export function checkedOf(
  { signature, names }: PythonSignature,
  input: JsonSchemaObject,
  output: JsonSchemaObject | undefined,
): CheckedTool {
  const { properties } = inputShape(input)
  return {
    ...signature,
    schemas: Object.fromEntries(
      [...properties].map(([key, schema]) => [names.get(key) ?? key, withoutReferences(input, schema)]),
    ),
    result: output === undefined ? true : withoutReferences(output),
  }
}

function inputShape(input: JsonSchemaObject): ObjectShape {
  const shape = commonShape(input, input)
  if (shape !== undefined && shape.properties.size > MAX_PARAMETERS) {
    throw new TypeError(`has ${shape.properties.size} parameters; at most ${MAX_PARAMETERS} are allowed`)
  }
  if (shape !== undefined) return shape
  // `{}` admits everything, objects too; that is how some say "any arguments".
  if (Object.keys(input).every((keyword) => keyword.startsWith('$') || keyword === 'description')) {
    return { properties: new Map(), required: new Set(), additional: undefined, listed: false }
  }
  throw new TypeError('must describe an object: its properties are the parameters of the function')
}

function takesMore({ properties, additional, listed }: ObjectShape): boolean {
  if (additional !== undefined) return additional !== false
  return properties.size === 0 && !listed
}

/** A name in Python for each key. Keys that are names already keep them. */
function parameterNames({ properties }: ObjectShape, more: boolean): Map<string, string> {
  const taken = new Set(more ? ['more'] : [])
  const names = new Map<string, string>()
  const keys = [...properties.keys()]
  const plain = keys.filter((key) => identifier(key) === key && !taken.has(key))
  for (const key of plain) {
    names.set(key, key)
    taken.add(key)
  }
  for (const key of keys) {
    if (names.has(key)) continue
    const wanted = taken.has(key) ? `${key}_` : identifier(key)
    let name = wanted
    for (let number = 2; taken.has(name); number += 1) name = `${wanted}_${number}`
    names.set(key, name)
    taken.add(name)
  }
  return names
}

function parameterOf(given: {
  key: string
  name: string
  type: string
  plain: JsonSchema
  required: boolean
}): ToolParameter {
  const { key, name, plain, required } = given
  const nullable = given.type === 'Any' || admitsNull(plain)
  const base = { name, ...(key === name ? {} : { key }) }
  const preset = defaultOf(plain)
  if (required) return { ...base, type: given.type, required, nullable }
  if (preset !== undefined && (preset !== null || nullable)) {
    return { ...base, type: given.type, required, nullable, default: preset }
  }
  // Leaving it out is `None` in Python, which is not sent.
  return { ...base, type: nullable ? given.type : `${given.type} | None`, required, nullable }
}

/** The default of a schema, unless its own type excludes it: then leaving the parameter out is left to the tool. */
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

function docOf(given: {
  description: string
  params: readonly ToolParameter[]
  input: JsonSchemaObject
  output: JsonSchemaObject | undefined
  shape: ObjectShape
  raises: boolean
}): string {
  const { description, params, input, output, shape, raises } = given
  const args = params.flatMap((param) => {
    const key = param.key ?? param.name
    const text = parameterText(withoutReferences(input, shape.properties.get(key) ?? true))
    return text === '' ? [] : [`    ${param.name}: ${indented(text)}`]
  })
  const result = output === undefined ? '' : parameterText(withoutReferences(output))
  const sections = [
    description.trim(),
    ...(args.length === 0 ? [] : [`Args:\n${args.join('\n')}`]),
    ...(result === '' ? [] : [`Returns:\n    ${indented(result)}`]),
    raises ? 'Raises:\n    ToolError: the call failed; `code` and the text tell why.' : '',
  ]
  return printable(sections.filter((section) => section !== '').join('\n\n'))
}

function parameterText(schema: JsonSchema): string {
  if (typeof schema === 'boolean') return ''
  const description = typeof schema['description'] === 'string' ? schema['description'].trim() : ''
  const words = constraintWords(schema).join('; ')
  if (words === '') return description
  return description === '' ? words : `${description} (${words})`
}

function indented(text: string): string {
  return text.replaceAll(/\n\s*/g, '\n        ')
}

/** Text that can stand in a docstring as it is: no end of it, nothing that hides or turns around what is shown. */
function printable(text: string): string {
  const clean = text
    .replaceAll(/\r\n?|[\u2028\u2029]/g, '\n')
    .replaceAll(/[^\P{C}\n\t\u200C\u200D]/gu, '')
    .replaceAll('"""', "'''")
  return clean.length <= MAX_DOC_CHARS ? clean : `${clean.slice(0, MAX_DOC_CHARS).toWellFormed()} … (cut)`
}
