import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { messageOf } from '../errors/index.ts'
import {
  CAPS,
  type CheckedTool,
  type PythonToolSource,
  type ToolParameter,
  type ToolSignature,
} from '../protocol/index.ts'
import { refuseUnknown } from '../support/index.ts'
import { normalizeInput, type NormalizedInput } from './normalized-schema.ts'
import { type ParameterSpec, parametersSchema } from './parameter-list.ts'
import { type PythonFunction, parsePythonFunctions, type PythonParameter } from './python-function.ts'
import { literalTypeOf } from './python-literal.ts'
import { toolName } from './python-name.ts'
import { checkedOf, type PythonSignature, signatureOf } from './signature.ts'
import { textOf } from './stub.ts'

/** Options of {@link definePythonTool}; give `source` or `file`. */
export interface PythonToolOptions {
  /** The name of the function in the source. Default: the name of the file, or the first function. */
  readonly name?: string
  /** Python source that defines the function; at most 1 MiB. It runs again for each script, in a module of its own. */
  readonly source?: string
  /** A file with the source in UTF-8. It is read once, now. */
  readonly file?: string
  /** The description for the model. Default: the docstring of the function. */
  readonly description?: string
  /**
   * Types, descriptions and examples of parameters. The source defines which parameters exist and which are optional.
   */
  readonly parameters?: readonly ParameterSpec[]
  /** The packages that it imports, as `pip` names them (`pandas>=2`). */
  readonly dependencies?: readonly string[]
  /** Secrets that its code reads: a run without them does not start. A script in the same process can read them, too. */
  readonly secrets?: readonly string[]
  /** The sandbox of the tool, unless the registry names another. */
  readonly sandbox?: string
}

/** A tool in Python that runs in the sandbox, in the process of the script. Made by {@link definePythonTool}. */
export interface PythonTool {
  readonly kind: 'python'
  readonly name: string
  readonly description: string
  readonly source: string
  readonly dependencies: readonly string[]
  readonly secrets: readonly string[]
  readonly sandbox: string | undefined
  readonly signature: ToolSignature
  /** The header and docstring: the text for the model, and the result of `describe_tool`. */
  readonly stub: string
  /** The tool for the checker. */
  readonly checked: CheckedTool
}

/**
 * Makes a tool from Python source, without running it.
 * @throws TypeError for an unknown or invalid option, an unreadable file, source without
 * that function, and a name that a script cannot call.
 */
export function definePythonTool(options: PythonToolOptions): PythonTool {
  refuseUnknown('definePythonTool', options, OPTIONS)
  const { file, parameters = [], dependencies = [], secrets = [], sandbox } = options
  const source = sourceOf(options)
  const where = file === undefined ? 'the source' : file
  const found = functionOf(options, source, where)
  const { name } = found
  const description = options.description ?? found.docstring
  if (typeof description !== 'string' || (description === '' && options.description === undefined)) {
    throw new TypeError(`definePythonTool ${name}: pass a description as text, or add a docstring to the function`)
  }
  checkSecrets(name, secrets)
  checkParameters(found, parameters)
  const input = normalizeInput(parametersSchema(parameters))
  const doc = description.includes(found.docstring) ? description : `${description.trim()}\n\n${found.docstring}`
  const declared = signatureOf({ name, description: doc, input, output: undefined })
  const params = found.params.map((param) => {
    const known = declared.signature.params.find((each) => each.name === param.name)
    return parameterOf(param, known, parameters.find((spec) => spec.name === param.name)?.options)
  })
  const signature: ToolSignature = {
    ...declared.signature,
    params,
    more: found.more !== undefined,
    returns: found.returns ?? 'Any',
  }
  return Object.freeze({
    kind: 'python',
    name,
    description,
    source,
    dependencies: [...dependencies],
    secrets: [...secrets],
    sandbox,
    signature,
    stub: textOf(headOf(found, params), signature.doc),
    checked: checkedToolOf(found, { ...declared, signature }, input),
  })
}

/** True for a tool made by {@link definePythonTool}. */
export function isPythonTool(tool: unknown): tool is PythonTool {
  if (typeof tool !== 'object' || tool === null || !('kind' in tool) || tool.kind !== 'python') return false
  return 'source' in tool && 'stub' in tool && 'checked' in tool
}

/** A Python tool in a request to run. */
export function toWireSource({ name, source, stub }: PythonTool): PythonToolSource {
  return { name, source, stub }
}

const OPTIONS: readonly string[] = [
  'name',
  'source',
  'file',
  'description',
  'parameters',
  'dependencies',
  'secrets',
  'sandbox',
] satisfies (keyof PythonToolOptions)[]
const SECRET_NAME = /^[A-Za-z_]\w*$/
/** Maximum characters of a default value in a stub. */
const MAX_DEFAULT_CHARS = 80

function sourceOf({ source, file }: PythonToolOptions): string {
  if ((source === undefined) === (file === undefined)) {
    throw new TypeError('definePythonTool: give either source or file')
  }
  const given = source ?? textOfFile(file ?? '')
  if (typeof given !== 'string') throw new TypeError(`definePythonTool: source must be text, not ${typeof given}`)
  // A byte order mark belongs to the encoding; Python refuses it in a text.
  const text = given.startsWith('\uFEFF') ? given.slice(1) : given
  const bytes = Buffer.byteLength(text)
  if (bytes > CAPS.toolSourceBytes) {
    const what = file === undefined ? 'the source' : file
    throw new TypeError(`definePythonTool: ${what} has ${bytes} bytes; at most ${CAPS.toolSourceBytes} are allowed`)
  }
  return text
}

function textOfFile(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    throw new TypeError(`definePythonTool: the file ${file} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

function functionOf({ name: given, file }: PythonToolOptions, source: string, where: string): PythonFunction {
  const functions = parsePythonFunctions(source)
  const names = [...functions.keys()]
  const last = names.at(-1)
  if (last !== undefined && functions.get(last) === undefined) {
    throw new TypeError(
      `definePythonTool: ${where} is not valid Python: the header of the function ${last} does not end`,
    )
  }
  const ofFile = file === undefined ? undefined : basename(file, '.py')
  const name = given ?? ofFile ?? names.find((each) => !each.startsWith('_')) ?? names[0]
  if (name === undefined) throw new TypeError(`definePythonTool: ${where} defines no function`)
  if (toolName(name) !== name) {
    const of = file === undefined ? '' : ` (of ${file}); pass the option name`
    throw new TypeError(`definePythonTool: ${JSON.stringify(name)} is not a Python function name${of}`)
  }
  const found = functions.get(name)
  if (found === undefined) {
    const others = names.length === 0 ? '' : `; it defines ${names.slice(0, 10).join(', ')}`
    throw new TypeError(`definePythonTool: ${where} defines no function ${name}${others}`)
  }
  return found
}

function checkSecrets(name: string, secrets: unknown): void {
  if (Array.isArray(secrets) && secrets.every((secret) => typeof secret === 'string' && SECRET_NAME.test(secret)))
    return
  throw new TypeError(
    `definePythonTool ${name}: secrets must be a list of names of environment variables (letters, digits and "_", no digit first)`,
  )
}

function checkParameters({ name, params, more, isDecorated }: PythonFunction, given: readonly ParameterSpec[]): void {
  if (more !== undefined || isDecorated) return
  const names = params.map((param) => param.name)
  const unknown = given.find((spec) => !names.includes(spec.name))
  if (unknown === undefined) return
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
  throw new TypeError(`definePythonTool ${name}: the function has no parameter ${JSON.stringify(unknown.name)}: ${has}`)
}

function parameterOf(
  param: PythonParameter,
  known: ToolParameter | undefined,
  options: readonly unknown[] | undefined,
): ToolParameter {
  const preset = literalOf(param.default)
  return {
    name: param.name,
    ...(param.kind === 'plain' ? {} : { kind: param.kind }),
    type: typeOfOptions(param, options) ?? param.annotation ?? known?.type ?? 'Any',
    required: param.default === undefined,
    nullable: known?.nullable ?? true,
    ...(preset === undefined ? {} : { default: preset }),
  }
}

/** `Literal[…]` of the options, which are more precise than the annotation in the source; undefined if it cannot be written. */
function typeOfOptions(param: PythonParameter, options: readonly unknown[] = []): string | undefined {
  const literal = literalTypeOf(options.filter((option) => option !== null))
  if (literal === undefined) return undefined
  return options.includes(null) || param.default === 'None' ? `${literal} | None` : literal
}

/** The value of a default, if it is a plain literal. */
function literalOf(text: string | undefined): unknown {
  if (text === undefined) return undefined
  if (LITERALS.has(text)) return LITERALS.get(text)
  if (/^-?(?:0|[1-9]\d{0,14})$/.test(text)) return Number(text)
  return /^(["'])([^"'\\\n]*)\1$/.exec(text)?.[2]
}

const LITERALS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['True', true],
  ['False', false],
  ['None', null],
])

/** `def clean(rows: list, *, how='fast') -> list:`. An async function is called like any other. */
function headOf({ name, typeParameters, params, rest, more, returns }: PythonFunction, typed: ToolParameter[]): string {
  const written: string[] = []
  for (const [index, param] of params.entries()) {
    const before = params[index - 1]?.kind
    if (before === 'positional' && param.kind !== 'positional') written.push('/')
    if (param.kind === 'keyword' && before !== 'keyword') written.push(rest ?? '*')
    written.push(parameterText(param, typed[index]?.type ?? 'Any'))
  }
  if (params.at(-1)?.kind === 'positional') written.push('/')
  if (rest !== undefined && params.at(-1)?.kind !== 'keyword') written.push(rest)
  if (more !== undefined) written.push(more)
  const result = returns === undefined ? '' : ` -> ${returns}`
  return `def ${name}${typeParameters}(${written.join(', ')})${result}:`
}

function parameterText({ name, default: preset }: PythonParameter, type: string): string {
  const head = type === 'Any' ? name : `${name}: ${type}`
  if (preset === undefined) return head
  const shown = preset.length > MAX_DEFAULT_CHARS || preset.includes('\n') ? '...' : preset
  return type === 'Any' ? `${head}=${shown}` : `${head} = ${shown}`
}

/** A decorator may change the arguments of the function, and whether it is async. */
function checkedToolOf(found: PythonFunction, signature: PythonSignature, input: NormalizedInput): CheckedTool {
  const { isAsync, isDecorated, rest } = found
  const checked = checkedOf(signature, input, undefined)
  return isDecorated
    ? { ...checked, params: [], more: true, rest: true, awaits: false }
    : { ...checked, rest: rest !== undefined, awaits: isAsync }
}
