import { MAX_TIMER_MS } from '../support/index.ts'
import { isSchemaObject } from './json-schema.ts'
import { defineTool, type Tool, type ToolEffect } from './tool.ts'
import { ToolCallError } from './tool-error.ts'

/**
 * A connected client of an MCP server: `Client` of `@modelcontextprotocol/client`, or of `@modelcontextprotocol/sdk`
 * before it.
 */
export interface McpClient {
  listTools(
    params?: { cursor?: string },
    options?: { signal?: AbortSignal },
  ): Promise<{ tools: readonly McpToolListing[]; nextCursor?: unknown }>
  callTool(params: { name: string; arguments: Record<string, unknown> }, ...rest: never[]): Promise<unknown>
}

/** A tool as an MCP server lists it. */
export interface McpToolListing {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: object
  readonly outputSchema?: object | undefined
  readonly annotations?:
    | { readonly readOnlyHint?: boolean | undefined; readonly idempotentHint?: boolean | undefined }
    | undefined
}

/** What {@link mcpTools} may be told. */
export interface McpToolsOptions {
  /** Stands before each name, so that the tools of several servers do not meet: `fs_` makes `read` `fs_read`. */
  readonly prefix?: string
  /** Names, as the server has them, of the tools to take. Default: all. */
  readonly only?: readonly string[]
  /** Gives up while the tools are listed. */
  readonly signal?: AbortSignal
}

/** A server that says there is always one more page has no end. */
const MAX_PAGES = 1000
/** The run's signal ends a call; the client's own time limit of a minute would end slow tools before. */
const NO_TIMEOUT_MS = MAX_TIMER_MS

/**
 * The tools of an MCP server. `readOnlyHint` makes a tool `read`, `idempotentHint` `idempotent`; all others are
 * `write`. These are the server's own words: take them from a server that you trust only. A tool answers with its
 * structured content, else with its text, else with the list of its content blocks.
 * @throws what the client throws when the server does not answer; TypeError for a name in `only` that it does not have.
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<Tool[]> {
  const { prefix = '', only } = options
  const listed = await allTools(client, options.signal)
  const names = new Set(listed.map(({ name }) => name))
  const missing = (only ?? []).filter((name) => !names.has(name))
  if (missing.length > 0) {
    throw new TypeError(`mcpTools: the server has no tool ${missing.map((name) => JSON.stringify(name)).join(', ')}`)
  }
  return listed
    .filter(({ name }) => only === undefined || only.includes(name))
    .map((listing) => fromListing(client, listing, prefix))
}

async function allTools(client: McpClient, signal: AbortSignal | undefined): Promise<McpToolListing[]> {
  const found: McpToolListing[] = []
  const options = signal === undefined ? {} : { signal }
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? undefined : { cursor }, options)
    found.push(...tools)
    if (typeof nextCursor !== 'string' || nextCursor === cursor) return found
    cursor = nextCursor
  }
  throw new TypeError(`mcpTools: the server lists more than ${MAX_PAGES} pages of tools`)
}

function fromListing(client: McpClient, listing: McpToolListing, prefix: string): Tool {
  const { name, description = '', inputSchema, outputSchema } = listing
  return defineTool({
    name: `${prefix}${name}`,
    description,
    input: inputSchema as Record<string, unknown>,
    output: outputSchema as Record<string, unknown> | undefined,
    effect: effectOf(listing),
    execute: async (input, { signal }) => {
      const params = { name, arguments: input }
      const options = { signal, timeout: NO_TIMEOUT_MS }
      // The older client takes a schema of the result before the options; that parameter has a default.
      const rest = client.callTool.length === 1 ? [undefined, options] : [options]
      return answerOf(name, await client.callTool(params, ...(rest as never[])))
    },
  })
}

function effectOf({ annotations }: McpToolListing): ToolEffect {
  if (annotations?.readOnlyHint === true) return 'read'
  return annotations?.idempotentHint === true ? 'idempotent' : 'write'
}

function answerOf(name: string, result: unknown): unknown {
  if (!isSchemaObject(result)) throw new ToolCallError('tool_failed', `${name}: the MCP server sent no result`)
  const blocks: unknown[] = Array.isArray(result['content']) ? result['content'] : []
  const texts = blocks.map((block) =>
    isSchemaObject(block) && block['type'] === 'text' ? String(block['text']) : undefined,
  )
  if (result['isError'] === true) {
    const said = texts.filter((text) => text !== undefined).join('\n')
    throw new ToolCallError('tool_failed', said === '' ? `${name}: the MCP server says that the call failed` : said)
  }
  if (result['structuredContent'] !== undefined) return result['structuredContent']
  return texts.includes(undefined) ? blocks : texts.join('\n')
}
