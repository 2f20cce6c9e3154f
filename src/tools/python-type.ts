import { constraintWords, cut } from './constraints.ts'
import { asSchema, isSchemaObject, type JsonSchema, referenced, schemaList, schemaMap } from './json-schema.ts'
import { type ObjectShape, objectShape } from './object-shape.ts'
import type { PythonClasses, PythonField } from './python-classes.ts'
import { pythonLiteral } from './python-literal.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** Deeper, and with more classes in one tool, annotations say `Any` or `dict`. */
const MAX_DEPTH = 12
const MAX_CLASSES = 100
/** A longer `Literal` becomes the type of its values. */
const MAX_LITERAL_CHARS = 400
const MAX_NOTE_CHARS = 100

/** Python annotations of the schemas below one root; what objects they name goes to `classes`. */
export class PythonTypes {
  readonly #root: JsonSchemaObject
  readonly #classes: PythonClasses
  /** Class names of definitions that are written. */
  readonly #written = new Map<string, string>()
  /** Definitions that are being written, with their names once something below has asked for them. */
  readonly #unfinished = new Map<string, { readonly wanted: string; name: string | undefined }>()

  constructor(root: JsonSchemaObject, classes: PythonClasses) {
    this.#root = root
    this.#classes = classes
  }

  /** The annotation of a schema. `path` names a class that has no title of its own: tool, parameter, field. */
  annotation(schema: JsonSchema, path: readonly string[]): string {
    return union(this.#members(schema, path, 0, undefined))
  }

  /** What the union of all that a schema admits consists of. */
  #members(schema: JsonSchema, path: readonly string[], depth: number, reference: string | undefined): string[] {
    if (typeof schema === 'boolean' || depth > MAX_DEPTH) return ['Any']
    const { $ref } = schema
    if (typeof $ref === 'string') return this.#referenced($ref, path, depth, reference)
    if ('const' in schema) return literals([schema['const']])
    if (Array.isArray(schema['enum'])) return literals(schema['enum'])
    const members = this.#alternatives(schema, path, depth) ?? this.#plain(schema, path, depth, reference)
    return schema['nullable'] === true ? [...members, 'None'] : members
  }

  #referenced(reference: string, path: readonly string[], depth: number, from: string | undefined): string[] {
    const target = referenced(this.#root, reference)
    if (target === undefined || reference === from) return ['Any']
    const written = this.#written.get(reference)
    if (written !== undefined) return [written]
    const unfinished = this.#unfinished.get(reference)
    if (unfinished === undefined) return this.#members(target, path, depth + 1, reference)
    unfinished.name ??= this.#classes.reserve(unfinished.wanted)
    return [unfinished.name]
  }

  /** Members of `anyOf` and `oneOf`, unless these only restrict what stands beside them. */
  #alternatives(schema: JsonSchemaObject, path: readonly string[], depth: number): string[] | undefined {
    const branches = [...schemaList(schema['anyOf']), ...schemaList(schema['oneOf'])]
    if (branches.length === 0 || schema['properties'] !== undefined) return undefined
    if (hasType(schema) && !branches.every((branch) => isSchemaObject(branch) && hasType(branch))) return undefined
    const many = branches.filter((branch) => isSchemaObject(branch) && objectShape(this.#root, branch)).length > 1
    return branches.flatMap((branch, index) =>
      this.#members(branch, many ? [...path, String(index + 1)] : path, depth + 1, undefined),
    )
  }

  #plain(schema: JsonSchemaObject, path: readonly string[], depth: number, reference: string | undefined): string[] {
    const all = schemaList(schema['allOf'])
    if (all.length > 0 && schema['type'] === undefined) {
      const shape = objectShape(this.#root, schema)
      if (shape !== undefined && shape.properties.size > 0) return [this.#object(schema, path, depth, reference)]
      const members = all.map((part) => this.#members(part, path, depth + 1, undefined))
      return members.find((found) => !found.includes('Any')) ?? ['Any']
    }
    return typesOf(schema).map((type) => {
      if (type === 'array') return this.#array(schema, path, depth)
      if (type === 'object') return this.#object(schema, path, depth, reference)
      return SCALARS.get(type) ?? 'Any'
    })
  }

  #array(schema: JsonSchemaObject, path: readonly string[], depth: number): string {
    const { items } = schema
    const first = schemaList(schema['prefixItems'] ?? items)
    const rest = Array.isArray(items) ? schema['additionalItems'] : items
    const member = (item: JsonSchema, name: string): string[] =>
      this.#members(item, [...path, name], depth + 1, undefined)
    if (first.length === 0) return rest === undefined ? 'list[Any]' : `list[${union(member(asSchema(rest), 'Item'))}]`
    const parts = first.map((item, index) => member(item, String(index + 1)))
    const closed = rest === false || rest === undefined || schema['maxItems'] === first.length
    if (closed) return `tuple[${parts.map(union).join(', ')}]`
    return `list[${union([...parts.flat(), ...member(asSchema(rest), 'Item')])}]`
  }

  #object(schema: JsonSchemaObject, path: readonly string[], depth: number, reference: string | undefined): string {
    const shape = objectShape(this.#root, { ...schema, type: 'object' })
    if (shape === undefined || shape.properties.size === 0) {
      const named = schemaMap(schema['patternProperties']).map(([, value]) => value)
      const others = isSchemaObject(schema['additionalProperties']) ? [schema['additionalProperties']] : []
      const values = [...named, ...others].flatMap((value) =>
        this.#members(value, [...path, 'Value'], depth + 1, undefined),
      )
      return `dict[str, ${values.length === 0 ? 'Any' : union(values)}]`
    }
    if (this.#classes.list.length + this.#unfinished.size >= MAX_CLASSES) return 'dict[str, Any]'
    const wanted = this.#classes.wantedName(schema['title'], reference, path)
    const key = reference ?? `inline ${this.#unfinished.size}`
    const entry: { wanted: string; name: string | undefined } = { wanted, name: undefined }
    this.#unfinished.set(key, entry)
    const fields = this.#fields(shape, path, depth)
    this.#unfinished.delete(key)
    const name = this.#classes.add(wanted, entry.name, fields)
    if (reference !== undefined) this.#written.set(reference, name)
    return name
  }

  #fields({ properties, required }: ObjectShape, path: readonly string[], depth: number): PythonField[] {
    return [...properties].map(([key, schema]) => {
      const found = union(this.#members(schema, [...path, key], depth + 1, undefined))
      // A class that is not yet defined can only be named in quotes.
      const type = this.#namesUnfinished(found) ? pythonLiteral(found, '"') : found
      return { key, type: required.has(key) ? type : `NotRequired[${type}]`, note: noteOf(schema) }
    })
  }

  #namesUnfinished(type: string): boolean {
    for (const { name } of this.#unfinished.values()) {
      if (name !== undefined && type.split(/\W+/).includes(name)) return true
    }
    return false
  }
}

const SCALARS: ReadonlyMap<string, string> = new Map([
  ['string', 'str'],
  ['integer', 'int'],
  ['number', 'float'],
  ['boolean', 'bool'],
  ['null', 'None'],
])

function hasType(schema: JsonSchemaObject): boolean {
  return ['type', 'const', 'enum', '$ref', 'properties', 'items', 'prefixItems', 'anyOf', 'oneOf', 'allOf'].some(
    (keyword) => schema[keyword] !== undefined,
  )
}

function typesOf(schema: JsonSchemaObject): string[] {
  const { type } = schema
  if (typeof type === 'string') return [type]
  if (Array.isArray(type) && type.length > 0) return type.map(String)
  if (schema['properties'] !== undefined || isSchemaObject(schema['additionalProperties'])) return ['object']
  return schema['items'] !== undefined || schema['prefixItems'] !== undefined ? ['array'] : ['any']
}

/** `Literal[…]` of what Python allows there, and the types of the rest. */
function literals(values: readonly unknown[]): string[] {
  const literal = values.filter(
    (value) => typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value),
  )
  const rest = values.filter((value) => !literal.includes(value)).map(typeOfValue)
  if (literal.length === 0) return rest.length === 0 ? ['Any'] : rest
  const text = `Literal[${literal.map((value) => pythonLiteral(value, '"')).join(', ')}]`
  return text.length > MAX_LITERAL_CHARS ? [...literal.map(typeOfValue), ...rest] : [text, ...rest]
}

function typeOfValue(value: unknown): string {
  if (value === null) return 'None'
  if (Array.isArray(value)) return 'list[Any]'
  if (typeof value === 'string') return 'str'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float'
  return 'dict[str, Any]'
}

function union(members: readonly string[]): string {
  if (members.length === 0 || members.includes('Any')) return 'Any'
  const isLiteral = (member: string): boolean => member.startsWith('Literal[')
  const literal = [...new Set(members.filter(isLiteral).map((member) => member.slice('Literal['.length, -1)))]
  const all = new Set(members.filter((member) => !isLiteral(member) && member !== 'None'))
  // A function that takes floats takes ints.
  if (all.has('float')) all.delete('int')
  const parts = [
    ...(literal.length === 0 ? [] : [`Literal[${literal.join(', ')}]`]),
    ...all,
    ...(members.includes('None') ? ['None'] : []),
  ]
  return parts.join(' | ')
}

function noteOf(schema: JsonSchema): string {
  if (typeof schema === 'boolean') return ''
  const description = typeof schema['description'] === 'string' ? [schema['description']] : []
  return cut([...description, ...constraintWords(schema)].join('; '), MAX_NOTE_CHARS)
}
