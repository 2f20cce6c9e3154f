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

/** Options of {@link mcpTools}. */
export interface McpToolsOptions {
  /** A prefix of all names, so that the tools of several servers do not collide: with `fs_`, `read` becomes `fs_read`. */
  readonly prefix?: string
  /** The tools to use, by their names on the server. Default: all. */
  readonly only?: readonly string[]
  /** Cancels the listing of the tools. */
  readonly signal?: AbortSignal
}

/** Maximum pages, because a server can announce another page forever. */
const MAX_PAGES = 1000
/** The signal of the run ends a call; the default limit of the client, one minute, would end slow tools early. */
const NO_TIMEOUT_MS = MAX_TIMER_MS

/**
 * The tools of an MCP server. `readOnlyHint` makes a tool `read`, `idempotentHint` `idempotent`; all others are
 * `write`. The server itself declares these hints: rely on them only if you trust it. A tool answers with its
 * structured content, else with its text, else with the list of its content blocks.
 * @throws the error of the client if the server does not answer; TypeError for an unknown name in `only`.
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
      // The older client has a schema of the result as the parameter before the options; it has a default.
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
