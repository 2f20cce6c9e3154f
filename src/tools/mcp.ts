import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { formatValue, holdsMoreThan, MAX_TIMER_MS, sizeUpTo, truncate } from '../support/index.ts'
import { isSchemaObject } from './json-schema.ts'
import type { JsonSchemaObject } from './standard-schema.ts'
import { defineTool, type Tool, type ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import { prepareInTurns } from './tool-set.ts'
import { foreignSchemaOf } from './validator.ts'

/**
 * A connected client of an MCP server: `Client` of `@modelcontextprotocol/client`, or of `@modelcontextprotocol/sdk`
 * before it.
 */
export interface McpClient {
  request(
    request: { method: string; params?: Record<string, unknown> },
    resultSchema: z.ZodUnknown,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<unknown>
}

/** The parts of a listed tool that are used. */
interface Listing {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchemaObject
  readonly outputSchema: JsonSchemaObject | undefined
  readonly effect: ToolEffect
}

/** Options of {@link mcpTools}. */
export interface McpToolsOptions {
  /** A prefix of all names, so that the tools of several servers do not collide: with `fs_`, `read` becomes `fs_read`. */
  readonly prefix?: string
  /** The tools to use, by their names on the server. Default: all. */
  readonly only?: readonly string[]
  /**
   * True: the annotations of the server decide the effect of its tools: `readOnlyHint` makes a tool `read`, `idempotentHint` `idempotent`.
   * They then also decide which calls `approveWrites` asks about, and what reviewers see. Default false: all tools are `write`.
   */
  readonly trustEffects?: boolean
  /** Cancels the listing of the tools. Without it a server that does not answer is given up after one minute, the limit of the client. */
  readonly signal?: AbortSignal
}

/** Maximum pages and tools, because a server can announce another page forever. */
const MAX_PAGES = 1000
const MAX_TOOLS = 1000
/** Maximum characters of the two schemas of a tool, and of its description: they are read on the host, and shown to models. */
const MAX_SCHEMA_CHARS = 64 * 1024
const MAX_DESCRIPTION_CHARS = 16 * 1024
/** Maximum characters of the schemas and descriptions of all tools together. */
const MAX_LISTING_CHARS = 1024 * 1024
/** Maximum characters and values of an answer, and characters of an error. */
const MAX_ANSWER_CHARS = 4 * 1024 * 1024
const MAX_ANSWER_PARTS = 65_536
const MAX_ERROR_CHARS = 64 * 1024
/** The client's own schemas take seconds for a small answer of many blocks: the results are read here, within bounds. */
const ANYTHING = z.unknown()
/** The signal of the run ends a call; the default limit of the client, one minute, would end slow tools early. */
const NO_TIMEOUT_MS = MAX_TIMER_MS

/**
 * The tools of an MCP server. Their effect is `write`, unless `trustEffects` is set. A tool answers with its structured
 * content, else with its text, else with the list of its content blocks.
 * @throws the error of the client if the server does not answer; TypeError for an unknown name in `only`, and for a listing that
 * is not one, or is too long.
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<Tool[]> {
  const { prefix = '', only, trustEffects = false } = options
  const listed = await listTools(client, options.signal)
  const names = new Set(listed.map(nameOf))
  const missing = (only ?? []).filter((name) => !names.has(name))
  if (missing.length > 0) {
    throw new TypeError(`mcpTools: the server has no tool ${missing.map((name) => JSON.stringify(name)).join(', ')}`)
  }
  const tools: Tool[] = []
  let chars = 0
  for (const tool of listed) {
    if (only !== undefined && !only.includes(nameOf(tool))) continue
    const listing = listingOf(tool, trustEffects)
    chars += charsOf(listing)
    if (chars > MAX_LISTING_CHARS) {
      throw new TypeError(`mcpTools: the tools have more than ${MAX_LISTING_CHARS} characters; name fewer in \`only\``)
    }
    tools.push(fromListing(client, listing, prefix))
    await nextTurn()
  }
  await prepareInTurns(tools)
  return tools
}

function charsOf({ description, inputSchema, outputSchema }: Listing): number {
  return description.length + sizeUpTo([inputSchema, outputSchema], 2 * MAX_SCHEMA_CHARS)
}

async function listTools(client: McpClient, signal: AbortSignal | undefined): Promise<unknown[]> {
  const found: unknown[] = []
  const options = signal === undefined ? {} : { signal }
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor }
    const listed = await client.request({ method: 'tools/list', params }, ANYTHING, options)
    const tools: unknown = field(listed, 'tools')
    if (!Array.isArray(tools))
      throw new TypeError('mcpTools: the server answered tools/list, but sent no list of tools')
    if (found.length + tools.length > MAX_TOOLS) {
      throw new TypeError(`mcpTools: the server lists more than ${MAX_TOOLS} tools`)
    }
    for (const tool of tools) found.push(tool)
    const next = field(listed, 'nextCursor')
    if (typeof next !== 'string' || next === cursor) return found
    cursor = next
  }
  throw new TypeError(`mcpTools: the server lists more than ${MAX_PAGES} pages of tools`)
}

function nameOf(tool: unknown): string {
  const name = field(tool, 'name')
  if (typeof name !== 'string') throw new TypeError('mcpTools: the server lists a tool without a name')
  return name
}

function listingOf(tool: unknown, trustEffects: boolean): Listing {
  const name = nameOf(tool)
  const description = field(tool, 'description')
  const schemaOf = (key: string): JsonSchemaObject | undefined => {
    const schema = field(tool, key)
    if (schema === undefined || schema === null) return undefined
    if (isSchemaObject(schema) && sizeUpTo(schema, MAX_SCHEMA_CHARS) < MAX_SCHEMA_CHARS) return schema
    const problem = isSchemaObject(schema) ? `has more than ${MAX_SCHEMA_CHARS} characters` : 'is not JSON Schema'
    throw new TypeError(
      `mcpTools: the ${key} of the tool ${formatValue(name)} ${problem}; leave it out by naming the other tools in \`only\``,
    )
  }
  return {
    name,
    description: typeof description === 'string' ? truncate(description, MAX_DESCRIPTION_CHARS) : '',
    inputSchema: schemaOf('inputSchema') ?? { type: 'object' },
    outputSchema: schemaOf('outputSchema'),
    effect: trustEffects ? effectOf(field(tool, 'annotations')) : 'write',
  }
}

function fromListing(client: McpClient, listing: Listing, prefix: string): Tool {
  const { name, description, inputSchema, outputSchema, effect } = listing
  return defineTool({
    name: `${prefix}${name}`,
    description,
    input: foreignSchemaOf(inputSchema),
    output: outputSchema === undefined ? undefined : foreignSchemaOf(outputSchema),
    effect,
    execute: async (input, { signal }) => {
      const request = { method: 'tools/call', params: { name, arguments: input } }
      return answerOf(name, await client.request(request, ANYTHING, { signal, timeout: NO_TIMEOUT_MS }))
    },
  })
}

function effectOf(annotations: unknown): ToolEffect {
  if (field(annotations, 'readOnlyHint') === true) return 'read'
  return field(annotations, 'idempotentHint') === true ? 'idempotent' : 'write'
}

function answerOf(name: string, result: unknown): unknown {
  if (!isSchemaObject(result)) throw new ToolCallError('tool_failed', `${name}: the MCP server sent no result`)
  const isError = result['isError'] === true
  if (!isError && (sizeUpTo(result, MAX_ANSWER_CHARS) >= MAX_ANSWER_CHARS || holdsMoreThan(result, MAX_ANSWER_PARTS))) {
    const max = `${MAX_ANSWER_CHARS} characters or ${MAX_ANSWER_PARTS} values`
    throw new ToolCallError('result_too_large', `${name}: the answer of the MCP server has more than ${max}`)
  }
  const blocks: unknown[] = Array.isArray(result['content']) ? result['content'] : []
  if (isError)
    throw new ToolCallError(
      'tool_failed',
      joinErrorTexts(blocks) || `${name}: the MCP server says that the call failed`,
    )
  if (result['structuredContent'] !== undefined) return result['structuredContent']
  const texts = blocks.map(textOf)
  return texts.includes(undefined) ? blocks : texts.join('\n')
}

function textOf(block: unknown): string | undefined {
  return field(block, 'type') === 'text' ? String(field(block, 'text')) : undefined
}

/** The texts of an error, joined up to the maximum. Before it is sent, its secrets are removed and it is cut further. */
function joinErrorTexts(blocks: readonly unknown[]): string {
  let said = ''
  for (const block of blocks.slice(0, MAX_ERROR_CHARS)) {
    const text = textOf(block)
    if (text !== undefined) said += said === '' ? text : `\n${text}`
    if (said.length > MAX_ERROR_CHARS) break
  }
  return said
}

function field(given: unknown, key: string): unknown {
  return isSchemaObject(given) ? given[key] : undefined
}
