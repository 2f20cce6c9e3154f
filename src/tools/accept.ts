import { messageOf } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import { isSchemaObject } from './json-schema.ts'
import { isPythonTool, type PythonTool } from './python-tool.ts'
import { isStandardSchema, type SchemaResult, type StandardToolSchema, type ToolSchema } from './standard-schema.ts'
import { defineTool, type Tool, type ToolContext, type ToolOptions } from './tool.ts'

/** A tool of the AI SDK (`ai`), made by `tool({ … })`; its name is its key in the tool set. */
export interface AiSdkTool {
  readonly description?: unknown
  readonly inputSchema?: unknown
  /** The name of `inputSchema` in AI SDK 4. */
  readonly parameters?: unknown
  readonly outputSchema?: unknown
  readonly execute?: unknown
  readonly needsApproval?: unknown
}

/** A tool of LangChain (`@langchain/core`), made by `tool(…)` or by a class. */
export interface LangChainTool {
  readonly name: string
  readonly description: string
  readonly schema: unknown
  invoke(input: never, config?: never): Promise<unknown>
}

/** A tool of any kind with a name of its own. */
export type NamedTool = Tool | PythonTool | LangChainTool

/** A tool that is named by its key. */
export type KeyedTool = Tool | PythonTool | LangChainTool | AiSdkTool

/**
 * Converts a tool of any accepted kind to a {@link Tool}; a Python tool stays as it is. `key` is its name in a record,
 * if it is in one.
 * @throws TypeError, naming the tool, for a value that is not a tool and for a tool that cannot run here.
 */
export function acceptTool(given: unknown, key?: string): Tool | PythonTool {
  if (isPythonTool(given)) return acceptPythonTool(given, key)
  if (!isSchemaObject(given) && typeof given !== 'function') {
    throw new TypeError(
      `tools: ${key === undefined ? formatValue(given) : JSON.stringify(key)} is not a tool; make it with defineTool, the AI SDK or LangChain`,
    )
  }
  const fields = given as Readonly<Record<string, unknown>>
  const name = key ?? fields['name']
  if (typeof fields['invoke'] === 'function') return fromLangChain(given as unknown as LangChainTool, name)
  if (fields['input'] !== undefined && typeof fields['execute'] === 'function') {
    return key === undefined && isDefinedTool(given)
      ? given
      : defineTool({ ...(given as unknown as Tool), name: String(name) })
  }
  if (fields['inputSchema'] === undefined && fields['parameters'] === undefined) {
    throw new TypeError(
      `tools: ${JSON.stringify(name ?? 'an item')} is not a tool; make it with defineTool, the AI SDK or LangChain`,
    )
  }
  if (typeof name !== 'string') {
    throw new TypeError(
      'tools: a tool of the AI SDK takes its name from its key in the tool set; pass the set, not a list',
    )
  }
  return fromAiSdk(given as AiSdkTool, name)
}

function acceptPythonTool(tool: PythonTool, key: string | undefined): PythonTool {
  if (key === undefined || key === tool.name) return tool
  throw new TypeError(
    `tools: ${JSON.stringify(key)} is the Python tool ${JSON.stringify(tool.name)}, which keeps the name of its function`,
  )
}

function isDefinedTool(given: object): given is Tool {
  return Object.isFrozen(given) && 'effect' in given && 'secrets' in given
}

function fromAiSdk(tool: AiSdkTool, name: string): Tool {
  const { execute, needsApproval } = tool
  const called = `tool ${JSON.stringify(name)} of the AI SDK`
  if (typeof execute !== 'function') {
    throw new TypeError(`${called} has no execute function, so a script cannot call it`)
  }
  return defineTool({
    name,
    description: typeof tool.description === 'string' ? tool.description : '',
    input: aiSdkSchema(called, tool.inputSchema ?? tool.parameters),
    output: tool.outputSchema === undefined ? undefined : aiSdkSchema(called, tool.outputSchema),
    // `false` is the default there, and says nothing about `approveWrites`.
    approve: needsApproval === false ? undefined : approveOf(tool, needsApproval),
    execute: (input, context) => takeLast(Reflect.apply(execute, tool, [input, aiSdkOptions(context)])),
  })
}

function approveOf(tool: AiSdkTool, given: unknown): ToolOptions['approve'] {
  if (typeof given !== 'function') return given as ToolOptions['approve']
  return (input, context) => Reflect.apply(given, tool, [input, aiSdkOptions(context)]) as boolean | Promise<boolean>
}

interface AiSdkOptions {
  readonly toolCallId: string
  readonly messages: readonly unknown[]
  readonly abortSignal: AbortSignal
  readonly context: object
  readonly experimental_context: undefined
}

/** The options of a call, as functions of the AI SDK get them. */
export function aiSdkOptions({ callId, signal }: ToolContext): AiSdkOptions {
  return { toolCallId: callId, messages: [], abortSignal: signal, context: {}, experimental_context: undefined }
}

/** A schema of the AI SDK: `jsonSchema(…)`, a function that returns one (`zodSchema` and others), or any schema of a tool. */
function aiSdkSchema(called: string, given: unknown): ToolSchema {
  if (isStandardSchema(given)) return given
  const schema: unknown = typeof given === 'function' ? (given as () => unknown)() : given
  if (isStandardSchema(schema)) return schema
  if (!isSchemaObject(schema)) throw new TypeError(`${called} needs an input schema: a Standard Schema or JSON Schema`)
  const { jsonSchema, validate } = schema
  if (jsonSchema === undefined) return schema
  if (!isSchemaObject(jsonSchema) || typeof jsonSchema['then'] === 'function') {
    throw new TypeError(`${called} has a schema that is a promise; await it first`)
  }
  return typeof validate === 'function' ? wrapAiSdkSchema(jsonSchema, validate as AiSdkValidate) : jsonSchema
}

type AiSdkResult =
  | { readonly success: true; readonly value: unknown }
  | { readonly success: false; readonly error: unknown }
type AiSdkValidate = (value: unknown) => AiSdkResult | Promise<AiSdkResult>

function wrapAiSdkSchema(json: Record<string, unknown>, validate: AiSdkValidate): StandardToolSchema {
  return {
    '~standard': {
      vendor: 'ai',
      validate: async (value): Promise<SchemaResult> => {
        const result = await validate(value)
        return result.success ? { value: result.value } : { issues: issuesOf(result.error) }
      },
      jsonSchema: { input: () => json, output: () => json },
    },
  }
}

/** The issues of an error from a validation library, often in the cause of another error. */
function issuesOf(error: unknown): readonly { message: string; path?: readonly unknown[] }[] {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    const issues = (cause as { issues?: unknown }).issues
    if (Array.isArray(issues) && issues.length > 0) return issues as { message: string; path?: readonly unknown[] }[]
  }
  return [{ message: messageOf(error) }]
}

/** Awaits an answer. Of a streamed answer, the last part is the complete answer. */
async function takeLast(answer: unknown): Promise<unknown> {
  const value: unknown = await answer
  if (typeof value !== 'object' || value === null || !(Symbol.asyncIterator in value)) return value
  let last: unknown
  for await (const part of value as AsyncIterable<unknown>) last = part
  return last
}

function fromLangChain(tool: LangChainTool, name: unknown): Tool {
  const { schema } = tool
  const called = `tool ${JSON.stringify(name)} of LangChain`
  if (!isStandardSchema(schema) && !isSchemaObject(schema)) throw new TypeError(`${called} has no schema`)
  if (!isStandardSchema(schema) && '_def' in schema) {
    throw new TypeError(`${called} has a schema of zod before 3.24, which is not a Standard Schema; use a newer zod`)
  }
  return defineTool({
    name: String(name),
    description: typeof tool.description === 'string' ? tool.description : '',
    input: isStandardSchema(schema) ? keepInput(schema) : schema,
    execute: (input, { signal }) => tool.invoke(input as never, { signal } as never),
  })
}

/** Validates a value but keeps it unchanged: the tool converts it itself. */
function keepInput(schema: StandardToolSchema): StandardToolSchema {
  return {
    ...schema,
    '~standard': {
      ...schema['~standard'],
      validate: async (value) => {
        const result = await schema['~standard'].validate(value)
        return result.issues === undefined ? { value } : result
      },
    },
  }
}
