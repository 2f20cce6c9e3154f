import { toPythonLiteral } from './python-literal.ts'
import type { JsonSchemaObject } from './standard-schema.ts'

/** One parameter of a tool, in list form. */
export interface ParameterSpec {
  readonly name: string
  /**
   * `str`, `int`, `float`, `bool`, `list`, `dict`, `any`, their names in JSON Schema, or a list of one of them:
   * `list[str]`.
   */
  readonly type: string
  readonly description?: string
  /** Makes the parameter optional. */
  readonly default?: unknown
  /** Default: true if there is no `default`. */
  readonly required?: boolean
  /** The allowed values. */
  readonly options?: readonly unknown[]
  readonly examples?: readonly unknown[]
}

/**
 * The JSON Schema of a list of parameters, for the `input` of a tool.
 * @throws TypeError for an unknown type, a duplicate name, and a default that is not one of the options.
 */
export function parametersSchema(parameters: readonly ParameterSpec[]): JsonSchemaObject {
  const properties: Record<string, unknown> = {}
  for (const parameter of parameters) {
    if (typeof parameter.name !== 'string' || parameter.name === '' || parameter.name === '__proto__') {
      throw new TypeError(`parameters: ${JSON.stringify(parameter.name)} is not a valid parameter name`)
    }
    if (Object.hasOwn(properties, parameter.name)) {
      throw new TypeError(`parameters: ${JSON.stringify(parameter.name)} is a duplicate name`)
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
      `parameters: the default ${toPythonLiteral(preset)} of ${JSON.stringify(parameter.name)} is not one of its options`,
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
    throw new TypeError(
      `parameters: ${JSON.stringify(name)} has the unknown type ${JSON.stringify(type)}; use one of ${[...TYPES.keys()].join(', ')}`,
    )
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
