import { didYouMean, MAX_TIMER_MS } from '../support/index.ts'
import { type JsonSchemaObject, isStandardSchema, type ToolSchema, type ValueOf } from './standard-schema.ts'

/**
 * What a call may change. `read` changes nothing; `idempotent` may be repeated with the same arguments and changes
 * nothing more; `write` is anything else, and what a tool has that says nothing.
 */
export type ToolEffect = 'read' | 'idempotent' | 'write'

/** What a tool is told of the call beside its input. */
export interface ToolContext {
  /** Fires when the run ends, is cancelled, or the tool's own time is over. */
  readonly signal: AbortSignal
  /** Made by the host, unique. */
  readonly callId: string
  /** The run that the call belongs to. */
  readonly executionId: string
}

/** A function of the host that a script may call. Made by {@link defineTool}. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: ToolSchema
  readonly output: ToolSchema | undefined
  readonly effect: ToolEffect
  /** Names of environment variables of the host whose values the tool uses; they are kept out of its error texts. */
  readonly secrets: readonly string[]
  /** How long one call may take, in milliseconds; undefined: as long as the run lasts. */
  readonly timeoutMs: number | undefined
  /** How many calls one run may make; undefined: no limit of its own. */
  readonly maxCalls: number | undefined
  /** How many calls of one run are under way at a time; undefined: no limit of its own. */
  readonly concurrency: number | undefined
  execute(input: unknown, context: ToolContext): unknown
}

/** What {@link defineTool} takes. */
export interface ToolOptions<S extends ToolSchema = ToolSchema> {
  /** What the script calls it. A name that is no Python identifier is mapped: `get-user` becomes `get_user`. */
  readonly name: string
  /** Said to the model: the function's docstring. */
  readonly description: string
  /** An object schema: zod 4, another library with Standard JSON Schema, or plain JSON Schema. */
  readonly input: S
  /** What the tool answers; the script's function is annotated with it, and answers are checked against it. */
  readonly output?: ToolSchema | undefined
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
  /** Gets the input as its schema gives it, and answers with anything that JSON can say, or a promise of it. */
  readonly execute: (input: ValueOf<S>, context: ToolContext) => unknown
}

/**
 * Makes a tool: a function of the host with a schema, which the script calls as an ordinary Python function.
 * @throws TypeError for an option that does not exist or does not fit; it names the option and the tool.
 */
export function defineTool<const S extends ToolSchema>(options: ToolOptions<S>): Tool {
  const { name } = options
  if (typeof name !== 'string') throw new TypeError(`defineTool: name must be a string, not ${kindOf(name)}`)
  for (const option of Object.keys(options)) {
    if (!OPTIONS.has(option)) refuse(name, `no option ${JSON.stringify(option)}.${didYouMean(option, OPTIONS)}`)
  }
  const { description, input, output, effect = 'write', secrets = [], timeoutMs, maxCalls, concurrency } = options
  if (typeof description !== 'string') refuse(name, `description must be a string, not ${kindOf(description)}`)
  checkSchema(name, 'input', input)
  if (output !== undefined) checkSchema(name, 'output', output)
  if (!EFFECTS.has(effect)) refuse(name, `effect must be read, idempotent or write, not ${JSON.stringify(effect)}`)
  checkSecrets(name, secrets)
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= MAX_TIMER_MS)) {
    refuse(name, `timeoutMs must be a number of milliseconds above 0 and up to ${MAX_TIMER_MS}`)
  }
  checkCount(name, 'maxCalls', maxCalls)
  checkCount(name, 'concurrency', concurrency)
  const { execute } = options
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
    // Called as a method, so that a tool that is a class of its own finds its fields.
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
  refuse(tool, 'secrets must be a list of names of environment variables')
}

function checkCount(tool: string, option: string, value: unknown): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1)) return
  refuse(tool, `${option} must be a whole number of at least 1`)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value
}
