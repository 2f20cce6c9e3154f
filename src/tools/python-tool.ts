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
import { didYouMean } from '../support/index.ts'
import { type ParameterSpec, parametersSchema } from './parameter-list.ts'
import { type PythonFunction, pythonFunctions, type PythonParameter } from './python-function.ts'
import { toolName } from './python-name.ts'
import { checkedOf, type PythonSignature, signatureOf } from './signature.ts'
import { textOf } from './stub.ts'

/** What {@link definePythonTool} takes: `source` or `file`. */
export interface PythonToolOptions {
  /** The function of the source that is the tool. Default: the file's name, or the first function of the source. */
  readonly name?: string
  /** Python source that defines the function; at most 1 MiB. It is run anew for each script, in a module of its own. */
  readonly source?: string
  /** A file with such source in UTF-8, read now. */
  readonly file?: string
  /** Said to the model. Default: the function's docstring. */
  readonly description?: string
  /**
   * Types, texts and examples of parameters of the function. Which there are, and which may be left out, the source says.
   */
  readonly parameters?: readonly ParameterSpec[]
  /** What it imports, as `pip` names it (`pandas>=2`). */
  readonly dependencies?: readonly string[]
  /** Secrets that its code reads: a run that lacks one does not start. A script in the same process can read them too. */
  readonly secrets?: readonly string[]
  /** The sandbox that it belongs to, where a registry is not told another one. */
  readonly sandbox?: string
}

/** A tool that is Python itself and runs in the sandbox, beside the script. Made by {@link definePythonTool}. */
export interface PythonTool {
  readonly kind: 'python'
  readonly name: string
  readonly description: string
  readonly source: string
  readonly dependencies: readonly string[]
  readonly secrets: readonly string[]
  readonly sandbox: string | undefined
  readonly signature: ToolSignature
  /** What a model reads of it, and `describe_tool` returns: its header and its docstring. */
  readonly stub: string
  /** What the checker is told. */
  readonly checked: CheckedTool
}

/**
 * Makes a tool of Python source. Nothing of it is run here.
 * @throws TypeError for an option that does not exist or does not fit, for a file that cannot be read, for source without
 * that function, and for a name that a script could not call.
 */
export function definePythonTool(options: PythonToolOptions): PythonTool {
  for (const option of Object.keys(options)) {
    if (!OPTIONS.includes(option)) {
      throw new TypeError(`definePythonTool: no option ${JSON.stringify(option)}.${didYouMean(option, OPTIONS)}`)
    }
  }
  const { file, parameters = [], dependencies = [], secrets = [], sandbox } = options
  const source = sourceOf(options)
  const where = file === undefined ? 'the source' : file
  const found = functionOf(options, source, where)
  const { name } = found
  const description = options.description ?? found.docstring
  if (typeof description !== 'string' || (description === '' && options.description === undefined)) {
    throw new TypeError(`definePythonTool ${name}: give a description, as text, or the function a docstring`)
  }
  checkSecrets(name, secrets)
  checkParameters(found, parameters)
  const input = parametersSchema(parameters)
  const doc = description.includes(found.docstring) ? description : `${description.trim()}\n\n${found.docstring}`
  const declared = signatureOf({ name, description: doc, input, output: undefined, raises: false })
  const params = found.params.map((param) => parameterOf(param, declared.signature.params))
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
    checked: checkedTool(found, { ...declared, signature }, input),
  })
}

/** Whether a tool is one of {@link definePythonTool}. */
export function isPythonTool(tool: unknown): tool is PythonTool {
  if (typeof tool !== 'object' || tool === null || !('kind' in tool) || tool.kind !== 'python') return false
  return 'source' in tool && 'stub' in tool && 'checked' in tool
}

/** A Python tool as a run is given it. */
export function sourceOnWire({ name, source, stub }: PythonTool): PythonToolSource {
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
/** Of a default's text in a stub; longer ones say nothing to a model. */
const MAX_DEFAULT_CHARS = 80

function sourceOf({ source, file }: PythonToolOptions): string {
  if ((source === undefined) === (file === undefined)) {
    throw new TypeError('definePythonTool: give source or file, one of the two')
  }
  const given = source ?? textOfFile(file ?? '')
  if (typeof given !== 'string') throw new TypeError(`definePythonTool: source must be text, not ${typeof given}`)
  // One byte order mark is the encoding's; Python refuses it in a text.
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
  const functions = pythonFunctions(source)
  const names = [...functions.keys()]
  const last = names.at(-1)
  if (last !== undefined && functions.get(last) === undefined) {
    throw new TypeError(`definePythonTool: ${where} is no Python: the header of the function ${last} has no end`)
  }
  const ofFile = file === undefined ? undefined : basename(file, '.py')
  const name = given ?? ofFile ?? names.find((each) => !each.startsWith('_')) ?? names[0]
  if (name === undefined) throw new TypeError(`definePythonTool: ${where} defines no function`)
  if (toolName(name) !== name) {
    const of = file === undefined ? '' : ` (of ${file}): give name`
    throw new TypeError(`definePythonTool: ${JSON.stringify(name)} is no name of a function${of}`)
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
  throw new TypeError(`definePythonTool ${name}: secrets must be a list of names of environment variables`)
}

function checkParameters({ name, params, more, isDecorated }: PythonFunction, given: readonly ParameterSpec[]): void {
  if (more !== undefined || isDecorated) return
  const names = params.map((param) => param.name)
  const unknown = given.find((spec) => !names.includes(spec.name))
  if (unknown === undefined) return
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`
  throw new TypeError(`definePythonTool ${name}: the function has no parameter ${JSON.stringify(unknown.name)}: ${has}`)
}

function parameterOf(param: PythonParameter, declared: readonly ToolParameter[]): ToolParameter {
  const known = declared.find(({ name }) => name === param.name)
  const preset = literalOf(param.default)
  return {
    name: param.name,
    ...(param.kind === 'plain' ? {} : { kind: param.kind }),
    type: param.annotation ?? known?.type ?? 'Any',
    required: param.default === undefined,
    nullable: known?.nullable ?? true,
    ...(preset === undefined ? {} : { default: preset }),
  }
}

/** The value of a default that is a plain literal. */
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

/** A decorator may change what the function takes and whether it is one to await. */
function checkedTool(found: PythonFunction, signature: PythonSignature, input: Record<string, unknown>): CheckedTool {
  const { isAsync, isDecorated, rest } = found
  const checked = checkedOf(signature, input, undefined)
  return isDecorated
    ? { ...checked, params: [], more: true, rest: true, awaits: false }
    : { ...checked, rest: rest !== undefined, awaits: isAsync }
}
