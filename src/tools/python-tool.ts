import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { CheckedTool, ToolSignature } from '../protocol/index.ts'
import { didYouMean } from '../support/index.ts'
import { type ParameterSpec, parametersSchema } from './parameter-list.ts'
import type { PythonClass } from './python-classes.ts'
import { toolName } from './python-name.ts'
import { checkedOf, signatureOf } from './signature.ts'

/** What {@link definePythonTool} takes: `source` or `file`. */
export interface PythonToolOptions {
  /** The function of the source that is the tool. Default: the file's name, or the first function of the source. */
  readonly name?: string
  /** Python source that defines the function; it runs once per sandbox, before the scripts. */
  readonly source?: string
  /** A file with such source, read now. */
  readonly file?: string
  readonly description: string
  /** Undefined: the signature is not known, and the checker takes any arguments. */
  readonly parameters?: readonly ParameterSpec[]
  /** What it imports, as `pip` names it (`pandas>=2`). */
  readonly dependencies?: readonly string[]
  /** Secrets that its code reads. A script in the same process can read them too. */
  readonly secrets?: readonly string[]
  /** The sandbox that it belongs to, where a registry is not told another one. */
  readonly sandbox?: string
}

/** A tool that is Python itself and runs in the sandbox, beside the script. */
export interface PythonTool {
  readonly kind: 'python'
  readonly name: string
  readonly description: string
  readonly source: string
  readonly dependencies: readonly string[]
  readonly secrets: readonly string[]
  readonly sandbox: string | undefined
  readonly signature: ToolSignature
  readonly classes: readonly PythonClass[]
  readonly checked: CheckedTool
}

/**
 * Makes a tool of Python source. Nothing of it is run here.
 * @throws TypeError for an option that does not exist or does not fit, for source without that function, and for a name
 * that a script could not call; what Node throws for a file that cannot be read.
 */
export function definePythonTool(options: PythonToolOptions): PythonTool {
  for (const option of Object.keys(options)) {
    if (!OPTIONS.includes(option)) {
      throw new TypeError(`definePythonTool: no option ${JSON.stringify(option)}.${didYouMean(option, OPTIONS)}`)
    }
  }
  const { description, parameters, dependencies = [], secrets = [], sandbox } = options
  const source = sourceOf(options)
  const name = nameOf(options, source)
  if (toolName(name) !== name) throw new TypeError(`definePythonTool: ${JSON.stringify(name)} is no name of a function`)
  if (!functionNames(source).includes(name)) {
    throw new TypeError(`definePythonTool: the source defines no function ${name}`)
  }
  if (typeof description !== 'string') throw new TypeError(`definePythonTool ${name}: description must be a string`)
  const input = parameters === undefined ? { type: 'object' } : parametersSchema(parameters)
  const described = signatureOf({ name, description, input, output: undefined })
  return Object.freeze({
    kind: 'python',
    name,
    description,
    source,
    dependencies: [...dependencies],
    secrets: [...secrets],
    sandbox,
    signature: described.signature,
    classes: described.classes,
    checked: checkedOf(described, input, undefined),
  })
}

/** Whether a tool is one of {@link definePythonTool}. */
export function isPythonTool(tool: object): tool is PythonTool {
  return 'kind' in tool && tool.kind === 'python' && 'source' in tool
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

function sourceOf({ source, file }: PythonToolOptions): string {
  if ((source === undefined) === (file === undefined)) {
    throw new TypeError('definePythonTool: give source or file, one of the two')
  }
  return source ?? readFileSync(file ?? '', 'utf8')
}

function nameOf({ name, file }: PythonToolOptions, source: string): string {
  if (name !== undefined) return name
  if (file !== undefined) return basename(file, '.py')
  return functionNames(source).find((found) => !found.startsWith('_')) ?? ''
}

/** Functions at the top level; a look at the text is enough to tell a typing mistake. */
function functionNames(source: string): string[] {
  return [...source.matchAll(/^(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)/gm)].map(([, name = '']) => name)
}
