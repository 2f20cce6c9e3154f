import { messageOf } from '../errors/index.ts'
import type { CheckedTool, ToolSignature } from '../protocol/index.ts'
import { jsonSchemaOf } from './json-schema.ts'
import type { PythonClass } from './python-classes.ts'
import { toolName } from './python-name.ts'
import { keyOf, pathText, shown } from './schema-errors.ts'
import { checkedOf, type PythonSignature, signatureOf } from './signature.ts'
import type { SchemaIssue } from './standard-schema.ts'
import type { Tool, ToolContext, ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import { holdsProtoKey } from './unsafe-key.ts'
import { validatorOf } from './validator.ts'

/** A tool, ready to be called: its schemas compiled, its function in Python known. */
export interface PreparedTool {
  /** As the script calls it: a Python identifier. */
  readonly name: string
  readonly givenName: string
  readonly description: string
  readonly effect: ToolEffect
  readonly signature: ToolSignature
  /** The classes that the signature names, one by one. */
  readonly classes: readonly PythonClass[]
  /** What the checker is told; made when it is first asked for. */
  readonly checked: CheckedTool
  /** In milliseconds, for one call. */
  readonly timeoutMs: number | undefined
  readonly maxCalls: number | undefined
  readonly concurrency: number | undefined
  /** Names of environment variables of the host whose values must not cross into the sandbox in error texts. */
  readonly secrets: readonly string[]
  /**
   * The input as `execute` takes it.
   * @throws ToolCallError `invalid_arguments`; the message names the parameter and what is expected.
   */
  validateInput(args: Readonly<Record<string, unknown>>): Promise<unknown>
  /**
   * The answer as it is to be sent.
   * @throws ToolCallError `invalid_result`; the message names the place, and no value.
   */
  validateOutput(value: unknown): Promise<unknown>
  execute(input: unknown, context: ToolContext): unknown
}

/** What {@link prepareTool} may be told. */
export interface PrepareOptions {
  /** Stands before the names of classes that have a title. */
  readonly classPrefix?: string
}

const MAX_ISSUES = 5

/**
 * Prepares a tool.
 * @throws TypeError that names the tool, for a name that no function can have and for a schema that is not sound.
 */
export function prepareTool(tool: Tool, { classPrefix = '' }: PrepareOptions = {}): PreparedTool {
  const name = toolName(tool.name)
  const input = part(tool, 'input', () => jsonSchemaOf(tool.input, 'input'))
  const { output: given } = tool
  const output = given === undefined ? undefined : part(tool, 'output', () => jsonSchemaOf(given, 'output'))
  const checkInput = part(tool, 'input', () => validatorOf(tool.input, input))
  const checkOutput =
    given === undefined || output === undefined ? undefined : part(tool, 'output', () => validatorOf(given, output))
  const described = part(tool, 'input', () =>
    signatureOf({ name, description: tool.description, input, output }, classPrefix),
  )
  let checked: CheckedTool | undefined
  return {
    name,
    givenName: tool.name,
    description: tool.description,
    effect: tool.effect,
    signature: described.signature,
    classes: described.classes,
    get checked() {
      return (checked ??= checkedOf(described, input, output))
    },
    timeoutMs: tool.timeoutMs,
    maxCalls: tool.maxCalls,
    concurrency: tool.concurrency,
    secrets: tool.secrets,
    async validateInput(args) {
      if (holdsProtoKey(args)) throw invalidArguments(name, 'the key "__proto__" is not allowed')
      const result = await checkInput(args)
      if (result.issues === undefined) return result.value
      throw invalidArguments(name, inputProblem(result.issues, args, described))
    },
    async validateOutput(value) {
      if (checkOutput === undefined) return value
      const result = await checkOutput(value)
      if (result.issues === undefined) return result.value
      throw new ToolCallError(
        'invalid_result',
        `${name}: the answer does not match the tool's output schema: ${outputProblem(result.issues)}`,
      )
    },
    execute: (value, context) => tool.execute(value, context),
  }
}

function part<T>(tool: Tool, side: 'input' | 'output', make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new TypeError(`tool ${JSON.stringify(tool.name)}: its ${side} schema ${messageOf(error)}`, { cause: error })
  }
}

function invalidArguments(name: string, problem: string): ToolCallError {
  return new ToolCallError('invalid_arguments', `${name}: ${problem}`)
}

/** By the names that the script wrote. */
function inputProblem(issues: readonly SchemaIssue[], args: unknown, { names }: PythonSignature): string {
  return joined(
    issues.map(({ message, path = [] }) => {
      const { value, missing } = valueAt(args, path)
      const [first, ...rest] = path.map(keyOf)
      const place = path.length === 0 ? 'the arguments' : pathText([names.get(String(first)) ?? first, ...rest])
      if (missing) return `${place}: is missing${MISSING.test(message) ? '' : `: ${message}`}`
      return `${place}: ${message}${NO_VALUE.test(message) ? '' : `, got ${shown(value)}`}`
    }),
  )
}

/** The value is the host's own, and stays there. */
function outputProblem(issues: readonly SchemaIssue[]): string {
  return joined(issues.map(({ message, path = [] }) => `${path.length === 0 ? 'it' : pathText(path)}: ${message}`))
}

/** What validation libraries say of a field that is not there. */
const MISSING = /undefined|required|missing/i
/** Texts that say enough without the value. */
const NO_VALUE = /is missing|no such name/

function joined(problems: readonly string[]): string {
  const shownProblems = problems.slice(0, MAX_ISSUES).join('; ')
  return problems.length > MAX_ISSUES ? `${shownProblems}; and ${problems.length - MAX_ISSUES} more` : shownProblems
}

function valueAt(value: unknown, path: readonly unknown[]): { value: unknown; missing: boolean } {
  let place = value
  for (const step of path) {
    const key = keyOf(step)
    if (typeof key === 'symbol' || typeof place !== 'object' || place === null || !Object.hasOwn(place, String(key))) {
      return { value: undefined, missing: true }
    }
    place = (place as Record<string, unknown>)[String(key)]
  }
  return { value: place, missing: false }
}
