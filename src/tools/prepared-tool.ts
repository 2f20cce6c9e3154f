import { messageOf } from '../errors/index.ts'
import type { CheckedTool, ToolSignature } from '../protocol/index.ts'
import type { Requester } from '../judge/index.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { normalizeInput, normalizeOutput } from './normalized-schema.ts'
import { redactVariables } from './own-secrets.ts'
import type { PythonClass } from './python-classes.ts'
import { toolName } from './python-name.ts'
import { formatForPython, joinProblems, keyOf, pathText } from './schema-errors.ts'
import { checkedOf, type PythonSignature, signatureOf } from './signature.ts'
import type { SchemaIssue } from './standard-schema.ts'
import type { Tool, ToolContext, ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import { holdsProtoKey } from './unsafe-key.ts'
import { validatorOf } from './validator.ts'

/** A tool that is ready to be called: with compiled schemas and a Python signature. */
export interface PreparedTool {
  /** The name of its Python function. */
  readonly name: string
  readonly givenName: string
  readonly description: string
  readonly effect: ToolEffect
  readonly signature: ToolSignature
  /** The classes that the signature names. */
  readonly classes: readonly PythonClass[]
  /** The tool for the checker; made on first use. */
  readonly checked: CheckedTool
  /** The maximum time of one call, in milliseconds. */
  readonly timeoutMs: number
  readonly maxCalls: number | undefined
  readonly concurrency: number | undefined
  readonly approve: Tool['approve']
  /** Redacts the tool's own secrets in an error text. */
  readonly redactOwn: (text: string, isCut?: boolean) => string
  /**
   * Validates arguments; returns the input for `execute`. Requesters, one for each run, take turns at the judge's process.
   * @throws ToolCallError `invalid_arguments`; the message names the parameter and the expected value.
   */
  validateInput(args: Readonly<Record<string, unknown>>, requester?: Requester): Promise<unknown>
  /**
   * Validates an answer; returns the value to send.
   * @throws ToolCallError `invalid_result`; the message names the place but no value.
   */
  validateOutput(value: unknown, requester?: Requester): Promise<unknown>
  execute(input: unknown, context: ToolContext): unknown
}

/** Options of {@link prepareTool}. */
export interface PrepareOptions {
  /** A prefix of the names of classes that have a title. */
  readonly classPrefix?: string
}

const DEFAULT_TIMEOUT_MS = 60_000

/**
 * Prepares a tool.
 * @throws TypeError, naming the tool, for a name that no function can have and for an invalid schema.
 */
export function prepareTool(tool: Tool, { classPrefix = '' }: PrepareOptions = {}): PreparedTool {
  const name = toolName(tool.name)
  const input = forSide(tool, 'input', () => jsonSchemaOf(tool.input, 'input'))
  const { output: given } = tool
  const output = given === undefined ? undefined : forSide(tool, 'output', () => jsonSchemaOf(given, 'output'))
  const checkInput = forSide(tool, 'input', () => validatorOf(tool.input, input))
  const checkOutput =
    given === undefined || output === undefined ? undefined : forSide(tool, 'output', () => validatorOf(given, output))
  const parameters = forSide(tool, 'input', () => normalizeInput(input))
  const result = output === undefined ? undefined : normalizeOutput(output)
  const described = signatureOf({ name, description: tool.description, input: parameters, output: result }, classPrefix)
  let checked: CheckedTool | undefined
  return {
    name,
    givenName: tool.name,
    description: tool.description,
    effect: tool.effect,
    signature: described.signature,
    classes: described.classes,
    get checked() {
      return (checked ??= checkedOf(described, parameters, result))
    },
    timeoutMs: tool.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxCalls: tool.maxCalls,
    concurrency: tool.concurrency,
    approve: tool.approve,
    redactOwn: redactVariables(tool.secrets),
    async validateInput(args, requester) {
      if (holdsProtoKey(args)) throw invalidArguments(name, 'the key "__proto__" is not allowed')
      const result = await checkInput(args, requester)
      if (result.issues === undefined) return result.value
      throw invalidArguments(name, inputProblem(result.issues, args, described))
    },
    async validateOutput(value, requester) {
      if (checkOutput === undefined) return value
      const result = await checkOutput(value, requester)
      if (result.issues === undefined) return result.value
      throw new ToolCallError(
        'invalid_result',
        `${name}: the answer does not match the tool's output schema: ${outputProblem(result.issues)}`,
      )
    },
    execute: (value, context) => tool.execute(value, context),
  }
}

function forSide<T>(tool: Tool, side: 'input' | 'output', make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new TypeError(`tool ${JSON.stringify(tool.name)}: its ${side} schema ${messageOf(error)}`, { cause: error })
  }
}

function invalidArguments(name: string, problem: string): ToolCallError {
  return new ToolCallError('invalid_arguments', `${name}: ${problem}`)
}

/** The problem, with the parameter names of the script. */
function inputProblem(issues: readonly SchemaIssue[], args: unknown, { names }: PythonSignature): string {
  return joinProblems(issues, ({ message, path = [] }) => {
    const { value, missing } = valueAt(args, path)
    const [first, ...rest] = path.map(keyOf)
    const place = path.length === 0 ? 'the arguments' : pathText([names.get(String(first)) ?? first, ...rest])
    if (missing) return `${place}: is missing${MISSING.test(message) ? '' : `: ${message}`}`
    return `${place}: ${message}${NO_VALUE.test(message) ? '' : `, got ${formatForPython(value)}`}`
  })
}

/** The problem, without the value, which belongs to the host. */
function outputProblem(issues: readonly SchemaIssue[]): string {
  return joinProblems(issues, ({ message, path = [] }) => `${path.length === 0 ? 'it' : pathText(path)}: ${message}`)
}

/** Messages of validation libraries for a missing field. */
const MISSING = /undefined|required|missing/i
/** Messages that are clear without the value. */
const NO_VALUE = /is missing|is not a known name/

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
