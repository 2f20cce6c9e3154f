import { describeConstraints, truncateLine } from './constraints.ts'
import { asSchema, isSchemaObject, type JsonSchema, resolveReference, schemaList, schemaMap } from './json-schema.ts'
import { type ObjectShape, objectShapeOf, type Steps, makeSharedSteps } from './object-shape.ts'
import type { PythonClasses, PythonField } from './python-classes.ts'
import { fitsLiteral, literalTypeOf, toPythonLiteral } from './python-literal.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** Limits per tool; beyond them, annotations are `Any` or `dict`. */
const MAX_DEPTH = 12
const MAX_CLASSES = 100
const MAX_STEPS = 5000
const MAX_NOTE_CHARS = 100

/** Writes Python annotations for the schemas below one root; the classes of objects are added to `classes`. */
export class PythonTypes {
  readonly #root: JsonSchemaObject
  readonly #classes: PythonClasses
  /** Class names by schema object: a definition can be used in many places. */
  readonly #written = new Map<JsonSchemaObject, string>()
  /** Object schemas whose class is being written, with its name once a nested schema refers to it. */
  readonly #unfinished = new Map<JsonSchemaObject, { readonly wanted: string; name: string | undefined }>()
  /** Other schemas in progress. */
  readonly #open = new Set<JsonSchemaObject>()
  readonly #shapeSteps: Steps = makeSharedSteps()
  #steps = 0

  constructor(root: JsonSchemaObject, classes: PythonClasses) {
    this.#root = root
    this.#classes = classes
  }

  /** The annotation of a schema. `path` (tool, parameter, field) names a class without a title. */
  annotation(schema: JsonSchema, path: readonly string[]): string {
    return union(this.#members(schema, { path, depth: 0, reference: undefined }))
  }

  /** The members of the union of all types that a schema admits. */
  #members(schema: JsonSchema, place: Place): string[] {
    this.#steps += 1
    if (typeof schema === 'boolean' || place.depth > MAX_DEPTH || this.#steps > MAX_STEPS) return ['Any']
    const name = this.#written.get(schema) ?? this.#nameOfUnfinished(schema)
    if (name !== undefined) return [name]
    // Recursive, without a class in between that has a name.
    if (this.#open.has(schema)) return ['Any']
    this.#open.add(schema)
    const members = this.#findMembers(schema, place)
    this.#open.delete(schema)
    return schema['nullable'] === true ? [...members, 'None'] : members
  }

  #findMembers(schema: JsonSchemaObject, place: Place): string[] {
    const { $ref } = schema
    if (typeof $ref === 'string') {
      const target = resolveReference(this.#root, $ref)
      return target === undefined ? ['Any'] : this.#members(target, { ...nestedPlace(place), reference: $ref })
    }
    if ('const' in schema) return literals([schema['const']])
    if (Array.isArray(schema['enum'])) return literals(schema['enum'])
    return this.#alternatives(schema, place) ?? this.#plain(schema, place)
  }

  #nameOfUnfinished(schema: JsonSchemaObject): string | undefined {
    const unfinished = this.#unfinished.get(schema)
    if (unfinished === undefined) return undefined
    unfinished.name ??= this.#classes.reserve(unfinished.wanted)
    return unfinished.name
  }

  /** Members of `anyOf` and `oneOf`, unless these only restrict the other keywords. */
  #alternatives(schema: JsonSchemaObject, place: Place): string[] | undefined {
    const branches = [...schemaList(schema['anyOf']), ...schemaList(schema['oneOf'])]
    if (branches.length === 0 || schema['properties'] !== undefined) return undefined
    if (hasType(schema) && !branches.every((branch) => isSchemaObject(branch) && hasType(branch))) return undefined
    const many = branches.filter((branch) => this.#shapeOf(branch) !== undefined).length > 1
    return branches.flatMap((branch, index) =>
      this.#members(branch, many ? nestedPlace(place, String(index + 1)) : { ...place, depth: place.depth + 1 }),
    )
  }

  #plain(schema: JsonSchemaObject, place: Place): string[] {
    const all = schemaList(schema['allOf'])
    if (all.length > 0 && schema['type'] === undefined) {
      const shape = this.#shapeOf(schema)
      if (shape !== undefined && shape.properties.size > 0) return [this.#object(schema, place)]
      const members = all.map((part) => this.#members(part, nestedPlace(place)))
      return members.find((found) => !found.includes('Any')) ?? ['Any']
    }
    return typesOf(schema).map((type) => {
      if (type === 'array') return this.#array(schema, place)
      if (type === 'object') return this.#object(schema, place)
      return SCALARS.get(type) ?? 'Any'
    })
  }

  #shapeOf(schema: JsonSchema): ObjectShape | undefined {
    return objectShapeOf(this.#root, schema, this.#shapeSteps)
  }

  #array(schema: JsonSchemaObject, place: Place): string {
    const { items } = schema
    const first = schemaList(schema['prefixItems'] ?? items)
    const rest = Array.isArray(items) ? schema['additionalItems'] : items
    const member = (item: JsonSchema, name: string): string[] => this.#members(item, nestedPlace(place, name))
    if (first.length === 0) return rest === undefined ? 'list[Any]' : `list[${union(member(asSchema(rest), 'Item'))}]`
    const parts = first.map((item, index) => member(item, String(index + 1)))
    const closed = rest === false || rest === undefined || schema['maxItems'] === first.length
    if (closed) return `tuple[${parts.map(union).join(', ')}]`
    return `list[${union([...parts.flat(), ...member(asSchema(rest), 'Item')])}]`
  }

  #object(schema: JsonSchemaObject, place: Place): string {
    const shape = this.#shapeOf({ ...schema, type: 'object' })
    if (shape === undefined || shape.properties.size === 0) {
      const named = schemaMap(schema['patternProperties']).map(([, value]) => value)
      const others = isSchemaObject(schema['additionalProperties']) ? [schema['additionalProperties']] : []
      const values = [...named, ...others].flatMap((value) => this.#members(value, nestedPlace(place, 'Value')))
      return `dict[str, ${values.length === 0 ? 'Any' : union(values)}]`
    }
    if (this.#classes.list.length + this.#unfinished.size >= MAX_CLASSES) return 'dict[str, Any]'
    const wanted = this.#classes.preferredNameOf(schema['title'], place.reference, place.path)
    const entry: { readonly wanted: string; name: string | undefined } = { wanted, name: undefined }
    this.#unfinished.set(schema, entry)
    const fields = this.#fields(shape, place)
    this.#unfinished.delete(schema)
    const name = this.#classes.add(wanted, entry.name, fields)
    this.#written.set(schema, name)
    return name
  }

  #fields({ properties, required }: ObjectShape, place: Place): PythonField[] {
    return [...properties].map(([key, schema]) => {
      const found = union(this.#members(schema, nestedPlace(place, key)))
      // The name of a class that is not yet defined must be quoted.
      const type = this.#namesUnfinished(found) ? toPythonLiteral(found, '"') : found
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

/** The place of a schema, for the name of a class and the limit of the depth. */
interface Place {
  readonly path: readonly string[]
  readonly depth: number
  /** The `$ref` that led directly to this schema. */
  readonly reference: string | undefined
}

function nestedPlace(place: Place, name?: string): Place {
  const path = name === undefined ? place.path : [...place.path, name]
  return { path, depth: place.depth + 1, reference: undefined }
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

/** `Literal[…]` of the values that Python allows in it, and the types of the others. */
function literals(values: readonly unknown[]): string[] {
  if (values.length === 0) return ['Any']
  const literal = values.filter(fitsLiteral)
  const text = literalTypeOf(literal)
  const others = values.filter((value) => !fitsLiteral(value)).map(typeOfValue)
  return [...(text === undefined ? literal.map(typeOfValue) : [text]), ...others]
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
  // In annotations, `float` includes `int`.
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
  return truncateLine([...description, ...describeConstraints(schema)].join('; '), MAX_NOTE_CHARS)
}
