import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { connectMcp, prepareTools } from '../../../src/tools/index.ts'
import { stallDuring } from '../../support/stall.ts'

/** An MCP server of one tool, whose result is the value of an expression. */
function serverThatAnswers(result: string): { readonly command: string; readonly args: readonly string[] } {
  const program = `
    const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
    const lines = require('node:readline').createInterface({ input: process.stdin })
    lines.on('line', (line) => {
      const { id, method, params } = JSON.parse(line)
      if (method === 'initialize') {
        const { protocolVersion } = params
        send(id, { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })
      } else if (method === 'tools/list') send(id, { tools: [{ name: 'a', inputSchema: { type: 'object' } }] })
      else if (method === 'tools/call') ${result.startsWith('raw:') ? `process.stdout.write(${result.slice(4)} + '\\n')` : `send(id, ${result})`}
    })`
  return { command: process.execPath, args: ['-e', program] }
}

test.each<[string, string, string]>([
  ['20,000 empty blocks', '{ content: Array(20000).fill({}) }', 'taken'],
  [
    '60,000 keys',
    '{ structuredContent: Object.fromEntries(Array.from({ length: 6e4 }, (_, n) => ["k" + n, n])) }',
    'taken',
  ],
  [
    'too many keys',
    '{ structuredContent: Object.fromEntries(Array.from({ length: 4e5 }, (_, n) => [n, 0])) }',
    'refused',
  ],
  ['an error of 4 MiB', '{ isError: true, content: [{ type: "text", text: "x".repeat(2 ** 22) }] }', 'refused'],
  [
    '3,000,000 levels',
    `raw:'{"jsonrpc":"2.0","id":' + id + ',"result":{"a":' + '['.repeat(3e6) + ']'.repeat(3e6) + '}}'`,
    'refused',
  ],
  [
    'levels in an error',
    `raw:'{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":' + '['.repeat(3e6) + ']'.repeat(3e6) + '},"id":' + id + '}'`,
    'refused',
  ],
  ['a text of 3 MiB', '{ content: [{ type: "text", text: "x".repeat(3 * 2 ** 20) }] }', 'taken'],
])('an answer of a tool server with %s does not hold the host', async (_, result, want) => {
  await using connection = await connectMcp(serverThatAnswers(result))
  const [tool] = prepareTools(connection).tools.values()
  const context = { signal: new AbortController().signal, callId: 'c', executionId: 'e' }
  let ended = ''
  const stall = await stallDuring(async () => {
    const call = Promise.resolve(tool?.execute({}, context))
    ended = await call.then(
      () => 'taken',
      () => 'refused',
    )
  })
  expect([ended, stall < 250]).toEqual([want, true])
})

test('a stream of events of a tool server may not hold an event without an end', async () => {
  let sent = 0
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const line = Buffer.from(`data: ${'x'.repeat(2 ** 20)}\n`)
    const send = (): void => {
      while (!response.destroyed && response.write(line)) sent += line.length
      response.once('drain', send)
    }
    send()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await expect(
    connectMcp({ url: `http://127.0.0.1:${port}/`, signal: AbortSignal.timeout(20_000) }),
  ).rejects.toMatchObject({
    code: 'mcp_unreachable',
  })
  expect(sent).toBeLessThan(64 * 2 ** 20)
  server.closeAllConnections()
  server.close()
})

test('a message of a tool server that is too long ends the call', async () => {
  await using connection = await connectMcp(
    serverThatAnswers('{ content: [{ type: "text", text: "x".repeat(9 * 2 ** 20) }] }'),
  )
  const [tool] = prepareTools(connection).tools.values()
  const signal = AbortSignal.timeout(20_000)
  await expect(tool?.execute({}, { signal, callId: 'c', executionId: 'e' })).rejects.toThrow(/./)
  expect(signal.aborted).toBe(false)
})
