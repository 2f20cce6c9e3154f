import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  connectMcp,
  type McpClient,
  type McpConnection,
  mcpTools,
  type PreparedTool,
  prepareTools,
  type ToolContext,
} from '../../../src/tools/index.ts'
import { freePort } from '../../support/free-port.ts'

const SERVER = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json')),
  'dist/index.js',
)
const context: ToolContext = { signal: new AbortController().signal, callId: 'call-1', executionId: 'run-1' }

async function call(tool: PreparedTool | undefined, args: Record<string, unknown>, given = context): Promise<unknown> {
  if (tool === undefined) throw new Error('no such tool')
  return tool.validateOutput(await tool.execute(await tool.validateInput(args), given))
}

describe.each<[string, () => Promise<{ connection: McpConnection; stop: () => Promise<void> }>]>([
  ['stdio', overStdio],
  ['HTTP', overHttp],
])('a real MCP server over %s', (_over, start) => {
  let connection: McpConnection
  let stop: () => Promise<void>
  beforeAll(async () => {
    ;({ connection, stop } = await start())
  })
  afterAll(async () => {
    await connection.close()
    await connection.close()
    await stop()
  })

  test('provides its tools as functions', async () => {
    const { tools, renamed } = prepareTools(connection)
    expect([...tools.keys()]).toEqual(expect.arrayContaining(['echo', 'get_sum', 'get_structured_content']))
    expect(renamed).toContainEqual({ from: 'get-sum', to: 'get_sum' })
    expect(tools.get('get_sum')?.signature.params).toEqual([
      { name: 'a', type: 'float', required: true, nullable: false },
      { name: 'b', type: 'float', required: true, nullable: false },
    ])
    expect(await call(tools.get('echo'), { message: 'hello' })).toBe('Echo: hello')
    expect(await call(tools.get('get_sum'), { a: 2, b: 3 })).toBe('The sum of 2 and 3 is 5.')
  })

  test('returns structured content unchanged, and checks it', async () => {
    const tool = prepareTools(connection).tools.get('get_structured_content')
    expect(tool?.signature.returns).toBe('GetStructuredContentResult')
    expect(await call(tool, { location: 'New York' })).toEqual({
      temperature: expect.any(Number) as number,
      conditions: expect.any(String) as string,
      humidity: expect.any(Number) as number,
    })
  })

  test('returns the blocks of content that is not only text', async () => {
    const blocks = await call(prepareTools(connection).tools.get('get_tiny_image'), {})
    expect((blocks as { type: string }[]).map(({ type }) => type)).toEqual(expect.arrayContaining(['text', 'image']))
  })

  test('is cancelled when the run has ended', async () => {
    const ending = new AbortController()
    const tool = prepareTools(connection).tools.get('trigger_long_running_operation')
    const running = call(tool, { duration: 60, steps: 60 }, { ...context, signal: ending.signal })
    ending.abort(new Error('the run ended'))
    await expect(running).rejects.toThrow(/the run ended|abort/i)
  })

  test('checks arguments before they are sent', async () => {
    await expect(call(prepareTools(connection).tools.get('get_sum'), { a: 'two', b: 3 })).rejects.toThrow(
      'get_sum: a: expected number, got "two"',
    )
  })
})

describe('the older client', () => {
  const client = new OlderClient({ name: 'test', version: '1' })
  // Not in the test: its server takes most of a second to start.
  beforeAll(() =>
    client.connect(new OlderTransport({ command: process.execPath, args: [SERVER, 'stdio'], stderr: 'ignore' })),
  )
  afterAll(() => client.close())

  test('is supported as well', async () => {
    const { tools } = prepareTools(await mcpTools(client, { prefix: 'every_', only: ['echo'] }))
    expect([...tools.keys()]).toEqual(['every_echo'])
    expect(await call(tools.get('every_echo'), { message: 'hello' })).toBe('Echo: hello')
  })
})

describe('a client', () => {
  const listing = (name: string, annotations: object = {}): object => ({
    name,
    inputSchema: { type: 'object' },
    annotations,
  })
  const answering = (result: unknown, tools: readonly object[] = [listing('a')]): McpClient => ({
    request: ({ method }) => Promise.resolve(method === 'tools/list' ? { tools } : result),
  })

  test('returns all pages of tools', async () => {
    const pages = new Map<string | undefined, object>([
      [undefined, { tools: [listing('a')], nextCursor: '2' }],
      ['2', { tools: [listing('b')], nextCursor: '3' }],
      ['3', { tools: [listing('c')], nextCursor: '3' }],
    ])
    const client: McpClient = {
      request: ({ params }) => Promise.resolve(pages.get(params?.['cursor'] as string | undefined) ?? { tools: [] }),
    }
    expect((await mcpTools(client)).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  test.each<[string, { trustEffects?: boolean }, readonly string[]]>([
    ['trusts no annotations by default', {}, ['write', 'write', 'write', 'write']],
    ['trusts them with trustEffects', { trustEffects: true }, ['read', 'idempotent', 'write', 'write']],
  ])('%s', async (_, options, effects) => {
    const client = answering({}, [
      listing('reads', { readOnlyHint: true }),
      listing('repeats', { readOnlyHint: false, idempotentHint: true }),
      listing('writes', { idempotentHint: false }),
      { name: 'silent', inputSchema: { type: 'object' } },
    ])
    expect((await mcpTools(client, options)).map(({ effect }) => effect)).toEqual(effects)
  })

  test.each<[string, unknown, unknown]>([
    ['structured content first', { structuredContent: { a: 1 }, content: [{ type: 'text', text: 'x' }] }, { a: 1 }],
    [
      'texts as one',
      {
        content: [
          { type: 'text', text: 'x' },
          { type: 'text', text: '{"a":1}' },
        ],
      },
      'x\n{"a":1}',
    ],
    ['nothing as an empty text', { content: [] }, ''],
    ['other content as blocks', { content: [{ type: 'image', data: '' }] }, [{ type: 'image', data: '' }]],
  ])('gives %s', async (_what, result, answer) => {
    const [tool] = prepareTools(await mcpTools(answering(result))).tools.values()
    expect(await call(tool, {})).toEqual(answer)
  })

  test.each<[unknown, string]>([
    [{ isError: true, content: [{ type: 'text', text: 'no such order' }] }, 'no such order'],
    [{ isError: true }, 'a: the MCP server says that the call failed'],
    [null, 'a: the MCP server sent no result'],
  ])('that answers %j makes the call fail', async (result, message) => {
    const [tool] = prepareTools(await mcpTools(answering(result))).tools.values()
    await expect(call(tool, {})).rejects.toMatchObject({ code: 'tool_failed', message })
  })

  test('with an invalid or too long list of tools is refused', async () => {
    const many = {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 9000 }, (_, n) => [`f${n}`, {}])),
    }
    for (const [listed, message] of [
      [{}, /sent no list of tools/],
      [{ tools: [3] }, /a tool without a name/],
      [{ tools: Array.from({ length: 1001 }, () => listing('a')) }, /more than 1000 tools/],
      [{ tools: [{ name: 'a', inputSchema: [] }] }, /the inputSchema of the tool "a" is not JSON Schema/],
      [{ tools: [{ name: 'a', inputSchema: many }] }, /the inputSchema of the tool "a" has more than 65536 characters/],
    ] as const) {
      await expect(mcpTools({ request: () => Promise.resolve(listed) })).rejects.toThrow(message)
    }
    const unused = { request: () => Promise.resolve({ tools: [listing('a'), { name: 'b', inputSchema: many }] }) }
    expect((await mcpTools(unused, { only: ['a'] })).map(({ name }) => name)).toEqual(['a'])
    const endless = { request: () => Promise.resolve({ tools: [], nextCursor: String(Math.random()) }) }
    await expect(mcpTools(endless)).rejects.toThrow(/more than 1000 pages/)
  })

  test.each<[string, () => object]>([
    ['text', () => ({ content: [{ type: 'text', text: 'x'.repeat(4 * 1024 * 1024) }] })],
    ['list', () => ({ structuredContent: { list: Array.from({ length: 140_000 }, () => 0) } })],
    ['number of blocks', () => ({ content: Array.from({ length: 140_000 }, () => ({})) })],
  ])('with a too large %s as its answer makes the call fail', async (_what, result) => {
    const [tool] = prepareTools(await mcpTools(answering(result()))).tools.values()
    await expect(call(tool, {})).rejects.toMatchObject({ code: 'result_too_large' })
  })

  test('with a long error gives its beginning', async () => {
    const content = Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'no such order' }))
    const [tool] = prepareTools(await mcpTools(answering({ isError: true, content }))).tools.values()
    const error: unknown = await call(tool, {}).catch((thrown: unknown) => thrown)
    expect(String((error as Error).message).length).toBeLessThan(70_000)
  })

  test('without a requested tool is refused', async () => {
    await expect(mcpTools(answering({}), { only: ['a', 'b'] })).rejects.toThrow(
      new TypeError('mcpTools: the server has no tool "b"'),
    )
  })
})

describe('the error of a missing server quotes its last output', () => {
  test('when its program ends', async () => {
    const args = ['-e', 'console.error("no token given"); process.exit(3)']
    await expect(connectMcp({ command: process.execPath, args })).rejects.toMatchObject({
      name: 'SandglassError',
      code: 'mcp_unreachable',
      message: expect.stringMatching(/^no MCP server answers at .*; it said: no token given\. /s) as string,
    })
  })

  test('or with the reason, after the caller has stopped waiting', async () => {
    const ending = new AbortController()
    const args = ['-e', 'process.stdin.resume().on("end", () => process.exit())']
    const connecting = connectMcp({ command: process.execPath, args, signal: ending.signal })
    const reason = new Error('not wanted')
    ending.abort(reason)
    await expect(connecting).rejects.toBe(reason)
  })

  test('when nothing listens at the address', async () => {
    const port = await freePort()
    await expect(connectMcp({ url: `http://127.0.0.1:${port}/mcp` })).rejects.toMatchObject({ code: 'mcp_unreachable' })
  })
})

async function overStdio(): Promise<{ connection: McpConnection; stop: () => Promise<void> }> {
  const connection = await connectMcp({ command: process.execPath, args: [SERVER, 'stdio'] })
  return { connection, stop: () => Promise.resolve() }
}

async function overHttp(): Promise<{ connection: McpConnection; stop: () => Promise<void> }> {
  const port = await freePort()
  const server = spawn(process.execPath, [SERVER, 'streamableHttp'], {
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await saysIn(server, /listening/i)
  const connection = await connectMcp({ url: `http://127.0.0.1:${port}/mcp`, headers: { 'x-test': '1' } })
  const stop = async (): Promise<void> => {
    const ended = once(server, 'exit')
    server.kill('SIGKILL')
    await ended
  }
  return { connection, stop }
}

/** Waits until a program has written something to its stderr. */
async function saysIn(program: ChildProcess, words: RegExp): Promise<void> {
  let text = ''
  for await (const bytes of program.stderr ?? []) {
    text += String(bytes)
    if (words.test(text)) break
  }
  if (!words.test(text)) throw new Error(`the server ended: ${text}`)
}
