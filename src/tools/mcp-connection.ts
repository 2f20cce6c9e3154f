import type * as McpClientModule from '@modelcontextprotocol/client'
import type * as McpStdioModule from '@modelcontextprotocol/client/stdio'
import { messageOf, SandglassError } from '../errors/index.ts'
import { mcpTools, type McpToolsOptions } from './mcp.ts'
import type { Tool } from './tool.ts'

/** An MCP server that is started as a program and connected over its standard input and output. */
export interface McpProgram {
  readonly command: string
  readonly args?: readonly string[]
  /** Environment variables of the program. It gets these and a few harmless ones (PATH, HOME …), but no others of the host. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** An MCP server at an address, connected over streamable HTTP. */
export interface McpAddress {
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>>
}

/** The argument of {@link connectMcp}: the server, and which of its tools to use. */
export type McpServer = (McpProgram | McpAddress) & McpToolsOptions

/** A connection to an MCP server. */
export interface McpConnection extends AsyncDisposable {
  readonly tools: readonly Tool[]
  /** Ends the connection, and the program that was started for it. Idempotent. */
  close(): Promise<void>
}

const LAST_WORDS_CHARS = 2000
/** Maximum bytes of a message: the client parses it before anything else can bound it. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024

/**
 * Connects to an MCP server and lists its tools: `await using mcp = await connectMcp({ command: 'npx', args: […] })`.
 * Needs the package `@modelcontextprotocol/client`.
 * @throws SandglassError `mcp_client_missing`, `mcp_unreachable`; TypeError as {@link mcpTools}; the reason of the signal
 * when it fires.
 */
export async function connectMcp(server: McpServer): Promise<McpConnection> {
  const { Client, StdioClientTransport, StreamableHTTPClientTransport, getDefaultEnvironment } = await load()
  const client = new Client({ name: 'sandglass', version: '1' })
  let lastWords = ''
  const transport = (): Parameters<typeof client.connect>[0] => {
    if ('url' in server) {
      const headers = { ...server.headers }
      return new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers }, fetch: boundedFetch })
    }
    const program = new StdioClientTransport({
      command: server.command,
      args: [...(server.args ?? [])],
      env: { ...getDefaultEnvironment(), ...server.env },
      stderr: 'pipe',
      maxBufferSize: MAX_FRAME_BYTES,
      ...(server.cwd === undefined ? {} : { cwd: server.cwd }),
    })
    program.stderr?.on('data', (bytes: Buffer) => {
      lastWords = (lastWords + bytes.toString()).slice(-LAST_WORDS_CHARS)
    })
    return program
  }
  const close = (): Promise<void> => client.close()
  try {
    await client.connect(transport(), server.signal === undefined ? {} : { signal: server.signal })
    const tools = await mcpTools(client, server)
    return { tools, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close().catch(() => undefined)
    server.signal?.throwIfAborted()
    if (error instanceof TypeError && error.message.startsWith('mcpTools')) throw error
    const where = 'url' in server ? withoutSecrets(String(server.url)) : server.command
    const said = lastWords.trim() === '' ? '' : `; it said: ${lastWords.trim()}`
    throw new SandglassError(
      'mcp_unreachable',
      `no MCP server answers at ${where}: ${messageOf(error)}${said}. Start it by hand to see what it says.`,
      { cause: error },
    )
  }
}

async function load(): Promise<typeof McpClientModule & typeof McpStdioModule> {
  try {
    const [client, stdio] = await Promise.all([
      import('@modelcontextprotocol/client'),
      import('@modelcontextprotocol/client/stdio'),
    ])
    return { ...client, ...stdio }
  } catch (error) {
    throw new SandglassError(
      'mcp_client_missing',
      'MCP servers need the package @modelcontextprotocol/client: npm install @modelcontextprotocol/client',
      { cause: error },
    )
  }
}

/** `fetch` with a limit on answers of JSON; a stream of events has no end of its own, and its events are not counted. */
async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  const isJson = response.headers.get('content-type')?.includes('application/json') === true
  if (!isJson || response.body === null) return response
  let bytes = 0
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes > MAX_FRAME_BYTES) controller.error(new Error(`the answer has more than ${MAX_FRAME_BYTES} bytes`))
      else controller.enqueue(chunk)
    },
  })
  return new Response(response.body.pipeThrough(limit), response)
}

/** The address without a password or key: messages go to logs. */
function withoutSecrets(address: string): string {
  const url = URL.parse(address)
  return url === null ? 'an invalid address' : `${url.origin}${url.pathname}`
}
