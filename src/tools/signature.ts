import type { CheckedTool, ToolParameter, ToolSignature } from '../protocol/index.ts'
import { truncateAndCount } from '../support/index.ts'
import type { NormalizedInput, NormalizedOutput, NormalizedParameter } from './normalized-schema.ts'
import { type PythonClass, PythonClasses } from './python-classes.ts'
import { identifier } from './python-name.ts'
import { PythonTypes } from './python-type.ts'

/** The input of {@link signatureOf}. */
export interface ToolDescription {
  /** The Python name. */
  readonly name: string
  readonly description: string
  readonly input: NormalizedInput
  /** Undefined if the tool has no output schema. */
  readonly output: NormalizedOutput | undefined
}

/** A signature, the classes that it names, and the Python name of each parameter. */
export interface PythonSignature {
  readonly signature: ToolSignature
  readonly classes: readonly PythonClass[]
  /** Key in the schema → Python name, in the order of the schema. */
  readonly names: ReadonlyMap<string, string>
}

const MAX_DOC_CHARS = 16_000

/** The Python signature of a tool. `classPrefix` is a prefix of the names of classes with a title. */
export function signatureOf(tool: ToolDescription, classPrefix = ''): PythonSignature {
  const { name, input, output } = tool
  const classes = new PythonClasses(classPrefix)
  const types = new PythonTypes(input.json, classes)
  const names = nameParameters(input)
  const parameters = input.parameters.map((parameter) => {
    const type = types.annotation(parameter.schema, [name, parameter.key])
    return parameterOf(parameter, names.get(parameter.key) ?? parameter.key, type)
  })
  // In Python, required parameters come first.
  const params = [...parameters.filter(({ required }) => required), ...parameters.filter(({ required }) => !required)]
  const returns =
    output === undefined ? 'Any' : new PythonTypes(output.json, classes).annotation(output.json, [name, 'Result'])
  return {
    signature: {
      name,
      params,
      more: input.more,
      returns,
      doc: docOf(tool, params),
      types: classes.list.map(({ source }) => source).join('\n\n'),
    },
    classes: classes.list,
    names,
  }
}

/** A tool for the checker. */
export function checkedOf(
  { signature, names }: PythonSignature,
  { parameters }: NormalizedInput,
  output: NormalizedOutput | undefined,
): CheckedTool {
  return {
    ...signature,
    schemas: Object.fromEntries(parameters.map(({ key, resolved }) => [names.get(key) ?? key, resolved])),
    result: output?.resolved ?? true,
  }
}

/** A Python name for each key. A key that is a valid name keeps it. */
function nameParameters({ parameters, more }: NormalizedInput): Map<string, string> {
  const taken = new Set(more ? ['more'] : [])
  const names = new Map<string, string>()
  const keys = parameters.map(({ key }) => key)
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

function parameterOf(parameter: NormalizedParameter, name: string, type: string): ToolParameter {
  const { key, required, preset } = parameter
  const nullable = type === 'Any' || parameter.nullable
  const base = { name, ...(key === name ? {} : { key }) }
  if (required) return { ...base, type, required, nullable }
  if (preset !== undefined && (preset !== null || nullable)) {
    return { ...base, type, required, nullable, default: preset }
  }
  // A missing argument is `None` in Python and is not sent.
  return { ...base, type: nullable ? type : `${type} | None`, required, nullable }
}

function docOf({ description, input, output }: ToolDescription, params: readonly ToolParameter[]): string {
  const texts = new Map(input.parameters.map(({ key, text }) => [key, text]))
  const args = params.flatMap((param) => {
    const text = texts.get(param.key ?? param.name) ?? ''
    return text === '' ? [] : [`    ${param.name}: ${indent(text)}`]
  })
  const result = output?.text ?? ''
  const sections = [
    description.trim(),
    ...(args.length === 0 ? [] : [`Args:\n${args.join('\n')}`]),
    ...(result === '' ? [] : [`Returns:\n    ${indent(result)}`]),
  ]
  return toPrintable(sections.filter((section) => section !== '').join('\n\n'))
}

function indent(text: string): string {
  return text.replaceAll(/\n\s*/g, '\n        ')
}

/** Text that is safe in a docstring: it cannot end it, and has no invisible or direction-changing characters. */
function toPrintable(text: string): string {
  const clean = text
    .replaceAll(/\r\n?|[\u2028\u2029]/g, '\n')
    .replaceAll(/[^\P{C}\n\t\u200C\u200D]/gu, '')
    .replaceAll('"""', "'''")
  return truncateAndCount(clean, MAX_DOC_CHARS)
}
