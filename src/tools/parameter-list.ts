import { pythonLiteral } from './python-literal.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** One parameter in the mission's list form. */
export interface ParameterSpec {
  readonly name: string
  /**
   * `str`, `int`, `float`, `bool`, `list`, `dict`, `any` or their names in JSON Schema, and lists of one of them:
   * `list[str]`.
   */
  readonly type: string
  readonly description?: string
  /** Makes the parameter optional. */
  readonly default?: unknown
  /** Default: true where there is no `default`. */
  readonly required?: boolean
  /** The only values that are allowed. */
  readonly options?: readonly unknown[]
  readonly examples?: readonly unknown[]
}

/**
 * JSON Schema of a list of parameters, to be the `input` of a tool.
 * @throws TypeError for a type that is not known, a name that stands twice, and a default that is none of the options.
 */
export function parametersSchema(parameters: readonly ParameterSpec[]): JsonSchemaObject {
  const properties: Record<string, unknown> = {}
  for (const parameter of parameters) {
    if (typeof parameter.name !== 'string' || parameter.name === '' || parameter.name === '__proto__') {
      throw new TypeError(`parameters: ${JSON.stringify(parameter.name)} is no name`)
    }
    if (Object.hasOwn(properties, parameter.name)) {
      throw new TypeError(`parameters: ${JSON.stringify(parameter.name)} stands twice`)
    }
    properties[parameter.name] = schemaOf(parameter)
  }
  const required = parameters.filter((parameter) => parameter.required ?? parameter.default === undefined)
  return {
    type: 'object',
    properties,
    required: required.map(({ name }) => name),
    additionalProperties: false,
  }
}

function schemaOf(parameter: ParameterSpec): JsonSchemaObject {
  const { description, options, examples } = parameter
  const preset = parameter.default
  if (options !== undefined && preset !== undefined && !options.includes(preset)) {
    throw new TypeError(
      `parameters: the default ${pythonLiteral(preset)} of ${JSON.stringify(parameter.name)} is none of its options`,
    )
  }
  return {
    ...typeOf(parameter),
    ...(description === undefined ? {} : { description }),
    ...(preset === undefined ? {} : { default: preset }),
    ...(options === undefined ? {} : { enum: [...options] }),
    ...(examples === undefined ? {} : { examples: [...examples] }),
  }
}

function typeOf({ name, type }: ParameterSpec): JsonSchemaObject {
  const inner = /^(?:list|array)\[(.+)\]$/.exec(type)?.[1]
  if (inner !== undefined) return { type: 'array', items: typeOf({ name, type: inner }) }
  const known = TYPES.get(type)
  if (known === undefined) {
    throw new TypeError(`parameters: ${JSON.stringify(name)} has the unknown type ${JSON.stringify(type)}`)
  }
  return known === 'any' ? {} : { type: known }
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['str', 'string'],
  ['int', 'integer'],
  ['float', 'number'],
  ['bool', 'boolean'],
  ['list', 'array'],
  ['dict', 'object'],
  ['any', 'any'],
  ...['string', 'integer', 'number', 'boolean', 'array', 'object'].map((name): [string, string] => [name, name]),
])
