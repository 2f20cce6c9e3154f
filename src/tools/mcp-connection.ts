import type * as McpClientModule from '@modelcontextprotocol/client'
import type * as McpStdioModule from '@modelcontextprotocol/client/stdio'
import { messageOf, SandglassError } from '../errors/index.ts'
import { boundedFetch } from './mcp-bounds.ts'
import { StdioTransport } from './mcp-stdio.ts'
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
  /** Closes the connection, and ends the program that was started for it. Idempotent. */
  close(): Promise<void>
}

const LAST_OUTPUT_CHARS = 2000

/**
 * Connects to an MCP server and lists its tools: `await using mcp = await connectMcp({ command: 'npx', args: […] })`.
 * Needs the package `@modelcontextprotocol/client`.
 * @throws SandglassError `mcp_client_missing`, `mcp_unreachable`; TypeError as {@link mcpTools}; the reason of the signal
 * when it fires.
 */
export async function connectMcp(server: McpServer): Promise<McpConnection> {
  const { Client, StreamableHTTPClientTransport, getDefaultEnvironment } = await load()
  const client = new Client({ name: 'sandglass', version: '1' })
  let lastOutput = ''
  const fetch = boundedFetch(() => void client.close())
  const transport = (): Parameters<typeof client.connect>[0] => {
    if ('url' in server) {
      const headers = { ...server.headers }
      return new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers }, fetch })
    }
    return new StdioTransport({
      command: server.command,
      args: [...(server.args ?? [])],
      env: { ...getDefaultEnvironment(), ...server.env },
      cwd: server.cwd,
      onStderr: (text) => (lastOutput = (lastOutput + text).slice(-LAST_OUTPUT_CHARS)),
    })
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
    const said = lastOutput.trim() === '' ? '' : `; it said: ${lastOutput.trim()}`
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

/** The address without a password or key: messages go to logs. */
function withoutSecrets(address: string): string {
  const url = URL.parse(address)
  return url === null ? 'an invalid address' : `${url.origin}${url.pathname}`
}
