import { didYouMean, formatValue, MAX_TIMER_MS } from '../support/index.ts'
import {
  type AcceptedBy,
  type JsonSchemaObject,
  isStandardSchema,
  type ToolSchema,
  type ValueOf,
} from './standard-schema.ts'

/**
 * The effect of a call. `read` changes nothing; `idempotent` may be repeated with the same arguments and changes
 * nothing more; `write` is anything else, and the default.
 */
export type ToolEffect = 'read' | 'idempotent' | 'write'

/** The context of a call, the second argument of `execute`. */
export interface ToolContext {
  /** Fires when the run ends or is cancelled, or the time limit of the tool is over. */
  readonly signal: AbortSignal
  /** A unique id, made by the host. */
  readonly callId: string
  /** The run that the call belongs to. */
  readonly executionId: string
}

/** A function of the host that scripts can call. Made by {@link defineTool}. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: ToolSchema
  readonly output: ToolSchema | undefined
  readonly effect: ToolEffect
  /** Environment variables of the host that the tool uses; their values are redacted in its error texts. */
  readonly secrets: readonly string[]
  /** The maximum time of one call, in milliseconds. Default 60,000. */
  readonly timeoutMs: number | undefined
  /** The maximum number of calls in one run; by default only the limit of the run applies. */
  readonly maxCalls: number | undefined
  /** The maximum number of concurrent calls in one run; by default only the limit of the run applies. */
  readonly concurrency: number | undefined
  /** The calls that wait until a person approves them; undefined leaves that to `approveWrites`. */
  readonly approve: boolean | ((input: unknown, context: ToolContext) => boolean | Promise<boolean>) | undefined
  execute(input: unknown, context: ToolContext): unknown
}

/** Returned by an `approve` of this library that leaves the decision to `approveWrites`. */
export const BY_DEFAULT: unique symbol = Symbol('by default')

/** Options of {@link defineTool}. */
export interface ToolOptions<S extends ToolSchema = ToolSchema, O extends ToolSchema = ToolSchema> {
  /** The name of the tool. Scripts use it as a Python identifier: `get-user` becomes `get_user`. */
  readonly name: string
  /** The description for the model: the docstring of the function. */
  readonly description: string
  /** An object schema: zod 4, another library with Standard JSON Schema, or plain JSON Schema. */
  readonly input: S
  /** A schema of the answer: it annotates the Python function, and answers are validated against it. */
  readonly output?: O | undefined
  /** Default `write`. */
  readonly effect?: ToolEffect | undefined
  /** See {@link Tool.secrets}. */
  readonly secrets?: readonly string[] | undefined
  /** See {@link Tool.timeoutMs}. */
  readonly timeoutMs?: number | undefined
  /** See {@link Tool.maxCalls}. */
  readonly maxCalls?: number | undefined
  /** See {@link Tool.concurrency}. */
  readonly concurrency?: number | undefined
  /**
   * The calls that wait until a person approves them: all of them, none, or those for which the function returns `true`. It gets what
   * `execute` would get, within `timeoutMs` and the time of the script; if it throws or returns no boolean, the call is denied.
   * By default none, or with `approveWrites` of `createSandglass` those of tools whose effect is not `read`.
   */
  readonly approve?: boolean | ((input: ValueOf<S>, context: ToolContext) => boolean | Promise<boolean>) | undefined
  /** Called with the validated input; returns a value that `output` accepts and JSON can represent, or a promise of it. */
  readonly execute: (input: ValueOf<S>, context: ToolContext) => AcceptedBy<O> | Promise<AcceptedBy<O>>
}

/**
 * Makes a tool: a function of the host with a schema, which scripts call as an ordinary Python function.
 * @throws TypeError, naming the tool and the option, for an unknown or invalid option.
 */
export function defineTool<const S extends ToolSchema, const O extends ToolSchema = JsonSchemaObject>(
  options: ToolOptions<S, O>,
): Tool {
  const { name } = options
  if (typeof name !== 'string') throw new TypeError(`defineTool: name must be a string, not ${kindOf(name)}`)
  for (const option of Object.keys(options)) {
    if (!OPTIONS.has(option)) refuse(name, `unknown option ${JSON.stringify(option)}.${didYouMean(option, OPTIONS)}`)
  }
  const { description, input, output, effect = 'write', secrets = [], timeoutMs, maxCalls, concurrency } = options
  if (typeof description !== 'string') refuse(name, `description must be a string, not ${kindOf(description)}`)
  checkSchema(name, 'input', input)
  if (output !== undefined) checkSchema(name, 'output', output)
  if (!EFFECTS.has(effect)) refuse(name, `effect must be read, idempotent or write, not ${JSON.stringify(effect)}`)
  checkSecrets(name, secrets)
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= MAX_TIMER_MS)) {
    refuse(
      name,
      `timeoutMs must be a number of milliseconds above 0 and up to ${MAX_TIMER_MS}, not ${formatValue(timeoutMs)}`,
    )
  }
  checkCount(name, 'maxCalls', maxCalls)
  checkCount(name, 'concurrency', concurrency)
  const { execute, approve } = options
  if (approve !== undefined && typeof approve !== 'boolean' && typeof approve !== 'function')
    refuse(name, `approve must be true, false or a function that decides for each call, not ${kindOf(approve)}`)
  if (typeof execute !== 'function') refuse(name, `execute must be a function, not ${kindOf(execute)}`)
  return Object.freeze({
    name,
    description,
    input,
    output,
    effect,
    secrets: Object.freeze([...secrets]),
    timeoutMs,
    maxCalls,
    concurrency,
    approve:
      typeof approve === 'function'
        ? (value: unknown, context: ToolContext) => approve(value as ValueOf<S>, context)
        : approve,
    // Called as a method, so that `this` is the tool if it is an instance of a class.

    execute: (value: unknown, context: ToolContext) => options.execute(value as ValueOf<S>, context),
  })
}

const OPTIONS: ReadonlySet<string> = new Set<keyof ToolOptions>([
  'name',
  'description',
  'input',
  'output',
  'effect',
  'secrets',
  'timeoutMs',
  'maxCalls',
  'concurrency',
  'approve',
  'execute',
])
const EFFECTS: ReadonlySet<string> = new Set<ToolEffect>(['read', 'idempotent', 'write'])
const ENV_NAME = /^[A-Za-z_]\w*$/

function refuse(tool: string, problem: string): never {
  throw new TypeError(`defineTool ${JSON.stringify(tool)}: ${problem}`)
}

function checkSchema(tool: string, option: string, schema: unknown): asserts schema is ToolSchema {
  if (isStandardSchema(schema) || isPlainObject(schema)) return
  refuse(tool, `${option} must be a Standard Schema (zod 4 and others) or JSON Schema, not ${kindOf(schema)}`)
}

function isPlainObject(value: unknown): value is JsonSchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function checkSecrets(tool: string, secrets: unknown): void {
  if (Array.isArray(secrets) && secrets.every((secret) => typeof secret === 'string' && ENV_NAME.test(secret))) return
  refuse(tool, 'secrets must be a list of names of environment variables (letters, digits and "_", no digit first)')
}

function checkCount(tool: string, option: string, value: unknown): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1)) return
  refuse(tool, `${option} must be a whole number of at least 1, not ${formatValue(value)}`)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value
}
